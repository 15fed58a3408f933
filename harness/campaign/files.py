"""The files of an ended sweep in its folder: sweep.json for programs, the page for people, junit.xml for CI."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.campaign.document import SWEEP_FILE, Sweep, earlier_sweeps, sweep_to_json
from harness.campaign.ledger.design import Design
from harness.campaign.ledger.rows import Row, final_rows
from harness.campaign.outcome import command_of_red
from harness.campaign.page import PAGE_FILE, sweep_page
from harness.campaign.sweep import Begun, StoreFull
from harness.core.verdict import Verdict
from harness.record.store import write_atomically
from harness.report.junit import junit
from harness.report.model import Report
from harness.run.single import JUNIT_FILE, encoded


def store_sweep(begun: Begun, sweep: Sweep, rows: Sequence[Row]) -> None:
    """Write the files of a sweep. Raises StoreFull if the disk is full."""
    folder, reports = begun.folder, reports_as_one(begun.order.design, sweep, rows)
    page = sweep_page(sweep, rows, earlier_sweeps(folder), folder)
    vacuous = sweep.reason if sweep.verdict == Verdict.VACUOUS.value else None
    try:
        write_atomically(folder / PAGE_FILE, encoded(page))
        write_atomically(folder / JUNIT_FILE, junit(reports, suite=sweep.name, vacuous=vacuous))
        write_atomically(folder / SWEEP_FILE, sweep_to_json(sweep))  # Written last: it marks the sweep as ended.
    except OSError as error:
        raise StoreFull(f"{folder}: takes no more ({error.strerror}); make room, then {begun.resumption}") from None


def reports_as_one(design: Design, sweep: Sweep, rows: Sequence[Row]) -> list[Report]:
    """The reports of all runs as the sweep counts them, for tools that know only runs.

    A run that was vacuous alone is a pass in a sweep that is not vacuous. The name of the workload is that of the cell.
    A red run has the command that makes it again without its folder.
    """
    return list(_as_one(design, sweep, rows))


def _as_one(design: Design, sweep: Sweep, rows: Sequence[Row]) -> Iterator[Report]:
    idle, passed = Verdict.VACUOUS.value, Verdict.VALID.value
    is_excused = sweep.verdict != idle
    for row in final_rows(rows):
        cell, report = sweep.cells[row.cell], row.report
        verdict = passed if is_excused and report.verdict == idle else report.verdict
        name = ".".join((cell.workload, cell.faults.replace(", ", "+"), cell.runtime, *cell.bugs))
        yield msgspec.structs.replace(
            report,
            verdict=verdict,
            exit_code=Verdict(verdict).exit_code,
            cluster=cell.cluster,
            workload=name,
            anywhere=command_of_red(design, row) or report.anywhere,
        )
