"""The source's own order of the versions of each key, as reads of lists show it.

The longest list that was read of a key is the order of its elements. From the point on where another read differs from
it (for example after a restart that lost acknowledged writes), the order is unknown, and so it is from an element on
that the list contains twice. Elements that were never read have no rank.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns import arrow
from checkers.columns.arrow import integers
from checkers.columns.blocks import part_count, pieces
from checkers.columns.facts import Facts
from checkers.columns.files import opened_operations
from checkers.columns.index import Places, codes
from checkers.columns.parts import constant
from checkers.columns.runs import distinct, expand, groups
from checkers.history.around import NOTHING_AROUND, Issued, all_readers, readers_of
from checkers.history.longest import longest_lists
from checkers.history.streams import (
    DELIVERED,
    Placement,
    SourceFiles,
    StreamLog,
    placed,
    placement_alone,
    read_deliveries,
)
from harness.core.columns import FAIL, INFO, NEVER, OK, READ, Deliveries, Int64s, SourceWrites


class Lists(Struct, frozen=True, kw_only=True):
    """m lists that were read: list i is elements[start[i]:start[i] + length[i]]; its first known[i] places are sure."""

    key: Int64s
    start: Int64s
    length: Int64s
    known: Int64s
    elements: Int64s


class Reading(Struct, frozen=True, kw_only=True):
    """A history whose files are still being read. `readers` are the operations that wrote nothing.

    `writes` are placed and ranked already; `deliveries` waits for the events of the log.
    """

    writes: SourceWrites
    readers: Issued
    deliveries: Callable[[], Deliveries]


@contextmanager
def reading(
    log: StreamLog,
    source: Path,
    known: Placement | None,
    *,
    names: Sequence[str] = DELIVERED,
    has_times: bool = True,
    threads: int = 1,
    shared: Facts | None = None,
) -> Iterator[Reading]:
    """The source of a log, while `threads` threads read the log's events. Raises HistoryError if a file is damaged.

    `known` is the placement that follows from all logs; None if this is the only one. Without `has_times` there are no
    readers, and the writes have no times. With the same `shared`, several logs of one source read it once.
    """
    shared = Facts(is_copy=True) if shared is None else shared
    with ThreadPoolExecutor(threads) as pool:
        read = shared.of((source, has_times, "read"), partial(_SourceRead, pool, source, has_times=has_times))
        events = pool.submit(read_deliveries, log, names, threads=threads, shared=shared)

        def whole() -> tuple[SourceWrites, Issued]:
            unplaced, lists, readers = read.result()
            placement = placement_alone(log, unplaced, events.result) if known is None else known
            return ranked(placed(unplaced, placement), lists), all_readers(readers)

        writes, readers = read.facts.of("ranked", whole)
        yield Reading(writes=writes, readers=readers, deliveries=events.result)


class _SourceRead:
    """A source whose row groups are tasks of `pool`.

    Its `facts` are of this one reading: another check may clear the shared facts while this one is in use.
    """

    def __init__(self, pool: ThreadPoolExecutor, source: Path, *, has_times: bool) -> None:
        self.facts = Facts()
        files = SourceFiles(source, has_times=has_times)
        self._groups = [pool.submit(_read_group, files, has_times, group) for group in range(files.group_count)]
        self._writes = [files.writes]

    def result(self) -> tuple[SourceWrites, list[Lists], list[Issued]]:
        """The writes, the lists that were read, and the readers; nothing of it stays here."""
        parts = [task.result() for task in self._groups]
        self._groups.clear()
        return self._writes.pop()(), [lists for lists, _ in parts], [readers for _, readers in parts]


def read_beside(
    log: StreamLog,
    source: Path,
    known: Placement | None,
    *,
    names: Sequence[str] = DELIVERED,
    has_times: bool = True,
    threads: int = 1,
    shared: Facts | None = None,
) -> tuple[Deliveries, SourceWrites]:
    """The events of a log, and the writes of its source, placed and ranked, as in `reading`."""
    with reading(log, source, known, names=names, has_times=has_times, threads=threads, shared=shared) as found:
        return found.deliveries(), found.writes


def _read_group(files: SourceFiles, has_times: bool, number: int) -> tuple[Lists, Issued]:
    """The longest lists that were read in that row group, and its operations that wrote nothing."""
    group = files.read(number, "read")
    readers = readers_of(group) if has_times else NOTHING_AROUND.readers
    return longest(_lists(group.ops, group.mops)), readers


def read_ranked(history: Path, writes: SourceWrites) -> SourceWrites:
    """The writes with their ranks among the versions of their key. Raises HistoryError if a file is damaged."""
    parts = []
    with opened_operations(history) as (ops, mops):
        for group in range(ops.num_row_groups):
            op_table = ops.read_row_group(group, columns=["index", "outcome"], use_threads=False)
            mop_table = mops.read_row_group(group, columns=["op", "f", "key", "read"], use_threads=False)
            parts.append(longest(_lists(op_table, mop_table)))
    return ranked(writes, parts)


def ranked(writes: SourceWrites, parts: Sequence[Lists]) -> SourceWrites:
    """The writes with their ranks, from the certain places of lists; `parts` come from `longest`. O(n log n).

    A value that several operations may have written to one key has no rank.
    """
    keys = distinct(np.concatenate([_NONE, *(part.key for part in parts)]))
    if len(keys) == 0:
        return replace(writes, version=constant(NEVER, len(writes.op)))
    version = np.full(len(writes.op), NEVER, np.int64)
    # A block of keys at a time: each sort stays in the cache, and temporary arrays stay small.
    count = min(part_count(len(version)), len(keys))
    for block, rows in enumerate(_rows_of_blocks(writes, keys, count)):
        begin, end = (len(keys) * at // count for at in (block, block + 1))
        lists = longest(joined([_between(part, keys[begin], keys[end - 1]) for part in parts]))
        _rank(writes, rows, lists, version)
    return replace(writes, version=version)


def _rows_of_blocks(writes: SourceWrites, keys: Int64s, count: int) -> list[Int64s]:
    """For each of `count` blocks of keys the rows of writes that may have happened, ascending."""
    places = Places(keys)
    # Block b has the places from len(keys) * b // count on.
    owner = np.repeat(np.arange(count), np.diff([len(keys) * at // count for at in range(count + 1)]))
    found: list[list[Int64s]] = [[] for _ in range(count)]
    for piece in pieces(len(writes.op)):
        place = places.of(writes.key[piece])
        rows = np.flatnonzero((writes.outcome[piece] != FAIL) & (place >= 0))
        for rows_so_far, own in zip(found, groups(owner[place[rows]], count), strict=True):
            rows_so_far.append(rows[own] + piece.start)
    return [np.concatenate([_NONE, *each]) for each in found]


def _between(lists: Lists, low: int, high: int) -> Lists:
    """The lists of the keys from `low` to `high`; `lists` is sorted by key."""
    begin, end = np.searchsorted(lists.key, low), np.searchsorted(lists.key, high, "right")
    part = slice(begin, end)
    first = int(lists.start[begin]) if begin < end else 0
    return Lists(
        key=lists.key[part],
        start=lists.start[part] - first,
        length=lists.length[part],
        known=lists.known[part],
        elements=lists.elements[first : first + int(lists.length[part].sum())],
    )


def _rank(writes: SourceWrites, rows: Int64s, lists: Lists, version: Int64s) -> None:
    """Store the ranks of those rows, writes of the keys of `lists`, in `version`."""
    at = expand(lists.start, lists.known)
    key, element = np.repeat(lists.key, lists.known), lists.elements[at]
    rank = at - np.repeat(lists.start, lists.known)
    what = codes(np.append(key, writes.key[rows]), np.append(element, writes.value[rows]))
    shown, written = what[: len(key)], what[len(key) :]
    rank_of = np.full(int(what.max(initial=-1)) + 1, NEVER, np.int64)
    rank_of[shown] = rank
    rank_of[np.bincount(written, minlength=len(rank_of)) > 1] = NEVER
    version[rows] = rank_of[written]


def longest(lists: Lists) -> Lists:
    """The longest list of each key, keys ascending, and how much of it no other list contradicts. O(elements)."""
    found = longest_lists(lists.key, lists.start, lists.length, lists.elements, is_last=True)
    chosen, owner, common = found.row, found.owner, found.agreed
    # A list that is a prefix of the longest does not contradict it, unless it was itself uncertain.
    limit = np.where(common < lists.length, common, NEVER)
    limit = np.minimum(limit, np.where(lists.known < lists.length, lists.known, NEVER))
    known = lists.length[chosen].copy()
    np.minimum.at(known, owner, limit)
    at = expand(lists.start[chosen], lists.length[chosen])
    length = lists.length[chosen]
    start = np.cumsum(length) - length
    elements = lists.elements[at]
    _stop_before_repeats(known, length, start, elements)
    return Lists(key=lists.key[chosen], start=start, length=length, known=known, elements=elements)


def joined(parts: Iterable[Lists]) -> Lists:
    """All lists as one table."""
    tables = [*parts, NO_LISTS]
    counts = [len(table.elements) for table in tables]
    base = np.cumsum([0, *counts[:-1]])
    columns = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in ("key", "length", "known", "elements")
    }
    start = np.concatenate([table.start + offset for table, offset in zip(tables, base.tolist(), strict=True)])
    return Lists(start=start, **columns)


def lists_of(key: Int64s, length: Int64s, elements: Int64s) -> Lists:
    """Lists that follow each other in `elements`, each of them certain as a whole."""
    return Lists(key=key, start=np.cumsum(length) - length, length=length, known=length, elements=elements)


_NONE = np.zeros(0, np.int64)
NO_LISTS = lists_of(_NONE, _NONE, _NONE)


def _stop_before_repeats(known: Int64s, length: Int64s, start: Int64s, elements: Int64s) -> None:
    """Lower `known`, in place, to the first element that its list contains twice."""
    if len(distinct(elements)) == len(elements):
        return  # The usual case, cheap to detect.
    owner = np.repeat(np.arange(len(length)), length)
    what = codes(owner, elements)
    repeated = np.flatnonzero(np.bincount(what)[what] > 1) if len(what) else _NONE
    np.minimum.at(known, owner[repeated], repeated - start[owner[repeated]])


def _lists(ops: pa.Table, mops: pa.Table) -> Lists:
    """The lists that were read by the ok operations of one chunk."""
    start, elements, is_known = arrow.lists(mops["read"])
    happened = distinct(integers(ops["index"])[integers(ops["outcome"], INFO) == OK])
    is_meant = is_known & (integers(mops["f"], READ) == READ)
    rows = np.flatnonzero(is_meant)
    rows = rows[Places(happened).of(integers(mops["op"])[rows]) >= 0]
    length = start[rows + 1] - start[rows]
    if len(rows) < np.count_nonzero(is_known):
        elements = elements[expand(start[rows], length)]
    return lists_of(integers(mops["key"])[rows], length, elements)
