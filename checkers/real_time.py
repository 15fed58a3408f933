"""S23 real-time-order: positions obey real time, where that is promised."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from checkers.arrow import integers
from checkers.files import DAMAGE, damaged
from checkers.ragged import ordered
from checkers.stream_index import first_rows
from harness.core.columns import INFO, NEVER, Int64s, SourceWrites
from harness.core.promises import StreamContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Operations that wrote, with their positions, arrays (n,); `complete_seq` is NEVER for one that may still act."""

    op: Int64s
    process: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s
    position: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """The first operation whose position is not above that of one that had ended before it; how many there are."""

    op: int
    position: int
    before: int
    before_position: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTime:
    """What S23 says of a source."""

    first: Reversal | None
    witnesses: int


def read_placed(history: Path, writes: SourceWrites) -> Placed:
    """The operations of those writes that have a position. Raises HistoryError if a file is damaged."""
    try:
        with pq.ParquetFile(history / "ops.parquet", page_checksum_verification=True) as file:
            table = file.read(columns=["index", "process"], use_threads=False)
    except DAMAGE as problem:
        raise damaged(history, problem) from problem
    known = np.flatnonzero(writes.position != NEVER)
    row = known[first_rows(writes.op[known])]
    op = writes.op[row]
    process = integers(table["process"])[np.searchsorted(integers(table["index"]), op)]
    return Placed(
        op=op,
        process=process,
        invoke_seq=writes.invoke_seq[row],
        complete_seq=np.where(writes.outcome[row] == INFO, NEVER, writes.complete_seq[row]),
        position=writes.position[row],
    )


def real_time_order(ops: Placed, contract: StreamContract) -> RealTime:
    """S23: writes below one that had been answered before they were invoked; if a position is one's only, or at it.

    Nothing is said where it is not promised (`realtime`), or where positions of partitions do not compare. A witness is
    an operation before which one of another process had been answered. O(n log n).
    """
    if contract.realtime == "none" or not contract.is_position_global or len(ops.op) == 0:
        return RealTime(first=None, witnesses=0)
    by_end = ordered(ops.complete_seq)[0]
    ended = ops.complete_seq[by_end]
    reached = np.maximum.accumulate(ops.position[by_end])
    before = np.searchsorted(ended, ops.invoke_seq)
    top = np.append(-1, reached)[before]
    is_sole = contract.is_position_unique and contract.atomic_unit == "transaction"
    broken = np.flatnonzero((ops.position < top) | (is_sole & (ops.position == top)))
    witnesses = int(np.count_nonzero(_first_end_of_others(ops) < ops.invoke_seq))
    if len(broken) == 0:
        return RealTime(first=None, witnesses=witnesses)
    first = int(broken[np.argmin(ops.invoke_seq[broken])])
    highest = int(by_end[np.flatnonzero(reached == top[first])[0]])
    found = Reversal(
        op=int(ops.op[first]),
        position=int(ops.position[first]),
        before=int(ops.op[highest]),
        before_position=int(ops.position[highest]),
        count=len(broken),
    )
    return RealTime(first=found, witnesses=witnesses)


def _first_end_of_others(ops: Placed) -> Int64s:
    """For each operation when the first one of another process had been answered; NEVER."""
    first = int(np.argmin(ops.complete_seq))
    is_own = ops.process == ops.process[first]
    other = int(ops.complete_seq.min(initial=NEVER, where=~is_own))
    return np.where(is_own, other, ops.complete_seq[first])
