"""Runs under the schedules of planted bugs, for the tests of whole designs.

Each is a file CLUSTER/BUG.json, as `seamark calibrate` reads it: a scenario, and a fault plan with a sentence about it.
The seed decides the rest.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from harness.campaign.calibration.cells import schedule_of
from harness.campaign.calibration.rows import Schedule
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
from tests.scenario.simulated import Simulated

PLANS = Path(__file__).parent
ROW = re.compile(r"^\| (B\d\d) `([a-z-]+)` \| ([\w-]+) \| (G\d+) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """An anomaly that a bug causes, and the promise which that breaks."""

    anomaly: str
    promise: str


def judged(store: Path, scenario: Scenario, plan: Plan | None) -> Report:
    """The report on one run in memory."""
    run, _ = prepare(scenario, installed(scenario.cluster), store, plan)
    simulated = Simulated(scenario, plan)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return judge_run(run, in_threads)


def schedule(cluster: str, bug: str) -> Schedule:
    """The schedule of a bug."""
    found = schedule_of(PLANS, cluster, bug)
    assert found is not None, f"{cluster}/{bug}.json: there is no such file"
    return found


class Runs:
    """The runs of a cluster's bugs, each carried out and judged when it is first asked for."""

    def __init__(self, store: Path, cluster: str) -> None:
        self._store, self._cluster = store, cluster
        self._reports: dict[str, Report] = {}

    def of(self, bug: str, *, is_planted: bool = True) -> Report:
        """The report on that bug's run; without the bug if so asked."""
        case = schedule(self._cluster, bug)
        scenario = structs.replace(case.scenario, bugs=(bug,) if is_planted else ())
        place = repr((scenario, case.plan.steps))
        if place not in self._reports:
            self._reports[place] = judged(self._store, scenario, case.plan)
        return self._reports[place]


def require_schedules(cluster: str, bugs: Iterable[str]) -> None:
    """Require one schedule of that cluster for each of these bugs, which says what it does, and no other."""
    assert sorted(bugs) == sorted(path.stem for path in (PLANS / cluster).iterdir())
    for bug in bugs:
        case = schedule(cluster, bug)
        assert (case.scenario.cluster, list(case.plan.drawn)) == (cluster, ["schedule"])


def require_rows(text: str, bugs: Mapping[str, str], cases: Mapping[str, Case]) -> None:
    """Require that a part of a README has one row for each bug, in the order of `cases`: what is found, and broken."""
    expected = [(bugs[bug][:3], bug, case.anomaly, case.promise.partition("-")[2]) for bug, case in cases.items()]
    assert ROW.findall(text) == expected


def require_found(case: Case, report: Report) -> None:
    """Require that a bug was found by the promise that it breaks."""
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    assert (case.anomaly, case.promise) in {(each.anomaly, each.promise) for each in report.findings}


def require_clean(report: Report, *verdicts: str) -> None:
    """Require that nothing was found, and that every fault of the schedule did something."""
    assert (report.verdict in verdicts, report.findings) == (True, ())
    assert all(fault.effective == fault.planned for fault in report.faults)
