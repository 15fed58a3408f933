"""The model of TiCDC under random faults, judged by oracles that share nothing with the checkers; and these bite."""

import os
from collections import Counter

import pytest

from clusters.ticdc.cluster import Ticdc
from clusters.ticdc.oracle.upgrade import OPTION
from clusters.ticdc.oracle.upgrade import ROLLING as ROLLING_UPGRADE
from clusters.ticdc.shape import physical_ms
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.oracles.ticdc import complaints
from tests.scenario.simulated import SECOND, Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + 24)
RESTORED = SEEDS[20:]  # These have restores and flashbacks,
CHURNED = SEEDS[16:20]  # these change regions,
ROLLING = SEEDS[17:23:2]  # and in these nodes are upgraded.
AGAIN = SEEDS[:2]
WORKLOADS = ("large-vs-tick", "stale-reads", "pusher", "list-append", "churn")
# Of the seeds, 15 found that a follower was left behind where its answers were lost in one direction.
# Bug: a seed that shows it, and the oracle that notices.
BUGS = {
    "wm-ignores-large": (0, "streams"),
    "row-matcher-new-wm": (0, "streams"),
    "ignore-set-survives": (3, "snapshots"),
    "commit-no-min-check": (6, "snapshots"),
}


def simulated(seed: int, *bugs: str) -> Simulated:
    """One run; every workload has its turn."""
    workload = WORKLOADS[seed % len(WORKLOADS)]
    workload = "restores" if seed in RESTORED else "region-churn" if seed in CHURNED else workload
    options = {OPTION: ROLLING_UPGRADE} if seed in ROLLING else {}
    return Simulated(Scenario(cluster="ticdc", seed=seed, time_s=5, workload=workload, bugs=bugs, options=options))


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
        assert len(run.events("watermark")) > 20
        assert sum(run.unexpected.values()) == 0
    for goal in (
        "a backup was restored",
        "a capture resumed from its checkpoint",
        "a large transaction was known as committed before its commit came",
        "a leader was deposed",
        "a reader pushed a transaction's bound",
        "a region was split",
        "a replica served a stale read",
        "a rolling upgrade came to its end",
        "regions were merged",
    ):
        assert goals[goal] >= 2, goal


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert [simulated(seed).unseed for seed in AGAIN] == [runs[seed].unseed for seed in AGAIN]


def test_watermarks_move_where_messages_take_longer_than_ticks() -> None:
    """Seed 6041 found that rounds ended before their answers came, one after the other."""
    stores = [node.id for node in Ticdc.nodes if node.role == "data"]
    links = tuple(f"{one}>{other}" for one in stores for other in stores if one != other)
    slow = Step(
        fault="delay",
        package="slow-link",
        at_ns=0,
        until_ns=3 * SECOND,
        targets=links,
        args={"latency_ns": SECOND // 25},
    )
    scenario = Scenario(cluster="ticdc", seed=1, time_s=3, workload="churn", parameters={"advance_ms": 20})
    run = Simulated(scenario, Plan(steps=(slow,)))
    reached_ms = {physical_ms(event.position or 0) for event in run.events("watermark")}
    assert len([each for each in reached_ms if each < 2_500]) > 10  # While the links were slow.


def test_no_store_is_away_for_its_upgrade_when_the_run_ends() -> None:
    """Seed 30170 found one that had no rows to show, as it had just been started again."""
    scenario = Scenario(
        cluster="ticdc", seed=30170, time_s=5, workload="large-vs-tick", options={OPTION: ROLLING_UPGRADE}
    )
    assert complaints(Simulated(scenario).evidence) == {}


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug).evidence)
