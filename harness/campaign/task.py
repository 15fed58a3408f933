"""One run as a task of a pool: carried out and judged in a folder of its own, with a row as its result."""

import shutil
from pathlib import Path

import msgspec

from harness.campaign.ledger.attempts import Attempt, mark
from harness.campaign.ledger.rows import KEPT, Row, row_of
from harness.judging.engines import in_threads
from harness.record.store import create_run, write_atomically
from harness.report.model import REPORT_FILE, Report, error_report, read_report, to_json
from harness.report.trouble import in_one_line
from harness.run.carry_out import carried_out
from harness.run.nursery import nursery
from harness.run.running import prepare
from harness.run.single import store_report
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt at one run, in a new folder inside `folder`. A run that is kept moves to `store`; others are removed.

    `keep` says which runs are kept: the red ones, all or none. `cell` is copied to the run's row. `campaign` is the id
    of the sweep; None outside of one.
    """

    cell: int
    attempt: int
    scenario: Scenario
    code: Code
    folder: Path
    store: Path
    keep: str = "red"
    plan: Plan | None = None
    campaign: str | None = None


def done(task: Task) -> Row:
    """Carry out the task here; returns its row. Errors after the run has a folder are in its report.

    Raises what `prepare` raises.
    """
    run, report = _judged(task)
    if _is_kept(task, report):
        report = delivered(run, report, task.store)
    else:
        shutil.rmtree(run)
    return _row(task, report)


def away(task: Task, folder: Path) -> tuple[Row, Path | None]:
    """Carry out the task in `folder`, on another machine. Returns its row, and the run's folder if the run is kept."""
    run, report = _judged(msgspec.structs.replace(task, folder=folder))
    is_kept = _is_kept(task, report)
    if is_kept:
        write_atomically(run / REPORT_FILE, to_json(report))
    return _row(task, report), run if is_kept else None


def landed(task: Task, run: Path) -> Row:
    """The row of a task that was carried out elsewhere. Its run moves from the task's folder into the store."""
    report = read_report(run)
    assert report is not None
    return _row(task, delivered(run, report, task.store))


def _judged(task: Task) -> tuple[Path, Report]:
    run, run_file = prepare(task.scenario, task.code, task.folder, task.plan)
    if task.campaign is not None:
        mark(run, Attempt(campaign=task.campaign, numbers=(task.cell, task.scenario.seed, task.attempt)))
    try:
        begin = nursery().execute if task.scenario.runtime == "sim" else None
        report = carried_out(run, task.code, in_threads, begin=begin)
    except Exception as error:  # noqa: BLE001  Whatever the failure, the other runs count all the same.
        report = error_report(
            in_one_line(error), cluster=run_file.cluster, workload=run_file.workload, runtime=run_file.runtime
        )
    return run, msgspec.structs.replace(report, seed=task.scenario.seed, run=None)


def _is_kept(task: Task, report: Report) -> bool:
    return task.keep == "all" or (task.keep == "red" and report.verdict in KEPT)


def _row(task: Task, report: Report) -> Row:
    return row_of(report, cell=task.cell, seed=task.scenario.seed, attempt=task.attempt)


def failed(task: Task, error: Exception, *, cluster: str, workload: str) -> Row:
    """The row of an attempt that ended without a report."""
    report = error_report(in_one_line(error), cluster=cluster, workload=workload, runtime=task.scenario.runtime)
    return _row(task, report)


def delivered(run: Path, report: Report, store: Path) -> Report:
    """Move a run to `store` from elsewhere on its file system. Returns its report, which is in it with its page."""
    write_atomically(run / REPORT_FILE, to_json(report))  # First: a resumed campaign takes no run without a report.
    target = create_run(store, run.parent.name, report.seed or 0)
    run.rename(target)  # At once: a kill leaves a whole run or none. The rename replaces the empty folder atomically.
    return store_report(target, msgspec.structs.replace(report, run=str(target)))
