"""Faults that a cluster must declare are drawn and accepted for those that declare them, and refused for others."""

import msgspec
import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide, topology, upgraded
from nemesis.plan import Plan, Step
from nemesis.registry import PACKAGES
from nemesis.topology import MEMBERSHIP, UPGRADES, Topology
from nemesis.validation import problems

THREE = Topology(nodes=tuple((f"n{n}", "member") for n in (1, 2, 3)), links={}, procedures=(MEMBERSHIP, UPGRADES))
ETCD = load_cluster(installed("etcd"))


def drawn(package: str, where: Topology = THREE) -> set[tuple[str, tuple[str, ...]]]:
    strikes = [PACKAGES[package].draw(where, Draw(seed).stream("faults")) for seed in range(100)]
    return {(strike.fault, strike.targets) for strike in strikes if strike is not None}


def test_one_member_leaves_and_all_nodes_roll_in_any_order() -> None:
    assert drawn("membership") == {(fault, (node,)) for fault in ("remove", "replace") for node in ("n1", "n2", "n3")}
    for package, fault in (("rolling-restart", "restart"), ("rolling-upgrade", "upgrade")):
        assert {each for each, _ in drawn(package)} == {fault}
        assert {len(set(targets)) for _, targets in drawn(package)} == {3}
        assert len(drawn(package)) == 6


def test_a_majority_must_stay_and_the_cluster_must_know_how() -> None:
    two = msgspec.structs.replace(THREE, nodes=THREE.nodes[:2])
    bare = msgspec.structs.replace(THREE, procedures=())
    assert "no majority would stay" in (PACKAGES["membership"].unfit(two) or "")
    assert PACKAGES["membership"].unfit(bare) == "no change of its members is declared"
    assert PACKAGES["rolling-upgrade"].unfit(bare) == "no upgrade from its options is declared"
    assert [PACKAGES[name].unfit(THREE) for name in ("membership", "rolling-upgrade", "rolling-restart")] == [None] * 3


@pytest.mark.parametrize(
    ("fault", "lacks"), [("remove", "a change of members"), ("upgrade", "an upgrade from these options")]
)
def test_a_plan_is_refused_where_its_fault_is_not_declared(fault: str, lacks: str) -> None:
    step = Step(fault=fault, package="membership", at_ns=0, until_ns=10**9, targets=("n1",))
    plan = Plan(steps=(step,))
    bare = msgspec.structs.replace(THREE, procedures=())
    assert problems(plan, bare, runtime="docker") == [f"step 0 ({fault}): this cluster does not declare {lacks}"]
    assert problems(plan, THREE, runtime="docker") == []


def test_the_version_decides_whether_etcd_can_be_upgraded() -> None:
    assert upgraded(ETCD, {}) == {"version": "3.5.1", "reads": "linearizable", "locks": "off", "compaction": "off"}
    assert upgraded(ETCD, {"version": "3.7.3"}) is None
    assert topology(ETCD, {"version": "3.7.3"}).procedures == (MEMBERSHIP,)
    run = Scenario(cluster="etcd", runtime="docker", time_s=30, nemesis=("rolling-upgrade",))
    assert {step.fault for step in decide(run, ETCD).plan.steps} == {"upgrade"}
    with pytest.raises(ScenarioError, match=r"rolling-upgrade.*no upgrade from its options is declared"):
        decide(msgspec.structs.replace(run, options={"version": "3.7.3"}), ETCD)
