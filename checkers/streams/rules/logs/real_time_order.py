"""S23 real-time-order: positions obey real time, if that is promised."""

from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.blocks import pieces
from checkers.columns.files import opened
from checkers.columns.index import Places
from checkers.columns.runs import first_of_each, ordered
from checkers.history.names import Forms, forms_of
from checkers.streams.findings import stream_finding
from checkers.streams.rule import Conclusion, Need, OfSource, Rule
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import FAIL, INFO, NEVER, Int64s, SourceWrites
from harness.core.promises import Bounds, Naming, StreamContract
from harness.core.verdict import Finding


class Placed(Struct, frozen=True, kw_only=True):
    """Operations that wrote, with their positions, arrays (n,); `complete_seq` is NEVER for one that may still act."""

    op: Int64s
    process: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s
    position: Int64s


class Reversal(Struct, frozen=True, kw_only=True):
    """The first operation whose position is below that of an operation which had ended before it began.

    `before` is the latter, and `count` the number of such first operations.
    """

    op: int
    position: int
    before: int
    before_position: int
    count: int


class RealTime(Struct, frozen=True, kw_only=True):
    """The result of S23 for a source."""

    first: Reversal | None
    witnesses: int


def read_placed(history: Path, writes: SourceWrites) -> Placed:
    """The operations of those writes that may have happened, with a position. Writes must be sorted by operation.

    Raises HistoryError if a file is damaged.
    """
    row = np.flatnonzero(first_of_each(writes.op) & (writes.position != NEVER) & (writes.outcome != FAIL))
    op = writes.op[row]
    return Placed(
        op=op,
        process=_processes(history, op),
        invoke_seq=writes.invoke_seq[row],
        complete_seq=np.where(writes.outcome[row] == INFO, NEVER, writes.complete_seq[row]),
        position=writes.position[row],
    )


def _processes(history: Path, op: Int64s) -> Int64s:
    """The process of each of those operations, which ascend. Reads one row group at a time, to save memory."""
    result = np.empty(len(op), np.int64)
    with opened(history / "ops.parquet") as file:
        end = 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["index", "process"], use_threads=False)
            index = integers(table["index"])
            begin, end = end, int(np.searchsorted(op, index[-1], "right")) if len(index) else end
            result[begin:end] = integers(table["process"])[Places(index).of(op[begin:end])]
    return result


def real_time_order(ops: Placed, contract: StreamContract) -> RealTime:
    """S23: operations with a lower position than one that had been answered before they were invoked.

    If positions are unique, an equal position is a violation as well; but not where a write that changes nothing makes
    no event (`has_noop_events`), as its position may be that of the last change.

    Nothing is judged if real-time order is not promised (`realtime`), or if positions of partitions are not comparable.
    A witness is an operation that was invoked after one of another process had been answered. O(n log n).
    """
    if contract.realtime == "none" or not contract.is_position_global or len(ops.op) == 0:
        return RealTime(first=None, witnesses=0)
    by_end, ended = ordered(ops.complete_seq)
    reached = np.maximum.accumulate(ops.position[by_end])
    is_sole = contract.is_position_unique and contract.atomic_unit == "transaction" and contract.has_noop_events
    broken = np.concatenate(
        [piece.start + _broken(ops, ended, reached, rows=piece, is_sole=is_sole) for piece in pieces(len(ops.op))]
    )
    witnesses = _ended_before(ops)
    if len(broken) == 0:
        return RealTime(first=None, witnesses=witnesses)
    first = int(broken[np.argmin(ops.invoke_seq[broken])])
    top = _tops(ops, ended, reached, slice(first, first + 1))[0]
    highest = int(by_end[np.flatnonzero(reached == top)[0]])
    found = Reversal(
        op=int(ops.op[first]),
        position=int(ops.position[first]),
        before=int(ops.op[highest]),
        before_position=int(ops.position[highest]),
        count=len(broken),
    )
    return RealTime(first=found, witnesses=witnesses)


def _broken(ops: Placed, ended: Int64s, reached: Int64s, *, rows: slice, is_sole: bool) -> Int64s:
    top, position = _tops(ops, ended, reached, rows), ops.position[rows]
    return np.flatnonzero((position < top) | (is_sole & (position == top)))


def _tops(ops: Placed, ended: Int64s, reached: Int64s, rows: slice) -> Int64s:
    """For each of those operations the highest position that had been answered before it was invoked; -1 for none."""
    before = np.searchsorted(ended, ops.invoke_seq[rows])
    return np.where(before > 0, reached[before - 1], -1)


def _ended_before(ops: Placed) -> int:
    """The number of operations invoked after one of another process had been answered."""
    first = int(np.argmin(ops.complete_seq))
    is_own = ops.process == ops.process[first]
    other = int(ops.complete_seq.min(initial=NEVER, where=~is_own))
    is_after_own, is_after_other = ops.invoke_seq > ops.complete_seq[first], ops.invoke_seq > other
    return int(np.count_nonzero(np.where(is_own, is_after_other, is_after_own)))


def reversal_finding(reversal: Reversal, forms: Forms) -> Finding:
    """The finding that positions do not obey real time, by its first example."""
    one = f"Operation {reversal.op} was invoked after operation {reversal.before} had ended"
    return stream_finding(
        REAL_TIME_ORDER.name,
        f"{one}, but its {forms.position(reversal.position)} is not above {forms.digits(reversal.before_position)}.",
        facts=(reversal.op, reversal.position, reversal.before, reversal.before_position),
        count=reversal.count,
        ops=tuple(sorted((reversal.before, reversal.op))),
    )


def _judged(history: Path, writes: SourceWrites, contract: StreamContract) -> Conclusion:
    if contract.realtime == "none":
        return Conclusion()
    found = real_time_order(read_placed(history, writes), contract)
    forms = forms_of(Naming(), contract, Bounds())
    return Conclusion((reversal_finding(found.first, forms),) if found.first else (), found.witnesses)


REAL_TIME_ORDER: Final = Rule(
    name="real-time-order",
    id="S23",
    rank=240,
    anomaly=Anomaly(meaning="A write has a lower position than one that ended before it began.", cause=Cause.ORDER),
    witness="an operation before which one of another process had ended",
    needs=frozenset({Need.SOURCE}),
    scope=OfSource(_judged),
)
