"""The versions of registers: their values, writers and readers.

A *version* is a value of a register. Versions have numbers: 0 .. count - 1 in no particular order, followed by one for
each register's initial state. A register is left out, and reported, if a value that was read has two writers, or if the
same key is used as a list: then its reads have no clear meaning. If a value with two writers was never read, only the
writes of that value are left out. A failed write beside another one of the value, or beside the initial state, does not
count: it did not happen, and the other explains what was read.

What was written was not there at first, as all checkers of registers assume. But no system reads what will be written
only later: if a transaction reads a value that it alone writes, and only afterwards, the value was there at first and
was written again. Such a register is left out, too, unless its first value is known: by a declaration, or by a read of
nothing or of a value that nobody wrote. The order of transactions is not used, as in many histories it is only that of
the file.
"""

from functools import cached_property

import numpy as np
from msgspec.structs import replace

from checkers.columns.runs import codes, distinct
from checkers.columns.table import take
from checkers.graph.edges import OPEN_END, Int32s
from checkers.graph.sightings import Sighting, seen
from checkers.transactions.list_versions import Slots
from checkers.transactions.registers.rows import ABSENT, RegisterRows, without
from harness.core.columns import FAIL, NOTHING, OK, Bools, Int64s

NOBODY = -1


class Registers:
    """The versions of the registers in these rows. `rows` must hold no register that is left out.

    Columns by row of touches: `read_version` and `write_version` (NOBODY for none), `first` and `last` (the version
    that the transaction met, and the one that it left). Columns by version: `code` of its register, `writer` (a row of
    touches) and `passer` (a row of passing writes), NOBODY if there is none. The last two have one more entry, for
    NOBODY.
    """

    def __init__(self, rows: RegisterRows) -> None:
        touches = rows.touches
        self.rows = rows
        parts = (touches.key, rows.passing.key, rows.odd.key)
        self.keys, code = codes(np.concatenate(parts))
        bounds = np.cumsum([len(part) for part in parts])
        self.touch_code, self.passing_code, odd_code = np.split(code, bounds[:-1])
        is_value = [column >= 0 for column in (touches.read, touches.write, rows.passing.value, rows.odd.value)]
        values = (touches.read, touches.write, rows.passing.value, rows.odd.value)
        owners = (self.touch_code, self.touch_code, self.passing_code, odd_code)
        slots = Slots(
            np.concatenate([owner[kept] for owner, kept in zip(owners, is_value, strict=True)]),
            np.concatenate([value[kept] for value, kept in zip(values, is_value, strict=True)]),
            len(self.keys),
        )
        self.count = slots.count
        self.size = self.count + len(self.keys)
        of_values = np.split(slots.given, np.cumsum([np.count_nonzero(kept) for kept in is_value])[:-1])
        numbers = [self._numbers(*columns) for columns in zip(owners, values, of_values, strict=True)]
        self.read_version, self.write_version, self.passing_version, self.odd_version = numbers
        self.first = np.where(self.read_version >= 0, self.read_version, self.write_version)
        self.last = np.where(self.write_version >= 0, self.write_version, self.read_version)
        self.is_vertex = np.append(touches.outcome != FAIL, False)  # NOBODY is the last entry.
        self.writer, self.passer = self._rows_of(self.write_version), self._rows_of(self.passing_version)
        self.code = np.zeros(self.size, np.int64)
        self.value = np.full(self.size, NOTHING)
        for version, owner, value in zip(numbers, owners, values, strict=True):
            self.code[version[version >= 0]] = owner[version >= 0]
            self.value[version[version >= 0]] = value[version >= 0]
        self.code[self.count :] = np.arange(len(self.keys))

    def _numbers(self, code: Int64s, value: Int64s, of_values: Int64s) -> Int64s:
        numbers = np.where(value == NOTHING, self.count + code, NOBODY)
        numbers[value >= 0] = of_values
        return numbers

    def _rows_of(self, version: Int64s) -> Int64s:
        rows = np.full(self.size + 1, NOBODY, np.int64)
        known = np.flatnonzero(version >= 0)
        rows[version[known]] = known
        return rows

    @cached_property
    def spans(self) -> tuple[Int32s, Int32s]:
        """For each version when it was first left and last met: the least end or OPEN_END, the greatest index or -1."""
        touches = self.rows.touches
        left = np.full(self.size, OPEN_END, np.int32)
        ok = np.flatnonzero(touches.outcome == OK)
        np.minimum.at(left, self.last[ok], touches.after[ok])
        met = np.full(self.size, -1, np.int32)
        live = np.flatnonzero(self.is_vertex[:-1])
        np.maximum.at(met, self.first[live], touches.op[live])
        return left, met

    def op(self, row: Int64s) -> Int64s:
        """The operations of those rows of touches."""
        return self.rows.touches.op[row].astype(np.int64)


def resolved(rows: RegisterRows, *, is_declared: bool = False) -> tuple[Registers, tuple[Sighting, ...]]:
    """The registers in those rows, and sightings of those that are left out.

    `is_declared`: what all registers held at first is declared.
    """
    registers, duplicate = _with_one_writer(rows)
    if is_declared:
        return registers, duplicate
    again = _written_again(registers)
    if not len(again):
        return registers, duplicate
    keys, ops = registers.keys[registers.code[again]], _writer_ops(registers)[again]
    example = seen("written-again", len(distinct(keys)), op=ops, key=keys, element=registers.value[again])
    return Registers(without(registers.rows, keys)), (*duplicate, *example)


def _with_one_writer(rows: RegisterRows) -> tuple[Registers, tuple[Sighting, ...]]:
    """The registers without those of which a value that was read has two writers, and a sighting of these."""
    registers = Registers(rows)
    ambiguous = _written_twice(registers)
    if not ambiguous.any():
        return registers, ()
    registers = Registers(_without_failed(registers, ambiguous))
    rows, ambiguous = registers.rows, _written_twice(registers)
    if not ambiguous.any():
        return registers, ()
    is_read = np.zeros(registers.size + 1, np.bool_)
    for version in (registers.read_version, registers.odd_version):
        is_read[version] = True
    bad = ambiguous & is_read[:-1]
    is_bad = np.zeros(len(registers.keys), np.bool_)
    is_bad[registers.code[bad]] = True
    duplicate = _example(rows, np.append(bad, False), registers, int(np.count_nonzero(is_bad)))
    return Registers(_clean(registers, ambiguous, is_bad)), duplicate


def _written_twice(registers: Registers) -> Bools:
    """For each version True if it has two writers. The initial state counts as one writer."""
    versions = np.concatenate((registers.write_version, registers.passing_version))
    counts = np.bincount(versions[versions >= 0], minlength=registers.size)
    counts[registers.count :] += 1
    result: Bools = counts > 1
    return result


def _without_failed(registers: Registers, ambiguous: Bools) -> RegisterRows:
    """The rows without failed writes of ambiguous values that an operation which did not fail wrote, too.

    A failed reset is one as well: the initial state explains what was read.
    """
    rows = registers.rows
    has_other = np.zeros(registers.size + 1, np.bool_)
    has_other[registers.count :] = True
    has_other[registers.write_version[rows.touches.outcome != FAIL]] = True
    has_other[registers.passing_version[rows.passing.outcome != FAIL]] = True
    is_spare = has_other & np.append(ambiguous, False)
    is_lost = (rows.touches.outcome == FAIL) & is_spare[registers.write_version]
    touches = replace(rows.touches, write=np.where(is_lost, ABSENT, rows.touches.write))
    kept = (touches.read != ABSENT) | (touches.write != ABSENT)
    passing = ~((rows.passing.outcome == FAIL) & is_spare[registers.passing_version])
    return RegisterRows(take(touches, kept), take(rows.passing, passing), rows.odd, rows.report)


def _writer_ops(registers: Registers) -> Int64s:
    """For each version, and for NOBODY, the operation that wrote it; NOBODY if none did."""
    final, passing = np.append(registers.rows.touches.op, NOBODY), np.append(registers.rows.passing.op, NOBODY)
    return np.where(registers.writer >= 0, final[registers.writer], passing[registers.passer]).astype(np.int64)


def _written_again(registers: Registers) -> Int64s:
    """The versions that were there at first, and that an operation wrote again."""
    touches, odd, writer = registers.rows.touches, registers.rows.odd, _writer_ops(registers)
    rows = np.flatnonzero((touches.outcome == OK) & (registers.read_version >= 0))
    version = np.concatenate((registers.read_version[rows], registers.odd_version))
    op = np.concatenate((touches.op[rows], odd.op))
    is_early = np.concatenate((np.ones(len(rows), np.bool_), odd.is_early))
    code = registers.code[version]
    is_known = np.zeros(len(registers.keys), np.bool_)
    is_known[code[writer[version] == NOBODY]] = True
    return distinct(version[is_early & (writer[version] == op) & ~is_known[code]])


def _example(rows: RegisterRows, is_bad: Bools, registers: Registers, count: int) -> tuple[Sighting, ...]:
    final, passing = is_bad[registers.write_version], is_bad[registers.passing_version]
    touches, others = take(rows.touches, final), take(rows.passing, passing)
    ops, keys = np.concatenate((touches.op, others.op)), np.concatenate((touches.key, others.key))
    values = np.concatenate((touches.write, others.value))
    return seen("duplicate-writes", count, op=ops.astype(np.int64), key=keys, element=values)


def _clean(registers: Registers, ambiguous: Bools, is_bad: Bools) -> RegisterRows:
    """The rows without the bad registers, and without writes of values that have two writers."""
    rows = registers.rows
    is_lost = np.append(ambiguous, False)
    touches = replace(rows.touches, write=np.where(is_lost[registers.write_version], ABSENT, rows.touches.write))
    kept = (touches.read != ABSENT) | (touches.write != ABSENT)
    passing = ~is_lost[registers.passing_version]
    left = RegisterRows(take(touches, kept), take(rows.passing, passing), rows.odd, rows.report)
    return without(left, registers.keys[is_bad])
