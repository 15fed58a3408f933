"""A long log cut by keys: the events of some keys beside all that are of no key, and the writes of these keys.

What is about one key at a time can be judged a block at a time: each has all watermarks and markers, by the same order.
That bounds the memory, lets several threads work, and keeps what is sorted and searched in the cache.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from checkers.ragged import Scalar, distinct, groups
from checkers.stream_index import Places, is_kind, searched
from harness.core.columns import BACKFILL, NEVER, ROW, Deliveries, Int64s, SourceWrites

P = TypeVar("P")
R = TypeVar("R")

BLOCK_ROWS: Final = 1 << 19  # Events and writes of one block, about: what is made of them stays in the cache.


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of the log, and of the source, that stand in one block, both ascending."""

    events: Int64s
    writes: Int64s


def blocks(
    deliveries: Deliveries, writes: SourceWrites, block_rows: int = BLOCK_ROWS, *, also: Int64s | None = None
) -> list[Block]:
    """The blocks of a log, with the rows `also` in each. O(n).

    Each has writes, if there are any: events of a key that the source does not have stand with those of its neighbour.
    """
    is_event = is_kind(deliveries.kind, (ROW, BACKFILL)) & (deliveries.key != NEVER)
    count = (int(np.count_nonzero(is_event)) + len(writes.op)) // block_rows + 1
    if count == 1:
        return [Block(np.arange(len(deliveries.kind)), np.arange(len(writes.op)))]
    rows = np.flatnonzero(is_event)
    keys = distinct(writes.key if len(writes.op) else deliveries.key[rows])
    count = min(count, len(keys))
    places = Places(keys)
    # Several keys with all their rows make a block; ids that lie close often were written together.
    of_write = places.of(writes.key) * count // len(keys)
    code = places.of(deliveries.key[rows])
    is_unknown = code < 0
    code[is_unknown] = np.minimum(searched(keys, deliveries.key[rows[is_unknown]]), len(keys) - 1)
    is_of_all = ~is_event
    if also is not None:
        is_of_all[also] = True
    of_all = np.flatnonzero(is_of_all)
    return [
        Block(distinct(np.append(of_all, rows[events])), own)
        for events, own in zip(groups(code * count // len(keys), count), groups(of_write, count), strict=True)
    ]


def events_of(deliveries: Deliveries, rows: Int64s) -> Deliveries:
    """Those rows of a log, without their times: what is about single keys goes by the order of receipt."""
    never = np.broadcast_to(np.int64(NEVER), len(deliveries.kind))
    untimed = replace(deliveries, seq=never, ns=never)
    return Deliveries(**{field.name: taken(getattr(untimed, field.name), rows) for field in fields(Deliveries)})


def writes_of(writes: SourceWrites, rows: Int64s) -> SourceWrites:
    """Those rows of a source, without their times."""
    never = np.broadcast_to(np.int64(NEVER), len(writes.op))
    untimed = replace(writes, invoke_seq=never, complete_seq=never)
    return SourceWrites(**{field.name: taken(getattr(untimed, field.name), rows) for field in fields(SourceWrites)})


def taken(column: NDArray[Scalar], rows: Int64s) -> NDArray[Scalar]:
    """Those rows of a column; of one number, which takes no memory, as many of it."""
    return np.broadcast_to(column[0], len(rows)) if column.strides == (0,) and len(column) else column[rows]


def by_part(work: Callable[[P], R], parts: Sequence[P], *, threads: int) -> Iterator[R]:
    """The work on each part, in their order, by so many threads."""
    if threads == 1 or len(parts) == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, parts)
