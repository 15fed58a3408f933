"""The model of Materialize under random faults, judged by oracles that share nothing with the checkers."""

import os
from collections import Counter

import pytest

from clusters.materialize.coordinator.sequencing import SERIALIZABLE
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.oracles.materialize import complaints
from tests.scenario.simulated import SECOND, Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "20")))
AGAIN = SEEDS[:1]
WORKLOADS = ("tables", "views", "sources", "ddl", "timelines")
# Bug: a seed that shows it, and the oracle that notices.
BUGS = {
    "respond-before-apply": (0, "real time"),
    "peek-ignores-upper": (0, "lists"),
    "occ-retry-same-diffs": (11, "shards"),
    "ack-before-global": (2, "source"),
    "progress-before-updates": (0, "streams"),
    "stale-table-list": (8, "created"),
}


def is_strict(seed: int) -> bool:
    """Every fourth round of workloads is at serializable isolation."""
    return seed // len(WORKLOADS) % 4 != 3


def simulated(seed: int, *bugs: str, plan: Plan | None = None) -> Simulated:
    """One run; every workload has its turn."""
    options = {} if is_strict(seed) else {"isolation": SERIALIZABLE}
    workload = WORKLOADS[seed % len(WORKLOADS)]
    scenario = Scenario(cluster="materialize", seed=seed, time_s=5, workload=workload, bugs=bugs, options=options)
    return Simulated(scenario, plan)


@pytest.fixture(scope="module")
def runs() -> dict[int, Simulated]:
    print(f"seeds {SEEDS[0]} to {SEEDS[-1]}")
    return {seed: simulated(seed) for seed in SEEDS}


def test_no_oracle_complains_of_a_correct_run(runs: dict[int, Simulated]) -> None:
    assert {run.reason for run in runs.values()} == {"completed"}
    found = {seed: complaints(run.evidence, is_strict=is_strict(seed)) for seed, run in runs.items()}
    assert {seed: sentences for seed, sentences in found.items() if sentences} == {}


def test_the_runs_show_what_the_oracles_are_about(runs: dict[int, Simulated]) -> None:
    """Else their silence would say nothing."""
    goals: Counter[str] = Counter()
    for run in runs.values():
        goals.update({goal: 1 for goal, count in run.goals.items() if count})
        assert len(run.completions("ok")) > 50
        assert len(run.events("watermark")) > 50
        assert sum(run.unexpected.values()) == 0
    for goal in (
        "a coordinator took over",
        "a group commit wrote several tables",
        "a leader began ahead of its clock",
        "a read-then-write read",
        "an empty group commit advanced the tables",
    ):
        assert goals[goal] >= len(runs) // 2, goal
    for goal in (
        "a compute node began anew",
        "a coordinator was deployed beside a leader",
        "a leader ended: a table had another upper",
        "a leader ended: the catalog shows another one",
        "the topic refused a superseded sink",
        "ingestion resumed",
        "records were acknowledged upstream",
    ):
        assert goals[goal] >= 2, goal


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert [simulated(seed).unseed for seed in AGAIN] == [runs[seed].unseed for seed in AGAIN]


def test_without_faults_a_deployed_coordinator_breaks_nothing() -> None:
    run = simulated(FIRST, plan=Plan(steps=()))
    assert complaints(run.evidence) == {}
    assert run.goals["a coordinator took over"]
    assert all("superseded" in (each.error or "") for each in run.completions("info"))


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug).evidence)


def test_sinks_publish_also_if_each_answer_of_the_topic_comes_after_a_second_request() -> None:
    """An opening that came twice superseded itself."""
    begin_ns, end_ns = SECOND // 5, 2 * SECOND
    links = ("x1>b1", "b1>x1", "x2>b1", "b1>x2", "client>u1")
    late: dict[str, int | str] = {"latency_ns": SECOND // 10}
    slow = Step(fault="delay", package="slow-link", at_ns=0, until_ns=end_ns, targets=links, args=late)
    down = Step(fault="crash", package="crash", at_ns=SECOND // 10, until_ns=begin_ns, targets=("x1", "x2"))
    run = Simulated(Scenario(cluster="materialize", seed=FIRST, time_s=2), Plan(steps=(slow, down)))
    load_ns = run.marks("load")[0].time_ns
    published = [event.time_ns - load_ns for event in run.events("watermark") if event.subscriber == "s3"]
    assert any(begin_ns + SECOND < at_ns < end_ns for at_ns in published), published
