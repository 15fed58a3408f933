"""Timestamps against real time: where a system reports timestamps, they must follow the order in which things happened.

The timestamp of an operation is its write's, or its read's if it writes nothing. Only transactions and operations
called in `ORDERED` count: a read of the past, or one that need not be fresh, takes any timestamp.
1. `timestamp-regress`: an operation that was invoked after another had been answered has at least its timestamp.
2. `write-not-above`: a write that was invoked after another operation had been answered has a higher timestamp.
A read-then-write counts with both: its read is judged by 1, its write by 2. O(n log n), by one running maximum.

Witnesses: of 1, reads that were invoked after an answer with a timestamp; of 2, such writes.
Source: the published text of Materialize, "Transactional Consistency", which has the two rules in its description.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.engine.protocol import Check, Context
from checkers.history.names import Names
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import NEVER, OK, Int64s
from harness.core.verdict import Judgement

CHECKER: Final = "realtime"
REGRESS: Final = "timestamp-regress"
NOT_ABOVE: Final = "write-not-above"
ANOMALIES: Final[Mapping[str, str]] = {
    REGRESS: "An operation has a lower timestamp than one that had been answered before it was invoked.",
    NOT_ABOVE: "A write has no higher timestamp than an operation that had been answered before it was invoked.",
}
ORDERED: Final = ("txn", "change", "query", "read-source")


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all operations with timestamps. Raises HistoryError if the history is damaged."""
    columns = ["index", "after", "read_ts", "commit_ts"]
    ops = read_columns(history / "ops.parquet", columns, outcome=[OK], f=ORDERED)
    order = np.argsort(integers(ops["index"]), kind="stable")
    index, after, read, commit = (integers(ops[name], NEVER)[order] for name in columns)
    stamp = np.where(commit != NEVER, commit, read)
    floor, by = _floor(index, after, stamp)
    reads = np.flatnonzero((read != NEVER) & (by >= 0))
    writes = np.flatnonzero((commit != NEVER) & (by >= 0))
    low = reads[read[reads] < floor[reads]]
    level = writes[commit[writes] <= floor[writes]]
    troubles = []
    for anomaly, found, stamps in ((REGRESS, low, read), (NOT_ABOVE, level, commit)):
        if len(found):
            row = int(found[0])
            first, second = int(index[by[row]]), int(index[row])
            sentence = _sentence(anomaly, first, int(floor[row]), second, int(stamps[row]), context.name)
            troubles.append(Trouble(anomaly, sentence, (first, second), (first, second), count=len(found)))
    return judgement(CHECKER, ANOMALIES, troubles, {REGRESS: len(reads), NOT_ABOVE: len(writes)})


def _floor(index: Int64s, after: Int64s, stamp: Int64s) -> tuple[Int64s, Int64s]:
    """For each operation the highest timestamp that was answered before it was invoked, and its row; -1 for none.

    `index`, `after` and `stamp` are (n,); operations without a timestamp have NEVER.
    """
    ended = np.flatnonzero((stamp != NEVER) & (after != NEVER))
    ended = ended[np.argsort(after[ended], kind="stable")]
    highest = np.maximum.accumulate(stamp[ended])
    rises = np.maximum.accumulate(np.where(stamp[ended] == highest, np.arange(len(ended)), 0))
    place = np.searchsorted(after[ended], index, side="right") - 1
    inside = np.maximum(place, 0)
    if not len(ended):
        return np.zeros(len(index), np.int64), np.full(len(index), -1, np.int64)
    return highest[inside], np.where(place >= 0, ended[rises[inside]], -1)


def _sentence(anomaly: str, first: int, floor: int, second: int, stamp: int, name: Names) -> str:
    """The violation, for people."""
    verb = "read at" if anomaly == REGRESS else "wrote at"
    return (
        f"T{second} {verb} {name.forms.position(stamp)}, although T{first} had been answered at "
        f"{name.forms.position(floor)} before T{second} was invoked."
    )


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
