"""The first half of the transactional check of lists: the rows of one chunk of transactions, sorted by key.

Theory of operation.
1. A read counts only if its transaction is ok: what an unclear operation read may never have been there.
2. Of the reads of a key in a chunk, the longest is sent with all elements. The others are compared with it, element by
   element, and sent as (list, length). No information is lost, and a transaction shrinks to about ten int64.
3. Operations are numbered by rank of invocation, so that u precedes v in real time iff after[u] <= index[v].

Arrays in, arrays out; no loop over transactions.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from checkers.columns.runs import codes, common_prefix, expand, first_of_each, groups, ordered
from checkers.graph.edges import OPEN_END
from checkers.graph.sightings import Report, Sighting, seen
from checkers.history.longest import longest_lists
from checkers.history.stretches import ONCE, Weights
from checkers.history.transactions import Source, load
from checkers.transactions.key_rows import AppendRows, KeyRows, ListRows, ReadRows, chosen
from harness.core.columns import APPEND, FAIL, INFO, NEVER, NOTHING, OK, READ, WRITE, Bools, Int64s, Transactions
from harness.core.errors import HistoryError


def rows_by_key(source: Source, *, partitions: int, weights: Weights = ONCE) -> Iterator[tuple[int, KeyRows]]:
    """Yield for each partition its number and the chunk's rows about its keys; the report is with partition 0.

    Raises HistoryError if an index needs more than 31 bits, or an ok operation has no end, or one before its beginning.
    """
    transactions = load(source)
    _validate(transactions)
    mops = _Mops(transactions)
    repeated = _repeated(mops)
    is_foreseen, future_reads = _foreseen(mops, repeated)
    report = _report(mops, repeated, future_reads, weights)
    whole = _key_rows(mops, *_roles(mops, repeated), is_foreseen, report)
    yield from enumerate(_parted(whole, partitions))


def _validate(transactions: Transactions) -> None:
    index, after = transactions.index, transactions.after
    if index.size and not 0 <= index[0] <= index[-1] < OPEN_END - 1:
        raise HistoryError(f"operation {index[-1]}: an index must lie between 0 and {OPEN_END - 2}")
    wrong = np.flatnonzero((transactions.outcome == OK) & ((after == NEVER) | (after <= index)))
    if wrong.size:
        raise HistoryError(
            f"operation {index[wrong[0]]}: it is ok, but `after` says that it did not end after it began"
        )


class _Mops:
    """The micro-operations that count, as columns: all appends, and the reads of ok transactions with a result."""

    def __init__(self, transactions: Transactions) -> None:
        owner = np.repeat(np.arange(len(transactions.index)), np.diff(transactions.mop_start))
        outcome = transactions.outcome[owner]
        is_read = (transactions.f == READ) & transactions.is_known & (outcome == OK)
        rows = np.flatnonzero(is_read | (transactions.f == APPEND))
        self.transactions = transactions
        self.rows = rows
        self.owner = owner[rows]
        self.is_read = is_read[rows]
        self.outcome = outcome[rows]
        self.key = transactions.key[rows]
        self.value = transactions.value[rows]
        self.start = transactions.element_start[rows]
        self.length = transactions.element_start[rows + 1] - self.start
        self.elements = transactions.elements
        self.keys, self.code = codes(self.key)

    def op(self, at: Int64s) -> Int64s:
        """The indexes of the operations with those micro-operations."""
        return self.transactions.index[self.owner[at]]


class _Repeated(Struct, frozen=True):
    """The micro-operations whose transaction touches their key more than once, by transaction, key and position."""

    at: Int64s  # rows of _Mops
    group: Int64s  # One number for each pair of transaction and key, ascending.


def _repeated(mops: _Mops) -> _Repeated:
    pair = mops.owner * max(1, len(mops.keys)) + mops.code
    order, sorted_pair = ordered(pair)
    is_first = first_of_each(sorted_pair)
    is_alone = is_first & np.append(is_first[1:], True)
    return _Repeated(order[~is_alone], sorted_pair[~is_alone])


def _roles(mops: _Mops, repeated: _Repeated) -> tuple[Bools, Bools, Bools]:
    """Flags of micro-operations: `is_update`, `is_final` and `is_again`, as in `ReadRows` and `AppendRows`."""
    is_final = ~mops.is_read
    is_again = np.zeros(len(mops.rows), np.bool_)
    is_update = np.zeros(len(mops.rows), np.bool_)
    is_read = mops.is_read[repeated.at]
    appends = repeated.at[~is_read]
    is_first_append = first_of_each(repeated.group[~is_read])
    is_final[appends[:-1]] = is_first_append[1:]
    is_again[appends] = ~is_first_append
    is_first = first_of_each(repeated.group)
    group = np.cumsum(is_first) - 1
    has_append = np.zeros(len(is_first), np.bool_)
    has_append[group[~is_read]] = True
    is_update[repeated.at[is_first & is_read & has_append[group]]] = True
    return is_update, is_final, is_again


def _report(mops: _Mops, repeated: _Repeated, future_reads: Int64s, weights: Weights) -> Report:
    transactions, is_read = mops.transactions, mops.is_read
    tally = Counter(
        {
            "ok": int(np.count_nonzero(transactions.outcome == OK)),
            "fail": int(np.count_nonzero(transactions.outcome == FAIL)),
            "info": int(np.count_nonzero(transactions.outcome == INFO)),
            "micro-operations": len(transactions.f),
            "register-writes": int(np.count_nonzero(transactions.f == WRITE)),
            "elements-read": len(transactions.elements),
        }
    )
    internal, reads, own_reads = _internal(mops, repeated)
    chances = {"duplicate-elements": is_read & (mops.length > 1), "internal": reads, "future-read": future_reads}
    chances["missed-own-write"] = own_reads
    return Report(internal, tally + Counter({name: weights.count(mops.key[rows]) for name, rows in chances.items()}))


def _internal(mops: _Mops, repeated: _Repeated) -> tuple[tuple[Sighting, ...], Int64s, Int64s]:
    """Transactions that contradict themselves, and the rows of the reads that could have shown it.

    A read must equal the transaction's previous read of the key plus its appends since. A first read of a key to which
    the transaction has appended must end with what it appended. A read after an own append misses that unless it ends
    with the last one: if another transaction had appended in between, the own append extended that. The last rows are
    the reads after own appends.
    """
    at, group = repeated.at, repeated.group
    is_read = mops.is_read[at]
    place = np.arange(len(at))
    first = np.maximum.accumulate(np.where(first_of_each(group), place, 0))
    last_read = np.maximum.accumulate(np.where(is_read, place, -1))
    read = np.flatnonzero(is_read & (place != first))
    before = np.append(-1, last_read)[read]  # The read before this one, of any group,
    has_read = before >= first[read]  # and True if it is of the same group.
    before = np.where(has_read, before, 0)
    appended = mops.value[at[~is_read]]
    append_count = np.concatenate(([0], np.cumsum(~is_read)))
    known_from = append_count[np.where(has_read, before, first[read])]
    has_own = append_count[read] > append_count[first[read]]
    known = append_count[read] - known_from

    this, that = at[read], at[before]
    base = np.where(has_read, mops.length[that], np.maximum(mops.length[this] - known, 0))
    is_right = np.where(has_read, mops.length[this] == base + known, mops.length[this] >= known)
    compared = np.where(is_right & has_read, base, 0)
    is_right &= compared == common_prefix(
        mops.elements, mops.elements, left_start=mops.start[this], right_start=mops.start[that], length=compared
    )
    compared = np.where(is_right, known, 0)
    is_right &= compared == common_prefix(
        mops.elements, appended, left_start=mops.start[this] + base, right_start=known_from, length=compared
    )
    last_own = appended[append_count[read[has_own]] - 1]
    shown = np.append(mops.elements, NOTHING)[mops.start[this[has_own]] + mops.length[this[has_own]] - 1]
    is_missed = (mops.length[this[has_own]] == 0) | (shown != last_own)
    sightings = _of_first(mops, "internal", this[~is_right])
    return (*sightings, *_of_first(mops, "missed-own-write", this[has_own][is_missed])), this, this[has_own]


def _of_first(mops: _Mops, anomaly: str, wrong: Int64s) -> tuple[Sighting, ...]:
    """A sighting of the transactions with such reads. The first counts: later ones are compared with a wrong one."""
    wrong = np.sort(wrong)
    wrong = wrong[first_of_each(mops.owner[wrong])]
    return seen(anomaly, len(wrong), op=mops.op(wrong), key=mops.key[wrong])


def _foreseen(mops: _Mops, repeated: _Repeated) -> tuple[Bools, Int64s]:
    """True for appends whose element the same ok transaction had read before; and the rows of reads before an append.

    Cost: a sort of what those reads show, however many appends follow.
    """
    at = repeated.at
    is_read, place = mops.is_read[at], np.arange(len(at))
    group = np.cumsum(first_of_each(repeated.group)) - 1
    append = np.flatnonzero(~is_read & (mops.outcome[at] == OK))
    last = np.full(len(at), -1)
    last[group[append]] = append  # The last assignment wins: the last append of each group.
    read = np.flatnonzero(is_read & (place < last[group]))
    length = mops.length[at[read]]
    element = mops.elements[expand(mops.start[at[read]], length)]

    values, number = codes(np.concatenate((mops.value[at[append]], element)))
    appended = group[append] * max(1, len(values)) + number[: len(append)]
    order, shown = ordered(np.repeat(group[read], length) * max(1, len(values)) + number[len(append) :])
    first = np.searchsorted(shown, appended)  # The earliest read that shows it, as the sort is stable.
    is_shown = np.append(shown, -1)[first] == appended
    reader = np.append(np.repeat(read, length)[order], 0)[first]
    is_foreseen = np.zeros(len(mops.rows), np.bool_)
    is_foreseen[at[append[is_shown & (reader < append)]]] = True
    return is_foreseen, at[read]


def _key_rows(
    mops: _Mops, is_update: Bools, is_final: Bools, is_again: Bools, is_foreseen: Bools, report: Report
) -> KeyRows:
    """All rows of the chunk."""
    read, append = np.flatnonzero(mops.is_read), np.flatnonzero(~mops.is_read)
    length = mops.length[read]
    longest = longest_lists(mops.code[read], mops.start[read], length, mops.elements)
    is_prefix = longest.agreed == length
    whole = read[~is_prefix]
    lists = np.concatenate((read[longest.row], whole))
    read_list = longest.owner
    read_list[~is_prefix] = len(longest.row) + np.arange(len(whole))
    # Operations without an end, or not ok, get OPEN_END below; every ok operation ends before that.
    after = np.minimum(mops.transactions.after, OPEN_END - 1).astype(np.int32)
    list_length = mops.length[lists]
    # An operation that may have happened precedes none in real time, even if its record has an end.
    append_after = np.where(mops.outcome[append] == OK, after[mops.owner[append]], OPEN_END).astype(np.int32)
    return KeyRows(
        ListRows(mops.key[lists], mops.op(lists).astype(np.int32), np.cumsum(list_length) - list_length, list_length),
        mops.elements[expand(mops.start[lists], list_length)],
        ReadRows(
            of_list=read_list.astype(np.int32),
            op=mops.op(read).astype(np.int32),
            after=after[mops.owner[read]],
            length=length.astype(np.int32),
            is_update=is_update[read],
        ),
        AppendRows(
            key=mops.key[append],
            value=mops.value[append],
            op=mops.op(append).astype(np.int32),
            after=append_after,
            outcome=mops.outcome[append],
            is_final=is_final[append],
            is_again=is_again[append],
            is_foreseen=is_foreseen[append],
        ),
        report,
    )


def partition_of(key: Int64s, partitions: int) -> Int64s:
    """The partition of each key, a hash of its bits: neighbouring keys spread over all partitions."""
    mixed = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(partitions)).astype(np.int64)


def _parted(whole: KeyRows, partitions: int) -> Iterator[KeyRows]:
    """The rows about the keys of each partition, the report with the first one. Sorts once, however many partitions."""
    place = partition_of(whole.lists.key, partitions)
    lists, reads = groups(place, partitions), groups(place[whole.reads.of_list], partitions)
    appends = groups(partition_of(whole.appends.key, partitions), partitions)
    for number, rows in enumerate(zip(lists, reads, appends, strict=True)):
        yield chosen(whole, *rows, whole.report if number == 0 else Report((), Counter()))
