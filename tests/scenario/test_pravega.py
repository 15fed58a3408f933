"""The model of Pravega under random faults, judged by oracles that share nothing with the checkers; and these bite."""

import os
from collections import Counter

import pytest

from clusters.pravega.cluster import Pravega
from clusters.pravega.writers.transaction import LOST_LEASE
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from tests.oracles.pravega import complaints
from tests.scenario.simulated import Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "12")))
AGAIN = SEEDS[:1]
WORKLOADS = Pravega.workloads
# Bug: a seed and a workload that show it, and the oracle that notices.
BUGS = {
    "order-per-segment": (400, "txn-blocks", "orders"),
    "wrong-txn-epoch-name": (400, "txn-blocks", "acknowledged"),
    "commit-before-flush": (0, "txn-blocks", "transactions"),
    "sweeper-aborts-all": (0, "txn-blocks", "acknowledged"),
    "writer-no-hold": (11, "keyed-sequence", "writers"),
    "resend-no-dedupe": (1, "keyed-sequence", "writers"),
    "successor-at-tail": (400, "txn-blocks", "deliveries"),
}


def simulated(seed: int, *bugs: str, workload: str | None = None, plan: Plan | None = None) -> Simulated:
    """One run; every workload has its turn, unless one is named."""
    chosen = workload or WORKLOADS[seed % len(WORKLOADS)]
    scenario = Scenario(cluster="pravega", seed=seed, time_s=8, workload=chosen, bugs=bugs)
    return Simulated(scenario, plan)


@pytest.fixture(scope="module")
def runs() -> dict[int, Simulated]:
    print(f"seeds {SEEDS[0]} to {SEEDS[-1]}")
    return {seed: simulated(seed) for seed in SEEDS}


def test_no_oracle_complains_of_a_correct_run(runs: dict[int, Simulated]) -> None:
    assert {run.reason for run in runs.values()} == {"completed"}
    assert {seed: said for seed, run in runs.items() if (said := complaints(run.evidence))} == {}


def test_the_runs_show_what_the_oracles_are_about(runs: dict[int, Simulated]) -> None:
    """Else their silence would say nothing."""
    goals: Counter[str] = Counter()
    for run in runs.values():
        goals.update({goal: 1 for goal, count in run.goals.items() if count})
        assert len(run.completions("ok")) > 50
        assert len(run.events("row")) > 50
        assert sum(run.unexpected.values()) == 0
    for goal in ("a segment was split", "segments were merged", "a transaction was rolled"):
        assert goals[goal] >= len(runs) // 2, goal
    for goal in (
        "a container moved to another store",
        "a controller took over the stream",
        "a lease ran out",
        "a processor went on with a commit of another one",
        "a reader was taken for dead with segments",
        "a transaction was committed in place after a roll",
        "a transaction was taken over from another controller",
        "a stream was sealed",
        "a stream was truncated",
        "a writer moved events behind a sealed segment",
        "the readers were restored",
    ):
        assert goals[goal] >= 2, goal


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert [simulated(seed).unseed for seed in AGAIN] == [runs[seed].unseed for seed in AGAIN]


def test_without_faults_no_transaction_loses_its_lease() -> None:
    run = simulated(FIRST, plan=Plan(steps=()))
    assert complaints(run.evidence) == {}
    assert run.completions("ok")
    assert [each.error for each in run.completions("fail") if LOST_LEASE in (each.error or "")] == []


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, workload, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug, workload=workload).evidence)
