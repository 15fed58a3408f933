"""One run as a task of a pool: carried out and judged in a folder of its own, and what comes back is a row."""

import shutil
from pathlib import Path

import msgspec

from checkers.engine.datasets import LocalEngine
from harness.campaign.rows import RED, Row, row_of
from harness.record.store import create_run
from harness.report.model import Report, error_report
from harness.report.trouble import in_one_line
from harness.run.running import prepare
from harness.run.single import carried_out, store_report
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt at one run, in a new folder in `folder`. If it is to be kept it moves to `store`, else it goes.

    `keep` is red, all or none. `cell` is for the row.
    """

    cell: int
    attempt: int
    scenario: Scenario
    code: Code
    folder: Path
    store: Path
    keep: str = "red"
    plan: Plan | None = None


def done(task: Task) -> Row:
    """Carry out the task; returns its row. Whatever fails after the run has a folder is in its report.

    Raises what `prepare` raises.
    """
    run, run_file = prepare(task.scenario, task.code, task.folder, task.plan)
    try:
        report = carried_out(run, task.code, LocalEngine)
    except Exception as error:  # noqa: BLE001  Whatever the failure, the other runs count all the same.
        report = error_report(
            in_one_line(error), cluster=run_file.cluster, workload=run_file.workload, runtime=run_file.runtime
        )
    report = msgspec.structs.replace(report, seed=task.scenario.seed, run=None)
    if task.keep == "all" or (task.keep == "red" and report.verdict in RED):
        report = delivered(run, report, task.store)
    else:
        shutil.rmtree(run)
    return row_of(report, cell=task.cell, seed=task.scenario.seed, attempt=task.attempt)


def failed(task: Task, error: Exception, *, cluster: str, workload: str) -> Row:
    """The row of an attempt that came to no report."""
    report = error_report(in_one_line(error), cluster=cluster, workload=workload, runtime=task.scenario.runtime)
    return row_of(report, cell=task.cell, seed=task.scenario.seed, attempt=task.attempt)


def delivered(run: Path, report: Report, store: Path) -> Report:
    """The report of a run that moves to `store` from elsewhere on its file system; both are stored with its page."""
    target = create_run(store, run.parent.name, report.seed or 0)
    run.rename(target)  # It takes the place of the empty folder at once.
    return store_report(target, msgspec.structs.replace(report, run=str(target)))
