"""The first half of the check of registers: the rows of one chunk of transactions, by register.

Theory of operation.
1. A `Touch` is one row for a transaction and a register. It holds the *external read*, the read before which the
   transaction did nothing to that register; and the *final write*, which others may see.
2. Writes before the final one must not be seen by others: they are sent as `Passed`, to find reads that show them.
3. A later read must show what the transaction itself read or wrote last. One that does not contradicts its transaction,
   and is sent as a `Passed` read, as another transaction may have written what it shows. If the transaction wrote the
   register before that read, it misses its own last write.
4. Reads count only in ok transactions, as for lists. A failed transaction is kept for its writes.

Arrays in, arrays out; no loop over transactions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.runs import codes, first_of_each, groups, ordered
from checkers.columns.table import Join, concat, ordered_by, take
from checkers.graph.edges import OPEN_END, Int32s
from checkers.graph.sightings import Report, Sighting, seen, union
from checkers.transactions.list_rows import partition_of
from harness.core.columns import NEVER, NOTHING, OK, READ, WRITE, Bools, Int8s, Int64s, Transactions

ABSENT: Final = -2  # In place of a value: the transaction did not read, or write, the register.


class Touches(Struct, frozen=True):
    """The external read and final write of each transaction on each register: n rows.

    `after` is OPEN_END for operations without a certain end, here and in `Passed`.
    """

    key: Int64s
    op: Int32s
    after: Int32s
    process: Int64s
    commit: Int64s
    outcome: Int8s
    read: Int64s  # The external read: a value, NOTHING, or ABSENT.
    write: Int64s  # The final write: a value, NOTHING (it was emptied), or ABSENT.


class Passed(Struct, frozen=True):
    """Writes that are not final; or reads that are not external, and do not show what the transaction itself left."""

    key: Int64s
    op: Int32s
    after: Int32s
    outcome: Int8s
    value: Int64s
    is_early: Bools  # Of a read: its transaction writes that value only later.
    is_followed: Bools  # Its transaction writes the register later.


class RegisterRows(Struct, frozen=True):
    """The rows of one chunk about some registers: touches, writes passed over, contradicting reads, and the report."""

    touches: Touches
    passing: Passed
    odd: Passed
    report: Report


def without(rows: RegisterRows, keys: Int64s) -> RegisterRows:
    """The rows about all other registers."""
    if not len(keys):
        return rows
    touches, passing, odd = (~np.isin(each.key, keys) for each in (rows.touches, rows.passing, rows.odd))
    return RegisterRows(take(rows.touches, touches), take(rows.passing, passing), take(rows.odd, odd), rows.report)


def concatenated(parts: Sequence[RegisterRows]) -> RegisterRows:
    """The rows of several chunks in the order of their operations, and the union of their reports."""
    return RegisterRows(
        ordered_by(concat([part.touches for part in parts]), "op"),
        concat([part.passing for part in parts]),
        concat([part.odd for part in parts]),
        union(part.report for part in parts),
    )


def register_rows(transactions: Transactions) -> RegisterRows:
    """The rows of the chunk about registers. To write NOTHING resets a register to its initial state."""
    owner = np.repeat(np.arange(len(transactions.index)), np.diff(transactions.mop_start))
    is_read = (transactions.f == READ) & ~transactions.is_known & (transactions.value >= NOTHING)
    is_read &= transactions.outcome[owner] == OK
    rows = np.flatnonzero(is_read | (transactions.f == WRITE))
    return _Grouped(transactions, owner[rows], transactions.key[rows], transactions.value[rows], is_read[rows]).rows()


class _Grouped:
    """The micro-operations on registers, grouped by transaction and register; in a group they stay in their order."""

    def __init__(self, transactions: Transactions, owner: Int64s, key: Int64s, value: Int64s, is_read: Bools) -> None:
        keys, code = codes(key)
        pair = owner * max(1, len(keys)) + code
        order, pair = ordered(pair)
        self.transactions = transactions
        self.owner, self.key, self.value, self.is_read = owner[order], key[order], value[order], is_read[order]
        self.is_first = first_of_each(pair)
        self.group = np.cumsum(self.is_first) - 1
        self.start = np.flatnonzero(self.is_first)
        self.place = np.arange(len(order))
        stop = np.append(self.start[1:], len(order))[: len(self.start)]
        last_write = np.maximum.accumulate(np.where(self.is_read, -1, self.place))[stop - 1]
        self.last_write = np.where(last_write >= self.start, last_write, -1)  # For each group.

    def rows(self) -> RegisterRows:
        """The rows of all groups, and the report with the transactions that contradict themselves."""
        value_before = np.concatenate(([ABSENT], self.value))[:-1]
        is_later = self.is_read & ~self.is_first
        odd = np.flatnonzero(is_later & (self.value != value_before))
        passing = np.flatnonzero(~self.is_read & (self.place != self.last_write[self.group]))
        is_own_missed = self._has_written[odd]
        sightings = (*self._seen("internal", odd), *self._seen("missed-own-write", odd[is_own_missed]))
        report = Report(sightings, self._tally(is_later))
        return RegisterRows(self._touches(), self._passed(passing), self._passed(odd), report)

    def _touches(self) -> Touches:
        whole, start = self.transactions, self.start
        owner = self.owner[start]
        outcome = whole.outcome[owner]
        has_write = self.last_write >= 0
        return Touches(
            key=self.key[start],
            op=whole.index[owner].astype(np.int32),
            after=self._after(owner),
            process=whole.process[owner],
            commit=whole.commit[owner] if whole.commit.size else np.full(len(owner), NEVER),
            outcome=outcome,
            read=np.where(self.is_read[start], self.value[start], ABSENT),
            write=np.where(has_write, self.value[self.last_write], ABSENT),
        )

    def _passed(self, rows: Int64s) -> Passed:
        owner = self.owner[rows]
        index, outcome = self.transactions.index[owner], self.transactions.outcome[owner]
        is_early = self.is_read[rows]
        reads = rows[is_early]
        is_early[is_early] = reads < self._first_own_write(reads)
        is_followed = rows < self.last_write[self.group[rows]]
        ops, value = index.astype(np.int32), self.value[rows]
        return Passed(self.key[rows], ops, self._after(owner), outcome, value, is_early, is_followed)

    def _first_own_write(self, rows: Int64s) -> Int64s:
        """For each of those rows the place of its transaction's first write of that value to that register; else -1."""
        is_theirs = np.zeros(len(self.start), np.bool_)
        is_theirs[self.group[rows]] = True
        writes = np.flatnonzero(~self.is_read & is_theirs[self.group])
        found = Join((self.group[rows], self.value[rows]), (self.group[writes], self.value[writes]))
        return np.append(writes, -1)[found.first]

    @cached_property
    def _has_written(self) -> Bools:
        """True for the rows before which their transaction wrote the register."""
        writes = np.cumsum(~self.is_read)
        before = np.concatenate(([0], writes))[self.start]
        result: Bools = writes - ~self.is_read > before[self.group]
        return result

    def _after(self, owner: Int64s) -> Int32s:
        whole = self.transactions
        ends = np.where(whole.outcome[owner] == OK, np.minimum(whole.after[owner], OPEN_END - 1), OPEN_END)
        return ends.astype(np.int32)

    def _seen(self, anomaly: str, odd: Int64s) -> tuple[Sighting, ...]:
        """A sighting of the transactions that contradict themselves there; the example is the first read that does."""
        first = np.sort(odd)
        first = first[first_of_each(self.owner[first])]
        return seen(anomaly, len(first), op=self.transactions.index[self.owner[first]], key=self.key[first])

    def _tally(self, is_later: Bools) -> Counter[str]:
        is_update = self.is_read[self.start] & (self.last_write >= 0)
        return Counter(
            {
                "internal": int(np.count_nonzero(is_later)),
                "missed-own-write": int(np.count_nonzero(is_later & self._has_written)),
                "future-read": int(np.count_nonzero(is_update)),
                "lost-update": int(np.count_nonzero(is_update)),
                "registers-read": int(np.count_nonzero(self.is_read)),
            }
        )


def parted(whole: RegisterRows, *, partitions: int) -> Iterator[RegisterRows]:
    """The rows about the keys of each partition; the report goes with the first."""
    columns = (whole.touches, whole.passing, whole.odd)
    rows = [groups(partition_of(each.key, partitions), partitions) for each in columns]
    for number, (touches, passing, odd) in enumerate(zip(*rows, strict=True)):
        report = whole.report if number == 0 else Report((), Counter())
        yield RegisterRows(take(whole.touches, touches), take(whole.passing, passing), take(whole.odd, odd), report)
