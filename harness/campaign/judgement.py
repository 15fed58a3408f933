"""The verdict of a sweep, from its rows: one violated run decides it, one vacuous run does not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from checkers.verdict.compose import PromiseState
from harness.campaign.exposure import ENDED_PERCENT, LIMITS, Exposure, exposure_of
from harness.campaign.ledger.design import Cell, Design
from harness.campaign.ledger.rows import Row, final_rows
from harness.core import wording
from harness.core.verdict import Verdict
from harness.report.model import Report
from harness.run.batch import CAMPAIGN_RUNS, unmet_goals

RULE: Final = (
    "A sweep is judged as a whole. One broken promise in one run makes it red; a run that the harness failed twice "
    "makes it an error. It is vacuous if, over all runs of a cluster, a kind of fault never took effect or met fewer "
    f"than {LIMITS.met_by_fault} operations; if a promise that the test is for has fewer than {LIMITS.witnesses} "
    f"witnesses, or an operation of some type succeeded fewer than {LIMITS.ok_of_type} times; if fewer than "
    f"{ENDED_PERCENT} % of the runs came to their end; if {CAMPAIGN_RUNS} runs or more never reached a goal; if a cell "
    "has no run, or the sweep fewer runs than its minimum. A run keeps its own verdict: a vacuous "
    "one alone decides nothing here."
)


class Outcome(NamedTuple):
    """A verdict with its reason; `clause` is the clause that made it vacuous."""

    verdict: Verdict
    reason: str
    clause: str | None


class Shortfall(msgspec.Struct, frozen=True):
    """A respect in which a sweep tested too little."""

    clause: str
    sentence: str


def by_cluster(design: Design, rows: Sequence[Row]) -> dict[str, list[Report]]:
    """The reports of the final rows, by cluster; every cluster of the sweep has its list."""
    reports: dict[str, list[Report]] = {cell.cluster: [] for cell in design.cells}
    for row in rows:
        reports[design.cells[row.cell].cluster].append(row.report)
    return reports


def verdict_of_sweep(
    design: Design, rows: Sequence[Row], exposures: dict[str, Exposure], stopped: str | None
) -> Outcome:
    """The verdict of all final rows. `stopped` is why not all runs were begun."""
    reports = [row.report for row in rows]
    short = [
        *(
            Shortfall(each.clause, f"{cluster}: {each.sentence}")
            for cluster, exposure in exposures.items()
            for each in exposure.vacuities
        ),
        *_campaign_shortfalls(design, rows),
    ]
    outcome = _outcome(reports, list(exposures.values()), short)
    early = f"; ended early: {stopped}" if stopped else ""
    return outcome._replace(reason=f"{_made(len(rows), design.planned)}: {shares(reports)}{outcome.reason}{early}")


def verdict_of_cell(cell: Cell, reports: Sequence[Report]) -> Outcome:
    """The verdict of one cell's runs alone, by the same rule."""
    if not reports:
        return Outcome(Verdict.VACUOUS, "no run was made", "d")
    exposure = exposure_of(reports)
    outcome = _outcome(reports, [exposure], [Shortfall(each.clause, each.sentence) for each in exposure.vacuities])
    return outcome._replace(reason=f"{_made(len(reports), cell.count)}: {shares(reports)}{outcome.reason}")


def _made(count: int, planned: int) -> str:
    """The number of runs; with the planned number if that differs."""
    of = "" if count == planned else f" of {planned:,}"
    return f"{count:,}{of} run{'' if planned == 1 else 's'}"


def shares(reports: Sequence[Report]) -> str:
    """The numbers of runs by their own verdicts, for people."""
    counts = Counter(report.verdict for report in reports)
    return ", ".join(f"{counts[each.value]:,} {each.word}" for each in Verdict if counts[each.value]) or "none"


def counted(reports: Sequence[Report]) -> dict[str, int]:
    """The numbers of runs by their own verdicts, for programs: zeros are included."""
    return {each.value: sum(report.verdict == each.value for report in reports) for each in Verdict}


def _outcome(reports: Sequence[Report], exposures: Sequence[Exposure], short: Sequence[Shortfall]) -> Outcome:
    """The verdict by precedence, and the part of its reason that follows the numbers of runs."""
    verdicts = {report.verdict for report in reports}
    if Verdict.INVALID.value in verdicts:
        return Outcome(Verdict.INVALID, "", None)
    if Verdict.ERROR.value in verdicts:
        first = next(report for report in reports if report.verdict == Verdict.ERROR.value)
        return Outcome(Verdict.ERROR, f"; {first.reason}", None)
    if short:
        return Outcome(Verdict.VACUOUS, f"; {short[0].sentence}", short[0].clause)
    unknown = [each for exposure in exposures for each in exposure.promises if each.state is PromiseState.UNKNOWN]
    if unknown:
        return Outcome(Verdict.UNKNOWN, f"; {unknown[0].id} could not be decided: {unknown[0].reason}", None)
    held = [each for exposure in exposures for each in exposure.promises if each.state is PromiseState.HOLDS]
    idle = Verdict.VACUOUS.value in verdicts
    together = "; together they exercised every kind of fault, and" if idle else ";"
    promises = wording.counted(len(held), "promise")
    times = sum(each.witnesses for each in held)
    return Outcome(Verdict.VALID, f"{together} {promises} held, witnessed {times:,} times", None)


def _campaign_shortfalls(design: Design, rows: Sequence[Row]) -> Iterator[Shortfall]:
    """The shortfalls that only many runs together can have: clause d."""
    for number, cell in enumerate(design.cells):
        if not any(row.cell == number for row in rows):
            yield Shortfall("d", f"no run of {cell.title} was made")
    for cluster, reports in by_cluster(design, rows).items():
        goals = [report.goals for report in reports if report.verdict != Verdict.ERROR.value]
        unmet = unmet_goals(goals, tuple(dict.fromkeys(goal for each in goals for goal in each)))
        if unmet:
            yield Shortfall("d", f"{cluster}: never reached: {', '.join(unmet)}")
    if len(rows) < design.min_runs:
        yield Shortfall("d", f"{len(rows):,} runs are fewer than the {design.min_runs:,} of min_runs")


def exposures_of(design: Design, rows: Sequence[Row]) -> dict[str, Exposure]:
    """The exposure of each cluster."""
    return {cluster: exposure_of(reports) for cluster, reports in by_cluster(design, final_rows(rows)).items()}
