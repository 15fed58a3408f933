"""Waits and take-overs without a reason: guarantee G23.

`needless-wait`: an insert or delete in one of the tables a0 and a1 ends within 800 ms, if from 4 s before its begin to
its end no fault struck anything but the data node of the other table, and from 2 s before no leader began. Other
operations may wait for a read-then-write of several tables, and those of a new leader for its clock. A witness is such
an operation.

A machine that is too busy counts as a fault: coordinators show when a timer of theirs was late.

`restless-leaders`: no four leaders that answer clients begin within 3 s, if no fault struck anything from 4 s before
the first of them: new coordinators are deployed at longer intervals. A witness is a leader that follows three others.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.tables import Window, rows, samples, windows
from checkers.history.troubles import Trouble, judgement
from clusters.materialize.shape import BAGS, DATA, MS, home_of
from harness.core.columns import NEVER, OK
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement

CHECKER: Final = "waiting"
WAIT, RESTLESS = "needless-wait", "restless-leaders"
ANOMALIES: Final = {
    WAIT: "A write waited, although no fault struck a node that it needs.",
    RESTLESS: "Leaders took over from each other again and again, although no fault struck.",
}
MANY, SOON_NS = 4, 3000 * MS
SEEN_NS = 1000 * MS  # A late timer shows within this time.
LONGEST_NS, GRACE_NS, BEGINNING_NS = 800 * MS, 4000 * MS, 2000 * MS
Row = Mapping[str, Any]


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the writes of tables. Raises HistoryError if the history is damaged."""
    columns = ["index", "invoke_value", "invoke_ns", "complete_ns"]
    ops = [op for op in rows(history, "ops", columns, f=["change"]) if op["complete_ns"] not in (None, NEVER)]
    try:
        decoded = [msgspec.json.decode(op["invoke_value"], type=list[tuple[str, object, object, int]]) for op in ops]
    except msgspec.DecodeError as error:
        raise HistoryError(f"{history}: a change is not of this cluster ({error})") from None
    faults = windows(history, context.excuses)
    probes = samples(history, "epoch", "late")
    opened, late = ([sample.ns for sample in probes[name]] for name in ("epoch", "late"))
    judged = [
        (op, changes[0][0])
        for op, changes in zip(ops, decoded, strict=True)
        if changes and changes[0][0] in BAGS and _is_free(op, changes[0][0], faults, opened, late)
    ]
    served = {op["epoch"] for op in rows(history, "ops", ["epoch"], outcome=[OK])}
    led = sorted(sample.ns for sample in probes["epoch"] if sample.value in served)
    witnesses = {WAIT: len(judged), RESTLESS: max(0, len(led) - MANY + 1)}
    return judgement(CHECKER, ANOMALIES, [*_waits(judged), *_restless(led, faults, late)], witnesses)


def _is_free(op: Row, table: str, faults: Sequence[Window], opened: Sequence[int], late: Sequence[int]) -> bool:
    """True if nothing gives the operation a reason to wait. `opened`: when leaders began. `late`: when a timer was."""
    first, last = op["invoke_ns"] - GRACE_NS, op["complete_ns"]
    others = {str(node) for node in DATA if node != home_of(table)}
    struck = {
        name for fault in faults if fault.begin_ns <= last and fault.end_ns >= first for name in _struck(fault, others)
    }
    if any(first <= ns <= last + SEEN_NS for ns in late):
        return False
    return struck <= others and not any(op["invoke_ns"] - BEGINNING_NS <= ns <= last for ns in opened)


def _struck(fault: Window, others: set[str]) -> Iterator[str]:
    """The nodes that a fault strikes; of a link with one of the `others` only that one."""
    for target in fault.targets:
        ends = target.split(">")
        yield from [end for end in ends if end in others] or ends


def _waits(judged: Sequence[tuple[Row, str]]) -> Iterator[Trouble]:
    for op, table in judged:
        waited_ns = op["complete_ns"] - op["invoke_ns"]
        if waited_ns > LONGEST_NS:
            sentence = (
                f"T{op['index']}, a write to {table}, took {waited_ns // MS} ms, although no fault struck a node that "
                f"it needs."
            )
            yield Trouble(WAIT, sentence, (op["index"],), (op["index"],))


def _restless(opened: Sequence[int], faults: Sequence[Window], late: Sequence[int]) -> Iterator[Trouble]:
    for first, last in zip(opened, opened[MANY - 1 :], strict=False):
        is_struck = any(fault.begin_ns <= last and fault.end_ns >= first - GRACE_NS for fault in faults)
        is_busy = any(first - GRACE_NS <= ns <= last + SEEN_NS for ns in late)
        if last < first + SOON_NS and not is_struck and not is_busy:
            sentence = f"{MANY} leaders began within {(last - first) // MS} ms, although no fault struck."
            yield Trouble(RESTLESS, sentence, (first,))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
