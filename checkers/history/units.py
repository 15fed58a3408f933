"""Units of a stream, for histories without a source; and the numbers by which events name the source's units."""

import numpy as np

from checkers.columns import runs
from checkers.columns.index import codes, first_rows, is_kind
from checkers.columns.runs import distinct
from harness.core.columns import BACKFILL, NEVER, OK, ROW, WATERMARK, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

NO_KEY = -1  # The key of an announced row that nobody received: a watermark covers it if it covers all keys.


def announced_writes(deliveries: Deliveries) -> SourceWrites:
    """The rows of a stream's units, as writes of one operation for each unit.

    A row that was received has its own key, value, position and number. A row that is missing from the announced size
    has only the unit's highest position, and no partition until every partition's watermarks have reached that: from
    then on it is missing wherever it belongs, and counts beside the last row of its unit that came. A row without a
    unit that has the position, key and number of a row with one, but another value, becomes a write by itself;
    otherwise it would count as that row. Only the rule for torn units may use these writes.
    """
    d = deliveries
    is_unit = is_kind(d.kind, (ROW, BACKFILL)) & (d.unit != NEVER)
    rows = np.flatnonzero(is_unit)
    rows = rows[first_rows(d.unit[rows], d.position[rows], d.key[rows], d.ordinal[rows])]
    units, unit = runs.codes(d.unit[rows])
    count = np.bincount(unit, minlength=len(units))
    size = np.zeros(len(units), np.int64)
    np.maximum.at(size, unit, np.where(d.unit_rows[rows] == NEVER, 0, d.unit_rows[rows]))
    last = np.zeros(len(units), np.int64)
    order = runs.ordered(d.position[rows])[0]
    last[unit[order]] = rows[order]
    unseen = np.repeat(last, np.maximum(size - count, 0))
    number = NEVER - 1 - np.arange(len(unseen))  # Different from every number that a row can have.
    alone = _rivals(d, rows)
    op = d.unit.copy()
    op[alone] = -1 - np.arange(len(alone))  # Different from every unit.
    rows = np.append(rows, alone)

    def column(seen: Int64s, other: Int64s) -> Int64s:
        return np.append(seen[rows], other)

    never = np.full(len(rows) + len(unseen), NEVER, np.int64)
    return SourceWrites(
        op=column(op, d.unit[unseen]),
        outcome=np.full(len(never), OK, np.int8),
        key=column(d.key, np.full(len(unseen), NO_KEY)),
        value=column(d.value, number),
        position=column(d.position, d.position[unseen]),
        ordinal=column(d.ordinal, number),
        epoch=column(d.epoch, d.epoch[unseen]),
        span=column(d.span, np.where(last_reached(d, d.position[unseen]) < 0, -1, d.span[unseen])),
        invoke_seq=never,
        complete_seq=never,
        txn=never,
        version=never,
    )


def last_reached(deliveries: Deliveries, position: Int64s) -> Int64s:
    """The partition whose watermarks reach each position last; -1 if some partition's never do, or there is none."""
    d = deliveries
    spans = distinct(d.span[d.span >= 0])
    result, latest = np.full(len(position), -1, np.int64), np.full(len(position), -1, np.int64)
    for span in spans.tolist():
        marks = np.flatnonzero((d.kind == WATERMARK) & (d.span == span))
        reached = np.maximum.accumulate(d.position[marks])
        first = np.append(marks, NEVER)[np.searchsorted(reached, position)]
        result[first > latest] = span
        latest = np.maximum(latest, first)
    result[latest == NEVER] = -1
    return result


def _rivals(deliveries: Deliveries, named: Int64s) -> Int64s:
    """The first rows without a unit that have position, key and number of one of `named`, but another value.

    Execution: two transactions of one position each write x as their first row, and only the second one names its unit.
    A session that received only the row of the first has not received that of the second.
    """
    d = deliveries
    rows = np.append(named, np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL)) & (d.unit == NEVER)))
    identity = codes(d.position[rows], d.key[rows], d.ordinal[rows])
    first = first_rows(identity, d.value[rows])  # A named row comes before one without.
    first = first[first >= len(named)]
    result: Int64s = rows[first[np.isin(identity[first], identity[: len(named)])]]
    return result


def unit_names(writes: SourceWrites) -> Int64s:
    """The number by which events may name each write's unit: its transaction's. NEVER if two operations share it."""
    txn, op = writes.txn, writes.op
    is_same = txn[1:] == txn[:-1]
    is_same &= op[1:] != op[:-1]
    if not is_same.any() and runs.is_ascending(txn):
        return txn  # The usual case: the numbers ascend, and each operation has its own.
    result = txn.copy()
    name = codes(writes.txn)
    least = np.full(int(name.max(initial=-1)) + 1, NEVER)
    most = np.full(len(least), np.iinfo(np.int64).min)
    np.minimum.at(least, name, writes.op)
    np.maximum.at(most, name, writes.op)
    result[(least < most)[name]] = NEVER
    return result


def unit_of(writes: SourceWrites, contract: StreamContract) -> Int64s:
    """The unit of each write, the set of writes that must not be torn: an epoch, or an operation."""
    if contract.atomic_unit == "epoch":
        return epoch_of(writes, contract)
    return writes.op


def epoch_of(columns: Deliveries | SourceWrites, contract: StreamContract) -> Int64s:
    """The epoch of each row; the position if positions are epochs."""
    return columns.position if contract.position == "epoch" else columns.epoch


def is_final_only(contract: StreamContract) -> bool:
    """True if a position has only one event for each key, the last change.

    Then neither a number in the unit nor a value is needed: the history does not say which of an epoch's operations
    wrote last.
    """
    return contract.unit_rows == "final" and (contract.atomic_unit == "epoch" or contract.is_position_unique)
