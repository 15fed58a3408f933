"""Each planted bug of NDB is found under a schedule of a few steps, by a promise that it breaks; nothing without it.

The schedules are plan files: `seamark run --cluster ndb --bug B --plan tests/planted/ndb/B.json --seed 27 --time 8
--clients 8` repeats what is judged here. What each does says its `drawn`. The seed decides the rest, parameters of the
cluster included; 12, 13 and 23 are others that will do.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from clusters.ndb.planted import BUGS
from harness.core.record import Footer
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY, RUN_FILE, read_run_file, write_run_file
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json, plan_to_json
from tests.scenario.simulated import Simulated

SEED = 27
PLANS = Path(__file__).parent / "ndb"
UNDISTURBED = Plan(steps=())
# Bug: an anomaly that it causes, and the promise which that breaks.
SHOWN: dict[str, tuple[str, str]] = {
    "no-commit-block": ("cut-not-closed", "NDB-G5"),
    "nodefinish-early": ("missing-event", "NDB-G7"),
    "takeover-aborts-committed": ("fractured-transaction", "NDB-G23"),
    "ack-before-commit": ("stale-acknowledged", "NDB-G2"),
    "lib-any-node-completes": ("torn-unit", "NDB-G8"),
    "bucket-count-not-set": ("missing-event", "NDB-G7"),
    "free-on-own-ack": ("stall", "NDB-G28"),
    "handover-double": ("duplicate-event", "NDB-G11"),
    "oob-silent": ("silent-gap", "NDB-G13"),
    "epoch-reuse": ("epoch-shape", "NDB-G15"),
    "redo-tail-not-invalidated": ("resurrected", "NDB-G21"),
    "no-arbitration": ("split-brain", "NDB-G25"),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A run, where it is kept, and the report on it."""

    run: Path
    report: Report

    def count(self, anomaly: str, promise: str) -> int:
        """How often it was found, over all subscribers or nodes."""
        return sum(each.count for each in self.report.findings if (each.anomaly, each.promise) == (anomaly, promise))


class Runs:
    """Runs of this file, each carried out and judged when it is first asked for."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._judged: dict[tuple[str, bool, bool], Judged] = {}

    def of(self, bug: str, *, is_planted: bool = True, is_disturbed: bool = True) -> Judged:
        """The run with that bug's options; without the bug, or without the steps of its schedule, if so asked."""
        case = (bug, is_planted, is_disturbed)
        if case not in self._judged:
            plan = schedule(bug) if is_disturbed else UNDISTURBED
            self._judged[case] = self._carried_out(plan, (bug,) if is_planted else ())
        return self._judged[case]

    def _carried_out(self, plan: Plan, bugs: tuple[str, ...]) -> Judged:
        scenario = Scenario(cluster="ndb", seed=SEED, time_s=8, clients=8, bugs=bugs)
        run, _ = prepare(scenario, installed(scenario.cluster), self._store, plan)
        simulated = Simulated(scenario, plan)
        write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
        return Judged(run, judge_run(run, in_threads))


def schedule(bug: str) -> Plan:
    return plan_from_json((PLANS / f"{bug}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    print(f"seed {SEED}")
    return Runs(tmp_path_factory.mktemp("planted"))


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(SHOWN) == sorted(BUGS) == sorted(path.stem for path in PLANS.iterdir())
    for bug in BUGS:
        assert list(schedule(bug).drawn) == ["schedule"]
        assert 1 <= len(schedule(bug).steps) <= 3
        assert (PLANS / f"{bug}.json").read_text(encoding="utf-8") == plan_to_json(schedule(bug)) + "\n"


@pytest.mark.parametrize("bug", SHOWN)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    anomaly, promise = SHOWN[bug]
    judged = runs.of(bug)
    assert (judged.report.verdict, judged.report.exit_code) == ("invalid", 1)
    assert judged.count(anomaly, promise) > 0
    assert promise in {row.id for row in judged.report.promises if row.verdict == "violated"}


@pytest.mark.parametrize("bug", SHOWN)
def test_the_same_run_without_the_bug_passes(runs: Runs, bug: str) -> None:
    report = runs.of(bug, is_planted=False).report
    assert (report.verdict, report.exit_code, report.findings) == ("valid", 0, ())
    assert sum(fault.planned for fault in report.faults) == len(schedule(bug).steps)
    assert all(fault.effective == fault.planned for fault in report.faults)


@pytest.mark.parametrize("bug", SHOWN)
def test_it_is_the_schedule_that_shows_the_bug(runs: Runs, bug: str) -> None:
    """Some of the races are won under load alone, too, but seldom."""
    alone = runs.of(bug, is_disturbed=False)
    assert runs.of(bug).count(*SHOWN[bug]) > 3 * alone.count(*SHOWN[bug])


@pytest.mark.parametrize("bug", SHOWN)
def test_no_check_knows_which_bug_is_on(runs: Runs, tmp_path: Path, bug: str) -> None:
    judged = runs.of(bug)
    run = Path(shutil.copytree(judged.run, tmp_path / "something" / "else"))
    run_file = read_run_file(run / RUN_FILE)
    options = run_file.options | {"bugs": [], "seed": 0}
    write_run_file(run, msgspec.structs.replace(run_file, bugs=(), options=options, seed=0, cluster="nobody's"))
    again = judge_run(run, in_threads)
    assert (again.verdict, again.findings) == (judged.report.verdict, judged.report.findings)
    assert again.bugs == ()
    assert again.history_sha256 == judged.report.history_sha256
