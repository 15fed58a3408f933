"""Each planted bug of TiCDC is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files, of runs with `--clients 8`: see schedules.py. Four are cases, with a script of operations
as well: `seamark.repeat` takes them.
"""

import json
import re
from pathlib import Path

import pytest
from msgspec import convert

from checkers.transactions.check import CHECKS as TRANSACTIONS
from clusters import ticdc
from clusters.ticdc.planted import BUGS
from harness.core.record import Json
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_schedules

PLANS = Path(__file__).parent / "ticdc"
TICK = "large-vs-tick"


CASES: dict[str, Case] = {
    "wm-ignores-large": Case("late-event", "TIK-G4", workload=TICK),
    "wm-eq-min-commit": Case("late-event-boundary", "TIK-G4", workload=TICK),
    "commit-no-min-check": Case("commit-below-bound", "TIK-G3", seed=2, workload=TICK),
    "row-matcher-new-wm": Case("torn-unit", "TIK-G6", workload=TICK),
    "unblock-on-status": Case("late-event", "TIK-G4", workload=TICK),
    "rescan-forgets-determined": Case("torn-unit", "TIK-G6", seed=3, workload=TICK),
    "no-leader-quorum": Case("missing-event", "TIK-G5", seed=14, workload=TICK),
    "tso-after-locks": Case("late-event", "TIK-G4", seed=23, workload=TICK),
    "wm-overtakes-rows": Case("late-event", "TIK-G4", seed=2, workload=TICK),
    "pending-lost-in-scan": Case("stall", "TIK-G14", seed=2, workload=TICK),
    "scan-without-read-index": Case("stall", "TIK-G14", seed=2, workload="pusher"),
    "aba-observe": Case("stall", "TIK-G14", workload=TICK),
    "no-applied-check": Case("stale-mismatch", "TIK-G11", workload="stale-reads"),
    "stale-skip-locks": Case("stale-mismatch", "TIK-G11", seed=8, workload="stale-reads"),
    "hint-is-ongoing": Case("stale-mismatch", "TIK-G11", seed=8, workload="stale-reads"),
    "merge-max-safe-ts": Case("stale-mismatch", "TIK-G11", workload=TICK),
    "ttl-not-extended": Case("spurious-abort", "TIK-G13", seed=4, workload=TICK),
    "no-rollback-record": Case("torn-unit", "TIK-G6", seed=40, workload=TICK),
    "no-generation": Case("snapshot-mismatch", "TIK-G1", workload=TICK),
    "heartbeat-clobbers-row": Case("wrong-value", "TIK-G5", workload=TICK),
    "match-before-init": Case("missing-event", "TIK-G5", workload=TICK),
    "frontier-on-merge-split": Case("missing-event", "TIK-G5", workload="region-churn"),
    "ckpt-before-flush": Case("lost-acknowledged", "TIK-G17", workload=TICK),
    "wm-not-max": Case("watermark-regress", "TIK-G8", workload=TICK),
    "pd-no-range": Case("real-time-order", "TIK-G2", workload=TICK),
    "orphan-never-resolved": Case("stall", "TIK-G14", workload=TICK, time_s=8),
    "start-ts-rule": Case("stale-watermark", "TIK-G10", workload=TICK),
    "flashback-blind-rollback": Case("flashback-mismatch", "TIK-G19", workload=TICK),
    "pitr-status-based": Case("backup-mismatch", "TIK-G18", seed=3, workload="restores", time_s=8),
    "ignore-set-survives": Case("G-single", "TIK-G1", seed=3, workload=TICK),
    "hb-before-replicate": Case("commit-below-bound", "TIK-G3", workload=TICK),
    "slow-sub-drops-rows": Case("missing-event", "TIK-G5", workload=TICK),
    "slow-sub-blocks-all": Case("lag", "TIK-G22", workload=TICK, time_s=8),
    "cache-deadlock": Case("stall", "TIK-G14", workload=TICK),
    "min-skips-uninit": Case("late-event", "TIK-G4", workload=TICK),
    "future-stale-read-max-ts": Case("spurious-abort", "TIK-G13", seed=3, workload="stale-reads"),
    "follower-hole-scan-vs-observe": Case("missing-event", "TIK-G5", workload=TICK),
    "miss-means-done": Case("late-event", "TIK-G4", seed=5, workload=TICK),
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
    return Runs(tmp_path_factory.mktemp("planted"), scenario_of, schedule)


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS) == sorted(path.stem for path in PLANS.iterdir())
    assert all(list(schedule(bug).drawn) == ["schedule"] for bug in BUGS)
    require_schedules(PLANS, [bug for bug in BUGS if scripted(bug) is None])


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_passes(runs: Runs, bug: str) -> None:
    """A script of a few operations exercises too little to be called valid."""
    require_clean(runs.of(bug, is_planted=False), "vacuous" if scripted(bug) is not None else "valid")


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
