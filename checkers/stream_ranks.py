"""The source's own order of the versions of each key, as reads of lists show it.

The longest list that was read of a key is the order of its elements. A read that is no prefix of it, as after a restart
that lost what had been acknowledged, leaves the order unknown from where the two part; and so does an element that
stands there twice. What was never read has no rank.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import arrow
from checkers.arrow import integers
from checkers.files import DAMAGE, damaged
from checkers.ragged import common_prefix, distinct, expand, groups
from checkers.stream_chunks import DELIVERED, Placement, StreamLog, placed, read_deliveries, read_writes
from checkers.stream_index import Places, ascending, codes
from harness.core.columns import FAIL, INFO, NEVER, OK, READ, Deliveries, Int64s, SourceWrites

BLOCK_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """Lists that were read, m of them: list i is elements[start[i]:start[i] + length[i]]; known[i] of them are sure."""

    key: Int64s
    start: Int64s
    length: Int64s
    known: Int64s
    elements: Int64s


def read_beside(
    log: StreamLog,
    source: Path,
    known: Placement,
    *,
    names: Sequence[str] = DELIVERED,
    has_times: bool = True,
    threads: int = 1,
) -> tuple[Deliveries, SourceWrites]:
    """The events of a log, and the writes of its source, placed and ranked. Raises HistoryError if one is damaged."""
    with ThreadPoolExecutor(threads) as pool:
        deliveries, lists = pool.submit(read_deliveries, log, names), pool.submit(read_lists, source)
        writes = placed(read_writes(source, has_times=has_times), known)
        return deliveries.result(), ranked(writes, lists.result())


def read_ranked(history: Path, writes: SourceWrites) -> SourceWrites:
    """The writes with their ranks among the versions of their key. Raises HistoryError if a file is damaged."""
    return ranked(writes, read_lists(history))


def read_lists(history: Path) -> Lists:
    """Of each key the longest list that was read. Raises HistoryError if a file is damaged."""
    parts = []
    try:
        with (
            pq.ParquetFile(history / "ops.parquet", page_checksum_verification=True) as ops,
            pq.ParquetFile(history / "mops.parquet", page_checksum_verification=True) as mops,
        ):
            for group in range(ops.num_row_groups):
                op_table = ops.read_row_group(group, columns=["index", "outcome"], use_threads=False)
                mop_table = mops.read_row_group(group, columns=["op", "f", "key", "read"], use_threads=False)
                parts.append(longest(_lists(op_table, mop_table)))
    except DAMAGE as problem:
        raise damaged(history, problem) from problem
    return longest(joined(parts))


def ranked(writes: SourceWrites, lists: Lists) -> SourceWrites:
    """The writes with the places that the sure parts of `lists`, one for each key, give them. O(n log n).

    A value that several operations may have written to one key has no rank.
    """
    version = np.full(len(writes.op), NEVER, np.int64)
    place = Places(lists.key).of(writes.key)
    rows = np.flatnonzero((writes.outcome != FAIL) & (place >= 0))
    # A block of keys at a time: what is sorted together stays in the cache.
    count = len(rows) // BLOCK_ROWS + 1
    for block, own in enumerate(groups(place[rows] * count // max(1, len(lists.key)), count)):
        bounds = [-(-len(lists.key) * at // count) for at in (block, block + 1)]
        _rank(writes, rows[own], lists, slice(*bounds), version)
    return replace(writes, version=version)


def _rank(writes: SourceWrites, rows: Int64s, lists: Lists, block: slice, version: Int64s) -> None:
    """Put into `version` the ranks of those rows, which are writes of the keys of that block."""
    start, known = lists.start[block], lists.known[block]
    at = expand(start, known)
    key, element = np.repeat(lists.key[block], known), lists.elements[at]
    rank = at - np.repeat(start, known)
    what = codes(np.append(key, writes.key[rows]), np.append(element, writes.value[rows]))
    shown, written = what[: len(key)], what[len(key) :]
    rank_of = np.full(int(what.max(initial=-1)) + 1, NEVER, np.int64)
    rank_of[shown] = rank
    rank_of[np.bincount(written, minlength=len(rank_of)) > 1] = NEVER
    version[rows] = rank_of[written]


def longest(lists: Lists) -> Lists:
    """Of each key the longest list, keys ascending, and how much of it no other contradicts. O(elements)."""
    order = ascending(lists.key, lists.length)
    key = lists.key[order]
    last = np.flatnonzero(np.diff(key, append=-1) != 0)
    chosen = order[last]
    owner = Places(key[last]).of(lists.key)
    common = common_prefix(
        lists.elements,
        lists.elements,
        left_start=lists.start,
        right_start=lists.start[chosen][owner],
        length=lists.length,
    )
    # As far as a list agrees with the longest it says nothing against it, unless it was not sure of itself.
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
    """Lists that stand one behind the other in `elements`, each sure of itself."""
    return Lists(key=key, start=np.cumsum(length) - length, length=length, known=length, elements=elements)


_NONE = np.zeros(0, np.int64)
NO_LISTS = lists_of(_NONE, _NONE, _NONE)


def _stop_before_repeats(known: Int64s, length: Int64s, start: Int64s, elements: Int64s) -> None:
    """Lower `known`, in place, to where an element stands that its list has twice."""
    if len(distinct(elements)) == len(elements):
        return  # Mostly so, and soon seen.
    owner = np.repeat(np.arange(len(length)), length)
    what = codes(owner, elements)
    repeated = np.flatnonzero(np.bincount(what)[what] > 1) if len(what) else _NONE
    np.minimum.at(known, owner[repeated], repeated - start[owner[repeated]])


def _lists(ops: pa.Table, mops: pa.Table) -> Lists:
    """The lists that the operations of one chunk read which certainly happened."""
    start, elements, is_known = arrow.lists(mops["read"])
    happened = distinct(integers(ops["index"])[integers(ops["outcome"], INFO) == OK])
    is_meant = is_known & (integers(mops["f"], READ) == READ)
    rows = np.flatnonzero(is_meant)
    rows = rows[Places(happened).of(integers(mops["op"])[rows]) >= 0]
    length = start[rows + 1] - start[rows]
    if len(rows) < np.count_nonzero(is_known):
        elements = elements[expand(start[rows], length)]
    return lists_of(integers(mops["key"])[rows], length, elements)
