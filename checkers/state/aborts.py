"""Operations that failed for a reason which only a fault explains.

A system declares such reasons (`Bounds.spurious`), as parts of the errors that its clients report. A fault explains an
abort if the operation was open between its start and the end of its grace.

Witnesses: operations with an answer that were open while no fault was an explanation.
"""

from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed
from checkers.history.intervals import is_met
from checkers.history.tables import rows, seconds, windows
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import FAIL, OK
from harness.core.verdict import Judgement

CHECKER: Final = "aborts"
SPURIOUS: Final = "spurious-abort"
ANOMALIES: Final = {SPURIOUS: "An operation was refused without any of the reasons that are declared."}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all operations with an answer. Raises HistoryError if the history is damaged."""
    reasons = context.bounds.spurious
    excused = disturbed(windows(history, {}), context.bounds.grace_ns)
    troubles, witnesses = [], 0
    columns = ["index", "outcome", "error", "node", "invoke_ns", "complete_ns"]
    for op in rows(history, "ops", columns, outcome=[OK, FAIL]) if reasons else []:
        begin, end = int(op["invoke_ns"]), int(op["complete_ns"])
        if is_met(begin, end, excused):
            continue
        witnesses += 1
        error = op["error"] or ""
        if op["outcome"] == FAIL and any(reason in error for reason in reasons):
            sentence = f"T{op['index']} failed at {seconds(end)} ({error}), though no fault was in force."
            troubles.append(Trouble(SPURIOUS, sentence, (op["index"],), (int(op["index"]),)))
    return judgement(CHECKER, ANOMALIES, troubles, {SPURIOUS: witnesses})


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
