from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.draw import Stream
from nemesis.faults.partition import (
    FORMS,
    Grudge,
    bridge,
    complete_grudge,
    draw_division,
    draw_partition,
    halves,
    majority_ring,
    one_alone,
    one_way_grudge,
)
from tests.unit.nemesis.topologies import LONE, QUORUM, SMALL

NODES = st.integers(3, 12).map(lambda count: tuple(f"n{number}" for number in range(count)))


def heard(grudge: Grudge, target: str, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Those whom `target` hears, itself included."""
    return tuple(source for source in nodes if (source, target) not in grudge)


def is_symmetric(grudge: Grudge) -> bool:
    return all((target, source) in grudge for source, target in grudge)


@given(NODES)
def test_every_node_of_a_majority_ring_hears_a_majority_and_no_two_the_same(nodes: tuple[str, ...]) -> None:
    grudge = majority_ring(nodes)
    views = [heard(grudge, node, nodes) for node in nodes]
    assert [len(view) for view in views] == [len(nodes) // 2 + 1] * len(nodes)
    assert len(set(views)) == len(nodes)
    assert all(node in view for node, view in zip(nodes, views, strict=True))


@given(NODES)
def test_halves_are_as_equal_as_can_be_and_hear_only_themselves(nodes: tuple[str, ...]) -> None:
    grudge = halves(nodes)
    sizes = sorted(len(heard(grudge, node, nodes)) for node in nodes)
    assert sizes == [len(nodes) // 2] * (len(nodes) // 2) + [(len(nodes) + 1) // 2] * ((len(nodes) + 1) // 2)
    assert is_symmetric(grudge)


@given(NODES)
def test_one_alone_hears_nobody_and_all_others_hear_each_other(nodes: tuple[str, ...]) -> None:
    grudge = one_alone(nodes)
    assert heard(grudge, nodes[0], nodes) == nodes[:1]
    assert all(heard(grudge, node, nodes) == nodes[1:] for node in nodes[1:])


@given(NODES)
def test_only_the_bridge_hears_both_sides(nodes: tuple[str, ...]) -> None:
    grudge = bridge(nodes)
    assert heard(grudge, nodes[0], nodes) == nodes
    assert all(len(heard(grudge, node, nodes)) < len(nodes) for node in nodes[1:])
    assert all(nodes[0] in heard(grudge, node, nodes) for node in nodes[1:])
    assert is_symmetric(grudge)


@given(NODES, st.integers(1, 2))
def test_one_way_cuts_one_direction_only(nodes: tuple[str, ...], count: int) -> None:
    grudge = one_way_grudge(nodes[:count], nodes[count:])
    assert not any((target, source) in grudge for source, target in grudge)
    assert len(grudge) == count * (len(nodes) - count)


def test_nobody_has_a_grudge_against_itself_or_its_group() -> None:
    grudge = complete_grudge((("a", "b"), ("c",), ("d",)))
    assert set(grudge) == {
        (source, target)
        for source, target in product("abcd", "abcd")
        if source != target and {source, target} != {"a", "b"}
    }


def test_small_rings_and_bridges_cut_nothing() -> None:
    assert majority_ring(("a", "b")) == majority_ring(("a",)) == majority_ring(()) == ()
    assert bridge(("a", "b")) == ()


@pytest.mark.parametrize("form", sorted(FORMS))
def test_each_form_cuts_links_that_exist(form: str) -> None:
    drawn = [FORMS[form](QUORUM, Stream(seed, "faults")) for seed in range(50)]
    strikes = [strike for strike in drawn if strike is not None]
    assert len(strikes) == 50
    assert all(target in QUORUM.all_links() for strike in strikes for target in strike.targets)


def test_a_division_has_two_sides_that_clients_reach_and_any_nodes_may_be_on_one() -> None:
    members, sides = QUORUM.largest_role(), set()
    for seed in range(300):
        strike = draw_division(QUORUM, Stream(seed, "faults"))
        assert strike is not None
        assert not any("client" in target for target in strike.targets)
        apart = {tuple(target.split(">")) for target in strike.targets}
        one = {members[0]} | {node for node in members if node != members[0] and (members[0], node) not in apart}
        other = set(members) - one
        assert apart == {*product(one, other), *product(other, one)}
        sides.add(min((tuple(sorted(one)), tuple(sorted(other))), key=lambda side: (len(side), side)))
    assert len(sides) == 5 + 10, "of five nodes, one or two are on the smaller side"
    assert draw_division(LONE, Stream(1, "faults")) is None


def test_another_server_is_on_one_side_of_a_division_or_reaches_both() -> None:
    reached = set()
    for seed in range(100):
        strike = draw_division(SMALL, Stream(seed, "faults"))
        assert strike is not None
        reached.add(tuple(node for node in ("n1", "n2") if f"c1>{node}" not in strike.targets))
    assert reached == {("n1",), ("n2",), ("n1", "n2")}


def test_no_link_is_struck_twice_and_clients_are_cut_off_only_for_short() -> None:
    for seed in range(300):
        strike = draw_partition(SMALL, Stream(seed, "faults"))
        if strike is not None:
            assert len(set(strike.targets)) == len(strike.targets) > 0
            cuts_all_clients = {f"client>{node}" for node in SMALL.of_role("data")} <= set(strike.targets)
            if cuts_all_clients and not strike.is_total:
                assert any("client" not in target for target in strike.targets)


def test_a_node_that_may_have_nothing_to_say_is_never_silenced_alone() -> None:
    """The lone coordinator sends when something changes: were only its words cut, often nothing would be."""
    strikes = [FORMS["one-way"](SMALL, Stream(seed, "faults")) for seed in range(200)]
    sources = [{target.split(">")[0] for target in strike.targets} for strike in strikes if strike is not None]
    assert {"n1"} in sources
    assert {"c1"} not in sources


def test_a_lone_node_can_only_be_cut_off_from_its_clients() -> None:
    strikes = [draw_partition(LONE, Stream(seed, "faults")) for seed in range(100)]
    targets = {strike.targets for strike in strikes if strike is not None}
    assert targets
    assert all("client" in target for each in targets for target in each)
