"""Nothing is drawn or asked for that cannot matter: idle links, starved subscribers, promises out of reach."""

from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest

from harness.core.errors import ScenarioError
from harness.core.record import Invoke
from harness.run.running import prepare
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide, topology
from harness.scenario.workloads import WORKLOADS
from nemesis.overlap import conflict
from nemesis.topology import Topology, ends
from tests.unit.generator_simulator import simulate
from tests.unit.nemesis.test_overlap import step
from tests.worlds.workloads import options

SEEDS = 60
POSTGRES = load_cluster(installed("postgres"))
LONE_SENDER = Topology(
    nodes=(("n1", "primary"), ("n2", "standby"), ("s1", "subscriber")),
    links={("primary", "subscriber"): "fifo", ("subscriber", "primary"): "fifo", ("standby", "primary"): "fifo"},
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_whose_transactions_write_one_key_says_so(name: str) -> None:
    workload = WORKLOADS[name](options())
    invoked = [event for event in simulate(workload.load).events if isinstance(event, Invoke)]
    written = [len({mop.key for mop in invoke.mops or () if mop.f != "r"}) for invoke in invoked]
    assert workload.is_single == (max(written) == 1)


@pytest.mark.parametrize(("workload", "is_purpose"), [("list-append", True), ("counter", False)])
@pytest.mark.parametrize(
    ("cluster", "whole", "complete"), [("postgres", "PG-14", "PG-13"), ("ndb", "NDB-G8", "NDB-G7")]
)
def test_a_promise_that_the_workload_cannot_break_is_no_purpose(
    tmp_path: Path,
    cluster: str,
    whole: str,
    complete: str,
    workload: str,
    is_purpose: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Engine:
        def close(self) -> None: ...

    monkeypatch.setattr("harness.runtimes.containers.engine.engine.connect", Engine)
    runtime: Literal["sim", "docker"] = "sim" if cluster == "ndb" else "docker"
    scenario = Scenario(cluster=cluster, runtime=runtime, workload=workload)
    _, run_file = prepare(scenario, installed(cluster), tmp_path)
    assert {each.id: each.is_purpose for each in run_file.promises}[whole] == is_purpose
    assert {each.id: each.is_purpose for each in run_file.promises}[complete]


def test_no_fault_is_drawn_for_a_link_that_carries_nothing_but_a_plan_may_name_it() -> None:
    struck = set()
    for seed in range(SEEDS):
        plan = decide(Scenario(cluster="postgres", runtime="docker", seed=seed), POSTGRES).plan
        struck |= {frozenset(ends(target)) for each in plan.steps for target in each.targets if ">" in target}
        assert all(conflict(one, other, topology(POSTGRES)) is None for one, other in combinations(plan.steps, 2))
    assert frozenset(("client", "n1")) in struck
    assert frozenset(("client", "n2")) not in struck
    assert ("client", "standby") in POSTGRES.links


def test_a_subscriber_is_not_slowed_while_all_who_send_to_it_are_down() -> None:
    slow, down = step("consumer", "s1"), step("pause", "n1")
    assert "nobody else sends to s1" in str(conflict(slow, down, LONE_SENDER))
    assert conflict(down, slow, LONE_SENDER) == conflict(slow, down, LONE_SENDER)
    assert conflict(slow, step("pause", "n2"), LONE_SENDER) is None


def test_the_faults_to_choose_from_are_named_once() -> None:
    with pytest.raises(ScenarioError) as raised:
        decide(Scenario(cluster="postgres", runtime="docker", nemesis=("qqqq",)), POSTGRES)
    assert "unknown fault of postgres 'qqqq'; choose from " in str(raised.value)
    names = str(raised.value).split("choose from ")[1].split(", ")
    assert len(names) == len(set(names)) > 5
