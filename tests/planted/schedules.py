"""Runs under the schedules of planted bugs, for the tests of whole designs.

The schedules are plan files. `seamark run --cluster C --bug B --plan tests/planted/C/B.json --seed S --time T` with the
workload repeats what is judged here. What each does says its `drawn`; the seed decides the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from harness.core.record import Footer
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json, plan_to_json
from tests.scenario.simulated import Simulated


@dataclass(frozen=True, slots=True)
class Case:
    """An anomaly that a bug causes, the promise which that breaks, and the run that shows it."""

    anomaly: str
    promise: str
    seed: int = 1
    workload: str = ""
    time_s: float = 5
    batch: int = 3  # Where a design commits in batches.


def judged(store: Path, scenario: Scenario, plan: Plan | None) -> Report:
    """The report on one run in memory."""
    run, _ = prepare(scenario, installed(scenario.cluster), store, plan)
    simulated = Simulated(scenario, plan)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return judge_run(run, in_threads)


class Runs:
    """The runs of a design's bugs, each carried out and judged when it is first asked for."""

    def __init__(self, store: Path, scenario_of: Callable[[str], Scenario], schedule: Callable[[str], Plan]) -> None:
        self._store, self._scenario_of, self._schedule = store, scenario_of, schedule
        self._reports: dict[str, Report] = {}

    def of(self, bug: str, *, is_planted: bool = True) -> Report:
        """The report on that bug's run; without the bug if so asked."""
        scenario = structs.replace(self._scenario_of(bug), bugs=(bug,) if is_planted else ())
        plan = self._schedule(bug)
        place = repr((scenario, plan.steps))
        if place not in self._reports:
            self._reports[place] = judged(self._store, scenario, plan)
        return self._reports[place]


def require_schedules(folder: Path, bugs: list[str]) -> None:
    """Require one plan file for each of these bugs, written as we write plans, which says what it does."""
    for bug in bugs:
        text = (folder / f"{bug}.json").read_text(encoding="utf-8")
        plan = plan_from_json(text)
        assert list(plan.drawn) == ["schedule"]
        assert text == plan_to_json(plan) + "\n"


def require_found(case: Case, report: Report) -> None:
    """Require that a bug was found by the promise that it breaks."""
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    assert (case.anomaly, case.promise) in {(each.anomaly, each.promise) for each in report.findings}


def require_clean(report: Report, *verdicts: str) -> None:
    """Require that nothing was found, and that every fault of the schedule did something."""
    assert (report.verdict in verdicts, report.findings) == (True, ())
    assert all(fault.effective == fault.planned for fault in report.faults)
