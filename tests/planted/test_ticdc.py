"""Each planted bug of TiCDC is found under a short schedule, by a promise that it breaks; nothing without it.

For the schedules see schedules.py. Four have a script of operations.
"""

import re
from pathlib import Path

import pytest

from checkers.transactions.check import CHECKS as TRANSACTIONS
from clusters import ticdc
from clusters.ticdc.planted import BUGS
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_schedules, schedule

CLUSTER = "ticdc"
CASES: dict[str, Case] = {
    "wm-ignores-large": Case("late-event", "TIK-G4"),
    "wm-eq-min-commit": Case("late-event-boundary", "TIK-G4"),
    "commit-no-min-check": Case("commit-below-bound", "TIK-G3"),
    "row-matcher-new-wm": Case("torn-unit", "TIK-G6"),
    "unblock-on-status": Case("late-event", "TIK-G4"),
    "rescan-forgets-determined": Case("torn-unit", "TIK-G6"),
    "no-leader-quorum": Case("missing-event", "TIK-G5"),
    "tso-after-locks": Case("late-event", "TIK-G4"),
    "wm-overtakes-rows": Case("late-event", "TIK-G4"),
    "pending-lost-in-scan": Case("stall", "TIK-G14"),
    "scan-without-read-index": Case("stall", "TIK-G14"),
    "aba-observe": Case("stall", "TIK-G14"),
    "no-applied-check": Case("stale-mismatch", "TIK-G11"),
    "stale-skip-locks": Case("stale-mismatch", "TIK-G11"),
    "hint-is-ongoing": Case("stale-mismatch", "TIK-G11"),
    "merge-max-safe-ts": Case("stale-mismatch", "TIK-G11"),
    "ttl-not-extended": Case("spurious-abort", "TIK-G13"),
    "no-rollback-record": Case("torn-unit", "TIK-G6"),
    "no-generation": Case("snapshot-mismatch", "TIK-G1"),
    "heartbeat-clobbers-row": Case("wrong-value", "TIK-G5"),
    "match-before-init": Case("missing-event", "TIK-G5"),
    "frontier-on-merge-split": Case("missing-event", "TIK-G5"),
    "ckpt-before-flush": Case("lost-acknowledged", "TIK-G17"),
    "wm-not-max": Case("watermark-regress", "TIK-G8"),
    "pd-no-range": Case("real-time-order", "TIK-G2"),
    "orphan-never-resolved": Case("stall", "TIK-G14"),
    "start-ts-rule": Case("stale-watermark", "TIK-G10"),
    "flashback-blind-rollback": Case("flashback-mismatch", "TIK-G19"),
    "pitr-status-based": Case("backup-mismatch", "TIK-G18"),
    "ignore-set-survives": Case("G-single", "TIK-G1"),
    "hb-before-replicate": Case("commit-below-bound", "TIK-G3"),
    "slow-sub-drops-rows": Case("missing-event", "TIK-G5"),
    "slow-sub-blocks-all": Case("lag", "TIK-G22"),
    "cache-deadlock": Case("stall", "TIK-G14"),
    "min-skips-uninit": Case("late-event", "TIK-G4"),
    "future-stale-read-max-ts": Case("spurious-abort", "TIK-G13"),
    "follower-hole-scan-vs-observe": Case("missing-event", "TIK-G5"),
    "miss-means-done": Case("late-event", "TIK-G4"),
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


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_passes(runs: Runs, bug: str) -> None:
    """A script of a few operations exercises too little to be called valid."""
    require_clean(runs.of(bug, is_planted=False), "vacuous" if schedule(CLUSTER, bug).scenario.script else "valid")


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
