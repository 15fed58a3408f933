"""Each planted bug of Pravega is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files, as those of TiCDC: see test_ticdc.py. Most bugs need none: they show under load alone.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from checkers.transactions.check import CHECKS as TRANSACTIONS
from clusters import pravega
from clusters.pravega.cluster import Pravega
from clusters.pravega.planted import BUGS
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

PLANS = Path(__file__).parent / "pravega"
CODE = on_command_line(f"{Path(pravega.__file__).with_name('cluster.py')}:Pravega")
SEQUENCE = "keyed-sequence"


@dataclass(frozen=True, slots=True)
class Case:
    """An anomaly that a bug causes, the promise which that breaks, and the run that shows it."""

    anomaly: str
    promise: str
    seed: int = 1
    workload: str = "txn-blocks"


CASES: dict[str, Case] = {
    "cut-before-sort": Case("commit-order", "PRV-G8"),
    "order-per-segment": Case("G0", "PRV-G7", workload=SEQUENCE),
    "merge-not-atomic": Case("duplicate-elements", "PRV-G7", workload=SEQUENCE),
    "roll-not-pinned": Case("empty-roll", "PRV-G14", seed=8),
    "epochs-swapped": Case("stale-acknowledged", "PRV-G4"),
    "stale-etr": Case("stall", "SETTLE"),
    "wrong-txn-epoch-name": Case("stale-acknowledged", "PRV-G4"),
    "txn-against-duplicate": Case("foreign-reference", "PRV-G23"),
    "commit-before-flush": Case("stale-acknowledged", "PRV-G4"),
    "abort-without-version": Case("spurious-abort", "PRV-G13", seed=2, workload=SEQUENCE),
    "sweeper-aborts-all": Case("stale-acknowledged", "PRV-G4", seed=2),
    "no-container-fence": Case("stale-acknowledged", "PRV-G4", workload=SEQUENCE),
    "writer-no-hold": Case("writer-order", "PRV-G2", workload=SEQUENCE),
    "resend-no-dedupe": Case("duplicate-elements", "PRV-G7"),
    "ack-over-gap": Case("stale-acknowledged", "PRV-G4", workload=SEQUENCE),
    "any-predecessor": Case("group-repeat", "PRV-G20", seed=6),
    "successor-at-tail": Case("group-lost", "PRV-G20"),
    "no-eos-when-empty": Case("stall", "SETTLE"),
    "any-epoch-first": Case("commit-order", "PRV-G8"),
}
TABLE = re.compile(
    r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| ([a-z-]+) \| (SETTLE|G\d+) \| .* \| (\w+) \|$", re.MULTILINE
)


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
            scenario = Scenario(cluster="pravega", seed=case.seed, time_s=5, workload=case.workload)
            scenario = structs.replace(scenario, bugs=bugs)
            run, _ = prepare(scenario, CODE, self._store, plan)
            simulated = Simulated(scenario, plan, cluster=Pravega())
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


def test_a_batch_that_another_controller_has_committed_is_not_recorded_again(tmp_path: Path) -> None:
    """Seed 34003 found that a name that had been removed was free again for who had read that it was."""
    scenario = Scenario(cluster="pravega", seed=34003, time_s=20, workload="txn-blocks")
    run, _ = prepare(scenario, CODE, tmp_path, None)
    simulated = Simulated(scenario, cluster=Pravega())
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    assert judge_run(run, in_threads).findings == ()


def test_the_table_of_the_readme_says_what_is_found(runs: Runs) -> None:
    readme = (Path(pravega.__file__).with_name("README.md")).read_text(encoding="utf-8")
    rows = TABLE.findall(readme)
    assert [(number, bug) for number, bug, *_ in rows] == sorted((text[:3], bug) for bug, text in BUGS.items())
    transactions = {check.name for check in TRANSACTIONS}
    for _, bug, anomaly, check, promise, clients in rows:
        findings = runs.of(bug).findings
        promised = promise if promise == "SETTLE" else f"PRV-{promise}"
        assert (anomaly, check, promised) in {(each.anomaly, each.checker, each.promise) for each in findings}
        assert anomaly == CASES[bug].anomaly
        assert (clients == "yes") == any(each.checker in transactions for each in findings), bug
