"""The external reads and the writes of transactions: the input of all axioms. Inner elements of lists are left out.

Theory of operation.
1. A read is *external* if its transaction has not written the key before it. It shows the version that the write of its
   value installed: for a list that of its last element, and the initial version if it is empty.
2. A list read after own appends shows what these extended: if it ends with exactly their elements, and the transaction
   wrote the key in no other way, it is an external read of the elements before them. Any other is internal.
3. The versions of a list are in the order of its longest read, of which all elements are kept. The other reads must be
   prefixes of it, which `transactions.list_anomalies` checks.
4. Only what ok transactions read counts. Failed transactions have no accesses.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import count_so_far
from checkers.columns.runs import codes, expand, first_of_each, ordered
from checkers.columns.table import concat, take
from checkers.history.longest import longest_rows
from checkers.history.registers import EMPTY, Initial
from checkers.history.transactions import Source, load
from harness.core.columns import APPEND, FAIL, NEVER, NOTHING, OK, READ, Bools, Int8s, Int64s, Transactions


class Ops(Struct, frozen=True):
    """All transactions but those that certainly failed. Columns as in `Transactions`; `commit` is always there."""

    index: Int64s
    process: Int64s
    outcome: Int8s
    after: Int64s
    commit: Int64s


class Reads(Struct, frozen=True):
    """External reads, by transaction, key and `place`. `value` is NOTHING for the initial version."""

    op: Int64s
    key: Int64s
    value: Int64s
    place: Int64s
    is_list: Bools


class Writes(Struct, frozen=True):
    """Appends and writes, by transaction, key and place in it."""

    op: Int64s
    key: Int64s
    value: Int64s
    is_list: Bools


class Lists(Struct, frozen=True):
    """The longest read of each list: elements[start[i]:start[i] + length[i]]."""

    key: Int64s
    start: Int64s
    length: Int64s


class Accesses(Struct, frozen=True):
    """The accesses of some transactions."""

    ops: Ops
    reads: Reads
    writes: Writes
    lists: Lists
    elements: Int64s


def accesses(source: Source, *, initial: Initial = EMPTY) -> Accesses:
    """The accesses of one chunk of the history. Raises HistoryError if the chunk is damaged."""
    whole = initial.applied(load(source))
    owner = np.repeat(np.arange(len(whole.index)), np.diff(whole.mop_start))
    is_read = (whole.f == READ) & (whole.is_known | (whole.value >= NOTHING)) & (whole.outcome[owner] == OK)
    is_write = (whole.f != READ) & (whole.outcome[owner] != FAIL)
    rows = np.flatnonzero(is_read | is_write)
    keys, key = codes(whole.key[rows])
    order, pair = ordered(owner[rows] * max(1, len(keys)) + key)
    rows, group = rows[order], np.cumsum(first_of_each(pair)) - 1
    own_writes = count_so_far(group, is_write[rows])
    external = np.flatnonzero(is_read[rows])
    external = external[_is_external(whole, rows, group, own_writes, external)]
    reads, writes = rows[external], rows[is_write[rows]]
    kept = np.flatnonzero(whole.outcome != FAIL)
    commit = whole.commit if whole.commit.size else np.full(len(whole.index), NEVER)
    lists, elements = _longest(whole, np.flatnonzero(is_read & whole.is_known))
    return Accesses(
        ops=Ops(whole.index[kept], whole.process[kept], whole.outcome[kept], whole.after[kept], commit[kept]),
        reads=Reads(
            op=whole.index[owner[reads]],
            key=whole.key[reads],
            value=_version(whole, reads, own_writes[external]),
            place=reads - whole.mop_start[owner[reads]],
            is_list=whole.is_known[reads],
        ),
        writes=Writes(
            op=whole.index[owner[writes]],
            key=whole.key[writes],
            value=whole.value[writes],
            is_list=whole.f[writes] == APPEND,
        ),
        lists=lists,
        elements=elements,
    )


def union(parts: Sequence[Accesses]) -> Accesses:
    """The accesses of all parts. There must be at least one."""
    starts = np.cumsum([0, *(len(part.elements) for part in parts)])
    every = concat(
        [replace(part.lists, start=part.lists.start + start) for part, start in zip(parts, starts, strict=False)]
    )
    return Accesses(
        ops=concat([part.ops for part in parts]),
        reads=concat([part.reads for part in parts]),
        writes=concat([part.writes for part in parts]),
        lists=take(every, longest_rows(every.key, every.length)),
        elements=np.concatenate([part.elements for part in parts]),
    )


def _is_external(whole: Transactions, rows: Int64s, group: Int64s, own_writes: Int64s, reads: Int64s) -> Bools:
    """True for those of `reads` that are external, by rules 1 and 2.

    `rows` are micro-operations, in groups of one transaction and key, and `reads` are places among them. `own_writes`
    counts the writes of the group up to each. O(n log n), with n elements and writes in groups that are read again.
    """
    own = own_writes[reads]
    stop = whole.element_start[rows[reads] + 1]
    is_longer = stop - whole.element_start[rows[reads]] >= own
    again = np.flatnonzero((own > 0) & whole.is_known[rows[reads]] & is_longer)
    writes = np.flatnonzero((whole.f[rows] != READ) & np.isin(group, group[reads[again]]))
    writes = writes[ordered(group[writes])[0]]
    first = np.searchsorted(group[writes], group[reads[again]])
    written, shown = expand(first, own[again]), expand(stop[again] - own[again], own[again])
    mop = rows[writes[written]]
    is_shown = (whole.f[mop] == APPEND) & (whole.value[mop] == whole.elements[shown])
    result: Bools = own == 0
    result[again] = np.bincount(np.repeat(np.arange(len(again)), own[again])[~is_shown], minlength=len(again)) == 0
    return result


def _version(whole: Transactions, rows: Int64s, own: Int64s) -> Int64s:
    """The value whose write installed the version that those reads show before that number of own elements."""
    stop = whole.element_start[rows + 1] - own
    is_list = whole.is_known[rows]
    is_empty = stop == whole.element_start[rows]
    last = np.append(whole.elements, NOTHING)[np.where(is_empty, -1, stop - 1)]
    return np.where(is_list, last, whole.value[rows])


def _longest(whole: Transactions, rows: Int64s) -> tuple[Lists, Int64s]:
    length = whole.element_start[rows + 1] - whole.element_start[rows]
    chosen = longest_rows(whole.key[rows], length)
    rows, length = rows[chosen], length[chosen]
    elements = whole.elements[expand(whole.element_start[rows], length)]
    return Lists(whole.key[rows], np.cumsum(length) - length, length), elements
