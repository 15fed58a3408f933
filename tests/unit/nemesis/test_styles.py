"""Every style draws plans that can be carried out, on every cluster, from the seed alone."""

from collections import Counter
from itertools import pairwise, product

import msgspec
import pytest

from harness.core.draw import Draw, Stream
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import topology
from nemesis.plan import Plan
from nemesis.registry import PACKAGES
from nemesis.styles.field import Field
from nemesis.styles.narrow import at_point, on_links, on_nodes
from nemesis.styles.styles import STYLES, draw_styled
from nemesis.topology import Topology
from nemesis.validation import problems
from tests.unit.nemesis.topologies import LONE, QUORUM, SMALL

MS = 1_000_000
SECONDS_NS = 20_000 * MS
NAMES = ("partition", "crash", "pause", "slow-subscriber", "slow-link", "clock", "power")
TICDC = topology(load_cluster(installed("ticdc")))


def drawn(style: str, field: Field, seed: int) -> Plan | None:
    return draw_styled(style, field, Draw(seed))


def field_of(topology: Topology) -> Field:
    packages = (PACKAGES[name] for name in NAMES)
    return Field(topology, tuple(each for each in packages if each.unfit(topology) is None), SECONDS_NS)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("topology", [SMALL, QUORUM, LONE, TICDC], ids=["small", "quorum", "lone", "ticdc"])
def test_a_drawn_plan_can_be_carried_out_and_comes_again(style: str, topology: Topology) -> None:
    field = field_of(topology)
    for seed in range(8):
        plan = drawn(style, field, seed)
        assert plan == drawn(style, field, seed)
        if plan is not None:
            assert problems(plan, topology, duration_ns=SECONDS_NS) == []
            assert max(step.until_ns for step in plan.steps) <= field.end_ns
            assert plan.drawn == {"style": style}


def test_a_style_without_anything_to_strike_has_no_plan() -> None:
    clocks = Field(msgspec.structs.replace(SMALL, points=()), (PACKAGES["clock"],), SECONDS_NS)
    assert drawn("points", clocks, 1) is None
    assert drawn("feeds", clocks, 1) is None
    assert drawn("links", clocks, 1) is None
    assert drawn("slow", clocks, 1) is None
    assert drawn("nodes", clocks, 1) is not None


def test_what_is_slow_stays_slow_for_seconds_and_alone() -> None:
    steps = [plan.steps for seed in range(20) if (plan := drawn("slow", field_of(TICDC), seed)) is not None]
    assert {step.package for each in steps for step in each} == {"slow-subscriber", "slow-link"}
    assert all(before.until_ns < after.at_ns for each in steps for before, after in pairwise(each))
    assert all(step.until_ns - step.at_ns >= 3_000 * MS for each in steps for step in each)


def test_a_feeding_node_stops_while_other_links_to_a_subscriber_have_delays_of_their_own() -> None:
    for seed in range(20):
        plan = drawn("feeds", field_of(TICDC), seed)
        assert plan is not None
        stops = [step for step in plan.steps if step.package != "slow-link"]
        delays = [step for step in plan.steps if step.package == "slow-link"]
        assert stops
        assert all(before.until_ns < after.at_ns for before, after in pairwise(stops))
        assert len({step.args["latency_ns"] for step in delays}) > 1
        for step in delays:
            (link,) = step.targets
            assert {"c1", "c2"} & set(link.split(">"))
            beside = [each for each in stops if step.at_ns < each.until_ns and each.at_ns < step.until_ns]
            assert not any(set(each.targets) & set(link.split(">")) for each in beside)


def test_without_subscribers_any_server_feeds_another() -> None:
    plan = drawn("feeds", field_of(QUORUM), 1)
    assert plan is not None
    assert {len(target.split(">")) for step in plan.steps for target in step.targets} == {1, 2}
    assert drawn("feeds", field_of(LONE), 1) is None


def test_partitions_divide_a_cluster_completely_in_three_styles() -> None:
    for style in ("apart", "dense", "links"):
        cuts = [
            {frozenset(link.split(">")) for link in step.targets}
            for seed in range(30)
            if (plan := drawn(style, field_of(TICDC), seed)) is not None
            for step in plan.steps
            if step.package == "partition"
        ]
        assert any(
            all(frozenset(pair) in cut for pair in product(side, {"k1", "k2", "k3"} - side))
            for cut in cuts
            for side in ({"k1"}, {"k2"}, {"k3"})
        )


@pytest.mark.parametrize("style", STYLES)
def test_no_strike_at_a_failpoint_waits_for_a_node_that_never_reaches_it(style: str) -> None:
    for seed in range(8):
        plan = drawn(style, field_of(TICDC), seed)
        assert plan is not None
        for step in plan.steps:
            point = step.args.get("point")
            assert point is None or set(step.targets) <= set(TICDC.reaching(str(point)))


def test_a_failpoint_is_struck_where_it_can_be_reached() -> None:
    packages = tuple(PACKAGES[name] for name in ("crash", "pause", "power", "clock"))
    for number in range(40):
        strike = at_point(TICDC, packages, Stream(number, "point"), "sink-before-durable")
        assert strike is not None
        assert set(strike.targets) <= {"c1", "c2"}
        assert strike.args["point"] == "sink-before-durable"
    assert at_point(TICDC, (PACKAGES["clock"],), Stream(1, "point"), "sink-before-durable") is None
    assert at_point(SMALL, packages, Stream(1, "point"), "before-answer") is not None  # Of no declared role: anywhere.


def test_faults_of_all_kinds_can_be_aimed_at_one_node_or_its_links() -> None:
    for name in ("partition", "crash", "pause", "slow-link", "clock", "power"):
        strike = on_nodes(TICDC, PACKAGES[name], Stream(3, name), ("k2",))
        assert strike is not None
        assert all("k2" in target.split(">") for target in strike.targets)
    assert on_nodes(TICDC, PACKAGES["slow-subscriber"], Stream(3, "slow"), ("t1",)) is None


def test_links_are_drawn_inside_the_largest_role_and_between_roles_in_each_direction() -> None:
    forms = Counter[tuple[str, bool]]()
    packages = (PACKAGES["slow-link"], PACKAGES["partition"])
    for number in range(300):
        chosen = on_links(TICDC, packages, Stream(number, "links"))
        assert chosen is not None
        ends = [link.split(">") for link in chosen[1].targets]
        is_inside = all(end[0] == "k" for pair in ends for end in pair)
        forms[chosen[1].fault, is_inside] += 1
    assert set(forms) == {(fault, is_inside) for fault in ("delay", "cut", "stall") for is_inside in (True, False)}
