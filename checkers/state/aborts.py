"""Operations that failed for a reason which only a fault explains.

A system declares such reasons (`Bounds.spurious`), as parts of the errors that its clients report. A fault explains an
abort if the operation was open between its start and the end of its grace.

Witnesses: operations with an answer that were open while no fault was an explanation, and that such a reason could have
met: those that append to many keys, if the system names how many (`Bounds.spurious_keys`).
"""

from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.columns.index import first_rows
from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed
from checkers.history.intervals import is_met
from checkers.history.tables import rows, seconds, windows
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import APPEND, FAIL, OK
from harness.core.verdict import Judgement

CHECKER: Final = "aborts"
SPURIOUS: Final = "spurious-abort"
ANOMALIES: Final = {
    SPURIOUS: Anomaly(
        meaning="An operation was refused without any of the reasons that are declared.", cause=Cause.REFUSED
    ),
}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all operations with an answer. Raises HistoryError if the history is damaged."""
    reasons = context.bounds.spurious
    excused = disturbed(windows(history, {}), context.bounds.grace_ns)
    wide = _appending_to(history, context.bounds.spurious_keys) if reasons else frozenset()
    troubles, witnesses = [], 0
    columns = ["index", "outcome", "error", "node", "invoke_ns", "complete_ns"]
    for op in rows(history, "ops", columns, outcome=[OK, FAIL]) if reasons else []:
        begin, end = int(op["invoke_ns"]), int(op["complete_ns"])
        if is_met(begin, end, excused):
            continue
        witnesses += context.bounds.spurious_keys == 0 or op["index"] in wide
        error = op["error"] or ""
        if op["outcome"] == FAIL and any(reason in error for reason in reasons):
            sentence = f"T{op['index']} failed at {seconds(end)} ({error}), though no fault was in force."
            troubles.append(Trouble(SPURIOUS, sentence, (op["index"],), (int(op["index"]),)))
    return judgement(CHECKER, ANOMALIES, troubles, {SPURIOUS: witnesses})


def _appending_to(history: Path, count: int) -> frozenset[int]:
    """The operations that append to at least so many keys; none if that does not matter."""
    if not count:
        return frozenset()
    mops = read_columns(history / "mops.parquet", ["op", "key"], f=[APPEND])
    pairs = first_rows(integers(mops["op"]), integers(mops["key"]))
    op, keys = np.unique(integers(mops["op"])[pairs], return_counts=True)
    return frozenset(op[keys >= count].tolist())


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
