"""Each planted bug of TiCDC is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files: `seamark run --cluster ticdc --bug B --plan tests/planted/ticdc/B.json --seed S --time T
--clients 8 --workload W` repeats what is judged here. What each does says its `drawn`; the seed decides the rest.
Four are cases, with a script of operations as well: `seamark.repeat` takes them.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import convert, structs

from checkers.transactions.check import CHECKS as TRANSACTIONS
from clusters import ticdc
from clusters.ticdc.planted import BUGS
from harness.core.record import Footer, Json
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

PLANS = Path(__file__).parent / "ticdc"
TICK = "large-vs-tick"


@dataclass(frozen=True, slots=True)
class Case:
    """An anomaly that a bug causes, the promise which that breaks, and the run that shows it."""

    anomaly: str
    promise: str
    seed: int = 1
    workload: str = TICK
    time_s: float = 5


CASES: dict[str, Case] = {
    "wm-ignores-large": Case("late-event", "TIK-G4"),
    "wm-eq-min-commit": Case("late-event-boundary", "TIK-G4"),
    "commit-no-min-check": Case("commit-below-bound", "TIK-G3", seed=2),
    "row-matcher-new-wm": Case("torn-unit", "TIK-G6"),
    "unblock-on-status": Case("late-event", "TIK-G4"),
    "rescan-forgets-determined": Case("torn-unit", "TIK-G6", seed=3),
    "no-leader-quorum": Case("missing-event", "TIK-G5", seed=14),
    "tso-after-locks": Case("late-event", "TIK-G4", seed=23),
    "wm-overtakes-rows": Case("late-event", "TIK-G4", seed=2),
    "pending-lost-in-scan": Case("stall", "TIK-G14", seed=2),
    "scan-without-read-index": Case("stall", "TIK-G14", seed=2, workload="pusher"),
    "aba-observe": Case("stall", "TIK-G14"),
    "no-applied-check": Case("stale-mismatch", "TIK-G11", workload="stale-reads"),
    "stale-skip-locks": Case("stale-mismatch", "TIK-G11", seed=8, workload="stale-reads"),
    "hint-is-ongoing": Case("stale-mismatch", "TIK-G11", seed=8, workload="stale-reads"),
    "merge-max-safe-ts": Case("stale-mismatch", "TIK-G11"),
    "ttl-not-extended": Case("spurious-abort", "TIK-G13", seed=4),
    "no-rollback-record": Case("torn-unit", "TIK-G6", seed=40),
    "no-generation": Case("snapshot-mismatch", "TIK-G1"),
    "heartbeat-clobbers-row": Case("wrong-value", "TIK-G5"),
    "match-before-init": Case("missing-event", "TIK-G5"),
    "frontier-on-merge-split": Case("missing-event", "TIK-G5", workload="region-churn"),
    "ckpt-before-flush": Case("lost-acknowledged", "TIK-G17"),
    "wm-not-max": Case("watermark-regress", "TIK-G8"),
    "pd-no-range": Case("real-time-order", "TIK-G2"),
    "orphan-never-resolved": Case("stall", "TIK-G14", time_s=8),
    "start-ts-rule": Case("stale-watermark", "TIK-G10"),
    "flashback-blind-rollback": Case("flashback-mismatch", "TIK-G19"),
    "pitr-status-based": Case("backup-mismatch", "TIK-G18", seed=3, workload="restores", time_s=8),
    "ignore-set-survives": Case("G-single", "TIK-G1", seed=3),
    "hb-before-replicate": Case("commit-below-bound", "TIK-G3"),
    "slow-sub-drops-rows": Case("missing-event", "TIK-G5"),
    "slow-sub-blocks-all": Case("lag", "TIK-G22", time_s=8),
    "cache-deadlock": Case("stall", "TIK-G14"),
    "min-skips-uninit": Case("late-event", "TIK-G4"),
    "future-stale-read-max-ts": Case("spurious-abort", "TIK-G13", seed=3, workload="stale-reads"),
    "follower-hole-scan-vs-observe": Case("missing-event", "TIK-G5"),
    "miss-means-done": Case("late-event", "TIK-G4", seed=5),
}
# Those that a check of client transactions alone would find in these very runs.
FOUND_BY_CLIENTS = {
    "commit-no-min-check", "flashback-blind-rollback", "ignore-set-survives", "no-generation", "no-rollback-record",
    "pd-no-range",
}  # fmt: skip


TABLE = re.compile(
    r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| ([a-z]+) \| (G\d+) \| .* \| (\w+) \| (\w+) \| (\w+) \|$", re.MULTILINE
)
BY_TIMESTAMPS = {"snapshot-mismatch", "timestamp-order", "stale-acknowledged"}  # Anomalies of client transactions.


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
            scenario = structs.replace(scenario_of(bug), bugs=bugs)
            run, _ = prepare(scenario, installed(scenario.cluster), self._store, plan)
            simulated = Simulated(scenario, plan)
            write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
            self._reports[place] = judge_run(run, in_threads)
        return self._reports[place]


def scripted(bug: str) -> dict[str, Json] | None:
    """The case of a bug whose schedule has operations, too."""
    parts: dict[str, Json] = json.loads((PLANS / f"{bug}.json").read_text(encoding="utf-8"))
    return parts if "scenario" in parts else None


def scenario_of(bug: str) -> Scenario:
    case, parts = CASES[bug], scripted(bug)
    if parts is not None:
        return convert(parts["scenario"], Scenario)
    return Scenario(cluster="ticdc", seed=case.seed, time_s=case.time_s, workload=case.workload, clients=8)


def schedule(bug: str) -> Plan:
    parts = scripted(bug)
    if parts is not None:
        return convert(parts["plan"], Plan)
    return plan_from_json((PLANS / f"{bug}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("planted"))


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS) == sorted(path.stem for path in PLANS.iterdir())
    for bug in BUGS:
        assert list(schedule(bug).drawn) == ["schedule"]
        if scripted(bug) is None:
            assert (PLANS / f"{bug}.json").read_text(encoding="utf-8") == plan_to_json(schedule(bug)) + "\n"


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    case, report = CASES[bug], runs.of(bug)
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    assert (case.anomaly, case.promise) in {(each.anomaly, each.promise) for each in report.findings}


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_passes(runs: Runs, bug: str) -> None:
    """A script of a few operations exercises too little to be called valid."""
    report = runs.of(bug, is_planted=False)
    expected = "vacuous" if scripted(bug) is not None else "valid"
    assert (report.verdict, report.findings) == (expected, ())
    assert all(fault.effective == fault.planned for fault in report.faults)


def test_transactions_alone_show_few_of_the_bugs(runs: Runs) -> None:
    """What watermarks promise is broken without a trace in what clients see."""
    names = {check.name for check in TRANSACTIONS}
    shown = {bug for bug in CASES if any(finding.checker in names for finding in runs.of(bug).findings)}
    assert shown == FOUND_BY_CLIENTS


def test_the_table_of_the_readme_says_what_is_found(runs: Runs) -> None:
    readme = (Path(ticdc.__file__).with_name("README.md")).read_text(encoding="utf-8")
    rows = TABLE.findall(readme)
    assert [(number, bug) for number, bug, *_ in rows] == sorted((text[:3], bug) for bug, text in BUGS.items())
    transactions = {check.name for check in TRANSACTIONS}
    for _, bug, anomaly, check, promise, *columns in rows:
        findings = runs.of(bug).findings
        assert (anomaly, check, f"TIK-{promise}") in {(each.anomaly, each.checker, each.promise) for each in findings}
        assert anomaly == CASES[bug].anomaly
        shown = (
            any(each.checker == "watermark-graph" for each in findings),
            any(each.anomaly in BY_TIMESTAMPS for each in findings),
            any(each.checker in transactions for each in findings),
        )
        assert [each == "yes" for each in columns] == list(shown), bug
