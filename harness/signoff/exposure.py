"""How much the two sweeps tested, and whether they can be compared.

They can if they have the same matrix, and the candidate did not test much less.
"""

from collections.abc import Iterator
from typing import Final

from harness.campaign.document import Sweep, SweepCell, SweepFault
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.signoff.document import ExposureRow
from harness.signoff.statistics import number

LEAST_SHARE: Final = 0.5  # Of the baseline's exposure: a candidate with less was not tested like it.
RUNS: Final = "runs that were not vacuous"
EFFECTIVE_MIN: Final = 5  # The least number of faults of a kind with an effect, in each sweep.
TESTED: Final = (Verdict.VALID.value, Verdict.INVALID.value, Verdict.UNKNOWN.value)
NO_VERDICT: Final = (Verdict.ERROR.value, Verdict.VACUOUS.value, Verdict.UNKNOWN.value)


def judged_runs(sweep: Sweep, cluster: str) -> int:
    """The number of a cluster's runs that were judged. Runs in which the harness failed are no evidence."""
    cells = [cell for cell in sweep.cells if cell.cluster == cluster]
    return sum(cell.runs - cell.counts.get(Verdict.ERROR.value, 0) for cell in cells)


def exposure_rows(baseline: Sweep, candidate: Sweep) -> list[ExposureRow]:
    """The measures of each cluster in both sweeps; those that are too small say why."""
    clusters = dict.fromkeys(cell.cluster for sweep in (baseline, candidate) for cell in sweep.cells)
    return [row for cluster in clusters for row in _rows(baseline, candidate, cluster)]


def shortfalls(baseline: Sweep, candidate: Sweep, rows: list[ExposureRow]) -> Iterator[str]:
    """Sentences that say why the two sweeps cannot be compared, or tested too little; none if they are fine."""
    for name, sweep in (("baseline", baseline), ("candidate", candidate)):
        if sweep.verdict in NO_VERDICT:
            yield f"the {name} is {Verdict(sweep.verdict).word}: {sweep.reason}"
    here, there = ({_matrix(cell) for cell in sweep.cells} for sweep in (baseline, candidate))
    for cell in sorted(here ^ there):
        name = "baseline" if cell in here else "candidate"
        yield f"only the {name} ran {' '.join(cell[:2])} with faults {cell[2]} ({cell[3]})"
    yield from (f"{row.cluster}: {row.why}" for row in rows if row.why is not None)
    yield from _idle_promises(baseline, candidate)


def _rows(baseline: Sweep, candidate: Sweep, cluster: str) -> Iterator[ExposureRow]:
    pair = (baseline, candidate)
    cells = [[cell for cell in sweep.cells if cell.cluster == cluster] for sweep in pair]
    runs = [sum(sum(cell.counts.get(each, 0) for each in TESTED) for cell in side) for side in cells]
    hours = [sum(cell.hours for cell in side) for side in cells]
    operations = [sum(sum(cell.operations.values()) for cell in side) for side in cells]
    for what, (before, after) in (
        (RUNS, runs),
        ("hours of system time", hours),
        ("operations", operations),
    ):
        yield _row(cluster, what, before, after, None)
    faults = [{each.kind: each for each in sweep.faults if each.cluster == cluster} for sweep in pair]
    for kind in dict.fromkeys((*faults[0], *faults[1])):
        first, second = faults[0].get(kind), faults[1].get(kind)
        before, after = (each.effective if each else 0 for each in (first, second))
        yield _row(cluster, f"{kind}: faults that took effect", before, after, _idle(kind, first, second))


def _row(cluster: str, what: str, before: float, after: float, why: str | None) -> ExposureRow:
    if why is None and after < LEAST_SHARE * before:
        why = f"{what}: {number(after)} in the candidate, less than half of the baseline's {number(before)}"
    if why is None and not before:
        why = f"{what}: none in the baseline"
    return ExposureRow(cluster=cluster, what=what, baseline=before, candidate=after, why=why)


def _idle(kind: str, baseline: SweepFault | None, candidate: SweepFault | None) -> str | None:
    for name, fault in (("baseline", baseline), ("candidate", candidate)):
        if fault is None:
            return f"{kind} was not planned in the {name}"
        if not fault.is_exercised:
            met = f"{fault.effective:,} took effect and met {fault.met:,} operations"
            return f"{kind} was not exercised in the {name}: {met}"
        if fault.effective < EFFECTIVE_MIN:
            return f"{kind} took effect {counted(fault.effective, 'time')} in the {name}, fewer than {EFFECTIVE_MIN}"
    return None


def _idle_promises(baseline: Sweep, candidate: Sweep) -> Iterator[str]:
    """Sentences about promises that are the purpose of a test, and that a sweep did not exercise."""
    for name, sweep in (("baseline", baseline), ("candidate", candidate)):
        for each in sweep.promises:
            if each.is_purpose and each.verdict == "not-exercised":
                yield f"{each.cluster}: {each.id} was not exercised in the {name}: {each.witnesses:,} witnesses"


def _matrix(cell: SweepCell) -> tuple[str, str, str, str]:
    return cell.cluster, cell.workload, cell.faults, cell.runtime
