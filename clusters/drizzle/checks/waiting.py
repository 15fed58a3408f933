"""Commits that wait for a reader of the log: guarantee G27.

`waiting-commit`: a master reports how long its commits take. None takes longer than LIMIT_MS unless a fault was in
force that strikes the master itself. A witness is a report while a fault struck another node, or a link.
"""

from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.tables import MS, samples, windows
from checkers.history.troubles import Trouble, judgement
from harness.core.verdict import Judgement

CHECKER: Final = "waiting-commits"
WAITING: Final = "waiting-commit"
ANOMALIES: Final = {WAITING: "A commit waited, although only readers of the log were slow."}
PROBE: Final = "commit-ms"
LIMIT_MS: Final = 1_000  # In a container on a busy machine a commit took 232 ms.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all commits. Raises HistoryError if the history is damaged."""
    faults = windows(history, context.excuses)
    troubles, witnesses = [], 0
    for sample in samples(history, PROBE)[PROBE]:
        begin = sample.ns - sample.value * MS
        during = [
            each for each in faults if each.begin_ns <= sample.ns and begin <= each.end_ns + context.bounds.grace_ns
        ]
        own = [each for each in during if not each.targets or sample.node in each.targets]
        witnesses += len(during) > len(own)
        if not own and sample.value > LIMIT_MS:
            sentence = f"A commit on {sample.node} took {sample.value} ms, although no fault struck {sample.node}."
            troubles.append(Trouble(WAITING, sentence, (sample.node, sample.ns)))
    return judgement(CHECKER, ANOMALIES, troubles, {WAITING: witnesses})


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
