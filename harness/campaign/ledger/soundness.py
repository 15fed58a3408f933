"""Whether rows make sense: those of planned runs only, each once, and none whose verdict its own facts contradict."""

from collections.abc import Sequence
from pathlib import Path

from checkers.verdict.compose import Thresholds, shortfalls
from harness.campaign.exposure import facts_of, promise_sums, state_of
from harness.campaign.ledger.design import Design
from harness.campaign.ledger.rows import ROWS_FILE, Row
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.judging.judge import SETTLED
from harness.report.model import Report

ORDER: tuple[Verdict, ...] = tuple(Verdict)  # The worst first.


def require_planned(folder: Path, design: Design, rows: Sequence[Row]) -> None:
    """Raise HistoryError that names the line, unless the rows are attempts at runs of the design, in their order."""
    last: dict[tuple[int, int], Row] = {}
    ids: set[str] = set()
    for number, row in enumerate(rows, 1):
        before = last.get(row.key)
        problem = _misplaced(design, row, before) or contradiction(row.report)
        if row.id in ids:
            problem = f"its id {row.id} is that of a row above"
        if problem is not None:
            raise HistoryError(f"{folder / ROWS_FILE}:{number}: {problem}; restore the file from a copy")
        last[row.key] = row
        ids.add(row.id)


def is_next(design: Design, rows: Sequence[Row], row: Row) -> bool:
    """True if the row may follow those rows."""
    before = next((each for each in reversed(rows) if each.key == row.key), None)
    return _misplaced(design, row, before) is None and contradiction(row.report) is None


def _misplaced(design: Design, row: Row, before: Row | None) -> str | None:
    """Why that row cannot be the next attempt at its run, after `before`; None if it can."""
    where = f"cell {row.cell}, seed {row.seed}"
    if not design.has(row.cell, row.seed):
        return f"{where}: no such run is planned"
    if before is not None and before.is_final:
        return f"{where}: this run has a row above"
    if row.attempt != (1 if before is None else before.attempt + 1):
        return f"{where}: attempt {row.attempt} is not the next one"
    cell, report = design.cells[row.cell], row.report
    is_its = (report.cluster, report.runtime, report.seed) == (cell.cluster, cell.scenario.runtime, row.seed)
    return None if is_its else f"{where}: its report is on another run"


def contradiction(report: Report) -> str | None:
    """How a report contradicts itself; None if it does not.

    Its verdict follows from its findings, promises and facts. It may be worse than these, as a run may have failed, or
    some step of its plan met nothing, which they do not show; it is never better.
    """
    stated = Verdict(report.verdict)
    if report.exit_code != stated.exit_code:
        return f"its verdict {stated.value} has exit code {stated.exit_code}, not {report.exit_code}"
    broken = {each.promise for each in report.findings if each.promise is not None}
    violated = {each.id for each in report.promises if each.verdict == "violated"}
    if broken - violated:
        return f"a finding breaks {min(broken - violated)}, and its promises do not say so"
    if violated and not broken:
        return f"{min(violated)} is violated, and no finding breaks it"
    if (stated is Verdict.INVALID) != bool(violated):
        return f"its verdict is {stated.value}, and {'a promise is' if violated else 'no promise is'} violated"
    if any(not each.effective <= each.begun <= each.planned for each in report.faults):
        return "more of its faults took effect than began, or began than were planned"
    allowed = _allowed(report)
    if ORDER.index(stated) > ORDER.index(allowed):
        return f"its verdict is {stated.value}, and by its own facts it is {allowed.value} at best"
    return None


def _allowed(report: Report) -> Verdict:
    """The best verdict that the promises and facts of a report without a violation allow."""
    limits = Thresholds()
    if report.exposure is None or (report.faults and not any(each.effective for each in report.faults)):
        return Verdict.VACUOUS
    sums = promise_sums([report])
    states = [state_of(each) for each in sums if each.id != SETTLED.id]
    if shortfalls(states, facts_of((), [report.exposure]), limits):
        return Verdict.VACUOUS
    return Verdict.UNKNOWN if any(each.verdict == "unknown" for each in report.promises) else Verdict.VALID
