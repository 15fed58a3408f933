"""Each planted bug of Materialize is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files, as those of TiCDC: see test_ticdc.py. Many bugs need none: they show under load alone.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from clusters import materialize
from clusters.materialize.cluster import Materialize
from clusters.materialize.planted import BUGS
from harness.core.record import Footer
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import on_command_line
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json, plan_to_json
from tests.scenario.simulated import Simulated

PLANS = Path(__file__).parent / "materialize"
CODE = on_command_line(f"{Path(materialize.__file__).with_name('cluster.py')}:Materialize")


@dataclass(frozen=True, slots=True)
class Case:
    """An anomaly that a bug causes, the promise which that breaks, and the run that shows it."""

    anomaly: str
    promise: str
    seed: int = 1
    workload: str = "tables"
    rate: float = 100.0


CASES: dict[str, Case] = {
    "read-no-confirm": Case("superseded-answer", "MZ-G15"),
    "confirm-cached": Case("superseded-answer", "MZ-G15"),
    "persist-after-use": Case("epoch-overlap", "MZ-G9"),
    "range-before-epoch": Case("stall", "SETTLE", seed=5),
    "restart-below": Case("epoch-overlap", "MZ-G9"),
    "respond-before-apply": Case("timestamp-regress", "MZ-G2"),
    "respond-before-durable": Case("stale-acknowledged", "MZ-G2"),
    "peek-ignores-upper": Case("snapshot-mismatch", "MZ-G3"),
    "compact-past-hold": Case("snapshot-mismatch", "MZ-G3"),
    "rtw-stale-read": Case("timestamp-regress", "MZ-G2"),
    "rtw-not-linearized": Case("superseded-answer", "MZ-G15", workload="views"),
    "occ-retry-same-diffs": Case("negative-row", "MZ-G20", seed=2, workload="views"),
    "batch-split": Case("snapshot-mismatch", "MZ-G3"),
    "no-throttle": Case("ahead-of-clock", "MZ-G12", rate=400),
    "far-future-ts": Case("ahead-of-clock", "MZ-G12"),
    "ack-before-global": Case("unseen-acknowledged", "MZ-G18", workload="sources"),
    "ack-on-as-of": Case("unseen-acknowledged", "MZ-G18", seed=2, workload="sources"),
    "ack-before-durable": Case("unseen-acknowledged", "MZ-G18", workload="sources"),
    "binding-not-durable": Case("stall", "SETTLE", workload="sources"),
    "ddl-unfenced": Case("superseded-record", "MZ-G14", workload="ddl"),
    "upper-mismatch-as-ok": Case("stale-acknowledged", "MZ-G2", seed=2),
    "ts-from-frontiers": Case("timestamp-regress", "MZ-G2"),
    "progress-before-updates": Case("late-event", "MZ-G22"),
}
TABLE = re.compile(r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| (SETTLE|G\d+) \| .* \|$", re.MULTILINE)


class Runs:
    """Runs of this file, each carried out and judged when it is first asked for."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._reports: dict[tuple[tuple[str, ...], Case, str], Report] = {}

    def of(self, bug: str, *, is_planted: bool = True) -> Report:
        """The report on that bug's run; without the bug if so asked."""
        case, plan, bugs = CASES[bug], schedule(bug), (bug,) if is_planted else ()
        place = (bugs, replace(case, anomaly="", promise=""), repr(plan.steps))
        if place not in self._reports:
            scenario = Scenario(cluster="materialize", seed=case.seed, time_s=5, workload=case.workload, rate=case.rate)
            scenario = structs.replace(scenario, bugs=bugs)
            run, _ = prepare(scenario, CODE, self._store, plan)
            simulated = Simulated(scenario, plan, cluster=Materialize())
            write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
            self._reports[place] = judge_run(run, in_threads)
        return self._reports[place]


def schedule(bug: str) -> Plan:
    return plan_from_json((PLANS / f"{bug}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("planted"))


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS) == sorted(path.stem for path in PLANS.iterdir())
    for bug in BUGS:
        assert list(schedule(bug).drawn) == ["schedule"]
        assert (PLANS / f"{bug}.json").read_text(encoding="utf-8") == plan_to_json(schedule(bug)) + "\n"


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    case, report = CASES[bug], runs.of(bug)
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    assert (case.anomaly, case.promise) in {(each.anomaly, each.promise) for each in report.findings}


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_finds_nothing(runs: Runs, bug: str) -> None:
    report = runs.of(bug, is_planted=False)
    assert (report.verdict in {"valid", "vacuous"}, report.findings) == (True, ())
    assert all(fault.effective == fault.planned for fault in report.faults)


def test_the_table_of_the_readme_says_what_is_found() -> None:
    readme = Path(materialize.__file__).with_name("README.md").read_text(encoding="utf-8")
    expected = [(BUGS[bug][:3], bug, case.anomaly, case.promise.removeprefix("MZ-")) for bug, case in CASES.items()]
    assert TABLE.findall(readme) == expected
