"""Blocks of a long log: the events and writes of some keys, together with all events that have no key.

Rules about single keys can be judged one block at a time: each block has all watermarks and markers, in order. This
bounds the memory, lets several threads work, and keeps sorts and searches in the cache.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from checkers.columns.index import is_kind
from checkers.columns.parts import constant
from checkers.columns.runs import distinct, groups
from checkers.columns.table import take
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites

P = TypeVar("P")
R = TypeVar("R")

BLOCK_ROWS: Final = 1 << 19  # About this many events and writes per block: temporary arrays stay in the cache.
_THREADS: Final[ContextVar[int]] = ContextVar("threads", default=1)
_SPARSITY: Final = 4  # A table with this many slots for each key is still faster than a search.


class Block(Struct, frozen=True):
    """Rows of the log (`events`) and of the source (`writes`) that belong to one block, both ascending."""

    events: Int64s
    writes: Int64s


def blocks(
    deliveries: Deliveries, writes: SourceWrites, block_rows: int | None = None, *, also: Int64s | None = None
) -> list[Block]:
    """The blocks of a log. Each of them also has the rows `also` of the log. O(n).

    If there are writes, every block has some: events of a key that the source lacks join those of the nearest key.
    """
    is_event = is_kind(deliveries.kind, (ROW, BACKFILL)) & (deliveries.key != NEVER)
    count = (int(np.count_nonzero(is_event)) + len(writes.op)) // (block_rows or BLOCK_ROWS) + 1
    if count == 1:
        return [Block(np.arange(len(deliveries.kind)), np.arange(len(writes.op)))]
    keys = distinct(writes.key if len(writes.op) else deliveries.key[is_event])
    count = min(count, len(keys))
    is_of_all = ~is_event
    if also is not None:
        is_of_all[also] = True
    of_all = np.flatnonzero(is_of_all)
    numbers = _Numbers(keys, count)
    events, own = _parted(deliveries.key, numbers, count, is_event), _parted(writes.key, numbers, count)
    return [Block(distinct(np.append(of_all, rows)), written) for rows, written in zip(events, own, strict=True)]


class _Numbers:
    """A map from keys to `count` blocks.

    A block has neighbouring keys: those with close ids were often written together.

    `keys` (k,) ascend. Any other key goes to the block of a neighbour.
    """

    def __init__(self, keys: Int64s, count: int) -> None:
        self._low, self._high = int(keys[0]), int(keys[-1])
        self._firsts = keys[[-(-len(keys) * number // count) for number in range(1, count)]]
        self._table: NDArray[np.integer[Any]] | None = None
        if self._high - self._low < _SPARSITY * len(keys):
            numbers = np.searchsorted(self._firsts, np.arange(self._low, self._high + 1), side="right")
            self._table = numbers.astype(np.min_scalar_type(count))

    def of(self, key: Int64s) -> NDArray[np.integer[Any]]:
        """The block number of each key."""
        if self._table is None:
            return np.searchsorted(self._firsts, key, side="right")
        return self._table[np.clip(key, self._low, self._high) - self._low]


def _parted(key: Int64s, numbers: _Numbers, count: int, is_meant: Bools | None = None) -> list[Int64s]:
    """The rows of each block, ascending. Works piece by piece, so that temporary arrays stay small."""
    parts: list[list[Int64s]] = [[np.empty(0, np.int64)] for _ in range(count)]
    for piece in pieces(len(key)):
        if is_meant is None:
            rows = groups(numbers.of(key[piece]), count)
        else:
            meant = np.flatnonzero(is_meant[piece])
            rows = [meant[own] for own in groups(numbers.of(key[piece][meant]), count)]
        for part, own in zip(parts, rows, strict=True):
            part.append(own + piece.start)
    return [np.concatenate(part) for part in parts]


def events_of(deliveries: Deliveries, rows: Int64s) -> Deliveries:
    """Those rows of a log, without their times: rules about single keys use the order of receipt."""
    never = constant(NEVER, len(deliveries.kind))
    return take(replace(deliveries, seq=never, ns=never), rows)


def writes_of(writes: SourceWrites, rows: Int64s) -> SourceWrites:
    """Those rows of a source, without their times."""
    never = constant(NEVER, len(writes.op))
    return take(replace(writes, invoke_seq=never, complete_seq=never), rows)


@contextmanager
def in_threads(count: int) -> Iterator[None]:
    """Let `by_part` use `count` threads inside the `with` block: a task's runner decides, and rules need not know."""
    before = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(before)


def by_part(work: Callable[[P], R], parts: Sequence[P], *, threads: int | None = None) -> Iterator[R]:
    """The results of `work` on each part, in the order of the parts, computed in `threads` threads.

    `threads` None: as many as `in_threads` sets. That setting does not reach the new threads: a nested call runs in
    one.
    """
    threads = _THREADS.get() if threads is None else threads
    if threads == 1 or len(parts) == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, parts)


def part_count(rows: int) -> int:
    """The number of parts of about `BLOCK_ROWS` rows into which `rows` rows are cut; at least one."""
    return rows // BLOCK_ROWS + 1


def pieces(count: int, block_rows: int | None = None) -> Iterator[slice]:
    """Slices of `block_rows` rows that cover rows 0 to `count` - 1: temporary arrays need not cover a whole log."""
    size = block_rows or BLOCK_ROWS
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


def piece_from(begin: int, count: int, *, least: int) -> slice:
    """A slice of the `count` rows of a log, from `begin` on: as long as a block, but at least `least` rows."""
    return slice(begin, min(begin + max(BLOCK_ROWS, least), count))
