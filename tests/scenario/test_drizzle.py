"""The model of Drizzle under random faults, judged by oracles that share nothing with the checkers."""

import os
from collections import Counter

import pytest

from harness.scenario.scenario import Scenario
from tests.oracles.drizzle import complaints
from tests.scenario.simulated import Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "9")))
WORKLOADS = ("outcomes", "large", "sessions")
# Bug: a seed that shows it, and the oracle that notices.
BUGS = {
    "seg-id-not-raised": (0, "pieces"),
    "stmt-error-keeps-partial": (0, "clients"),
    "apply-incomplete": (0, "replicas"),
    "ignore-errors-partial": (0, "rows"),
    "filter-drops-final": (0, "filter"),
}


def simulated(seed: int, *bugs: str) -> Simulated:
    """One run; every workload has its turn."""
    workload = WORKLOADS[seed % len(WORKLOADS)]
    return Simulated(Scenario(cluster="drizzle", seed=seed, time_s=3, workload=workload, bugs=bugs))


@pytest.fixture(scope="module")
def runs() -> dict[int, Simulated]:
    print(f"seeds {SEEDS[0]} to {SEEDS[-1]}")
    return {seed: simulated(seed) for seed in SEEDS}


def test_no_oracle_complains_of_a_correct_run(runs: dict[int, Simulated]) -> None:
    assert {run.reason for run in runs.values()} == {"completed"}
    found = {seed: complaints(run.evidence) for seed, run in runs.items()}
    assert {seed: sentences for seed, sentences in found.items() if sentences} == {}


def test_the_runs_show_what_the_oracles_are_about(runs: dict[int, Simulated]) -> None:
    """Else their silence would say nothing."""
    goals: Counter[str] = Counter()
    for run in runs.values():
        goals.update({goal: 1 for goal, count in run.goals.items() if count})
        assert len(run.completions("ok")) > 100
        assert sum(run.unexpected.values()) == 0
    for goal in (
        "a piece left before its transaction ended",
        "a replica applied a transaction of several pieces",
        "a server was started again",
        "a statement failed",
        "a transaction was rolled back of which pieces had gone out",
    ):
        assert goals[goal] >= len(runs) // 2, goal
    for goal in (
        "a log refused a piece",
        "a replica left a transaction out",
        "a session waited too long for a lock",
        "an update changed nothing",
        "the observer began anew",
    ):
        assert goals[goal], goal


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert simulated(FIRST).unseed == runs[FIRST].unseed


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug).evidence)
