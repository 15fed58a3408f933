"""Each planted bug of Pravega is found under a short schedule, by a promise that it breaks; nothing without it.

For the schedules see schedules.py. Most bugs need none: they show under load alone.
"""

import re
from pathlib import Path

import pytest

from checkers.transactions.check import CHECKS as TRANSACTIONS
from clusters import pravega
from clusters.pravega.planted import BUGS
from harness.scenario.scenario import Scenario
from tests.planted.schedules import Case, Runs, judged, require_clean, require_found, require_schedules

CLUSTER = "pravega"
CASES: dict[str, Case] = {
    "cut-before-sort": Case("commit-order", "PRV-G8"),
    "order-per-segment": Case("G0", "PRV-G7"),
    "merge-not-atomic": Case("duplicate-elements", "PRV-G7"),
    "no-ctr": Case("changed-batch", "PRV-G14"),
    "roll-not-pinned": Case("empty-roll", "PRV-G14"),
    "merge-into-active": Case("misplaced-event", "PRV-G11"),
    "epochs-swapped": Case("stale-acknowledged", "PRV-G4"),
    "txn-epoch-unlisted": Case("stale-acknowledged", "PRV-G4"),
    "publish-before-seal": Case("stale-acknowledged", "PRV-G4"),
    "dup-seal-not-awaited": Case("stall", "SETTLE"),
    "no-state-cas": Case("overlapping-work", "PRV-G15"),
    "stale-etr": Case("stall", "SETTLE"),
    "wrong-txn-epoch-name": Case("stale-acknowledged", "PRV-G4"),
    "txn-against-duplicate": Case("foreign-reference", "PRV-G23"),
    "commit-before-flush": Case("stale-acknowledged", "PRV-G4"),
    "abort-without-version": Case("spurious-abort", "PRV-G13"),
    "abort-races-commit": Case("status-regress", "PRV-G16"),
    "sweeper-aborts-all": Case("stale-acknowledged", "PRV-G4"),
    "seal-drops-committing": Case("overlapping-work", "PRV-G15"),
    "writer-no-hold": Case("writer-order", "PRV-G2"),
    "resend-no-dedupe": Case("duplicate-elements", "PRV-G7"),
    "ack-over-gap": Case("stale-acknowledged", "PRV-G4"),
    "any-predecessor": Case("group-repeat", "PRV-G20"),
    "successor-at-tail": Case("group-lost", "PRV-G20"),
    "no-eos-when-empty": Case("stall", "SETTLE"),
    "position-without-completed": Case("stall", "SETTLE"),
    "no-fair-queue": Case("starved-scale", "PRV-G13"),
    "epoch-gc": Case("spurious-abort", "PRV-G13"),
    "cache-after-merge": Case("unlike-stream", "PRV-G1"),
    "merge-by-event": Case("split-block", "PRV-G6"),
    "early-visibility": Case("phantom-event", "PRV-G5"),
    "any-epoch-first": Case("commit-order", "PRV-G8"),
    "epoch-record-rewritten": Case("wrong-reference", "PRV-G12"),
    "no-container-fence": Case("stale-acknowledged", "PRV-G4"),
    "replayed-event": Case("stall", "SETTLE"),
    "cut-ignores-duplicates": Case("cut-overrun", "PRV-G19"),
    "batch-unchained": Case("batch-order", "PRV-G14"),
}
TABLE = re.compile(
    r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| ([a-z-]+) \| (SETTLE|G\d+) \| .* \| (\w+) \|$", re.MULTILINE
)


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_finds_nothing(runs: Runs, bug: str) -> None:
    require_clean(runs.of(bug, is_planted=False), "valid", "vacuous")


@pytest.mark.parametrize("seed", [34003, 90038])
def test_what_another_controller_has_done_is_not_done_again(tmp_path: Path, seed: int) -> None:
    """Seed 34003: a name that had been removed was free again for who had read that it was; 90038: README, 13."""
    scenario = Scenario(cluster="pravega", seed=seed, time_s=20, workload="txn-blocks")
    assert judged(tmp_path, scenario, None).findings == ()


def test_transactions_that_wait_for_their_abort_do_not_hold_up_the_others(tmp_path: Path) -> None:
    """Seed 32000234: aborted one after the other, eighty of them kept the processor from all else for 7 s at a time."""
    scenario = Scenario(cluster="pravega", seed=32000234, time_s=20, workload="leases", style="points")
    assert judged(tmp_path, scenario, None).findings == ()


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
