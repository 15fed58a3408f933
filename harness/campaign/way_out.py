"""What to change about a sweep that tested too little, and what to run after one that found nothing."""

from typing import Final

from harness.campaign.document import Sweep
from harness.core.command import seamark
from harness.core.verdict import Verdict
from harness.report.model import WayOut

CHANGES: Final = {
    "a": "Raise `time`, `rate` or `count`, so that more operations succeed",
    "b": "Raise `count` or `time`, so that each kind of fault takes effect and meets operations",
    "c": "Raise `count` or `time`, or add a workload, so that more events could break these promises",
    "d": "Raise `count` or `time`, or add faults, so that runs reach these situations",
    "e": "Raise `time`, so that more runs come to their end",
}


def way_out(sweep: Sweep) -> WayOut | None:
    """The change that lets a vacuous sweep test enough; None for another verdict."""
    if sweep.verdict != Verdict.VACUOUS.value:
        return None
    if sweep.runs < sweep.min_runs:
        change = f"Raise `time_budget`, or lower `min_runs`, which is {sweep.min_runs:,}"
    else:
        change = CHANGES.get(sweep.clause or "", CHANGES["d"])
    return WayOut(sentence=f"{change}, in {sweep.config.path}.", command=seamark("sweep", sweep.config.path))


def more_seeds(sweep: Sweep, first_seed: int) -> str:
    """The command that carries the same sweep out with other seeds: those after its own, the first being given."""
    count = max((cell.planned for cell in sweep.cells), default=1)
    return seamark("sweep", sweep.config.path, "--seed", first_seed + count)
