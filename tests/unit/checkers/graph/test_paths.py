"""Closed walks cut into cycles, and shortest paths by rules that count and separate kinds of steps."""

from itertools import product
from random import Random
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest

from checkers.graph import paths
from checkers.graph.edges import CHAIN, IN, OUT, REALTIME, RW, WR, WW
from checkers.graph.paths import ANY, MOMENT, Rule, StepGraph, Steps, cycle_labels, labels_of, simple_cycles
from checkers.graph.strong import strong_labels
from harness.core.columns import Int64s


class Step(NamedTuple):
    source: int
    target: int
    kind: int


@pytest.mark.parametrize(
    ("nodes", "kinds", "expected"),
    [
        ([1, 2, 3], [WR, RW, WW], [([1, 2, 3], [WR, RW, WW])]),
        # The walk meets 2 twice: a cycle from there to there, and the rest.
        ([1, 2, 3, 2], [WR, RW, RW, WW], [([2, 3], [RW, RW]), ([1, 2], [WR, WW])]),
        # The node that is met twice is the first of all.
        ([1, 2, 1, 3], [WW, WR, WW, RW], [([1, 2], [WW, WR]), ([1, 3], [WW, RW])]),
        ([1, 2, 3, 1, 4], [RW, WR, RW, WR, WW], [([1, 2, 3], [RW, WR, RW]), ([1, 4], [WR, WW])]),
        # A node of a cycle that was cut out is new when the rest meets it.
        ([1, 2, 3, 2, 4, 3], [WR, WR, WW, WW, RW, RW], [([2, 3], [WR, WW]), ([1, 2, 4, 3], [WR, WW, RW, RW])]),
        # Moments are passed, as part of the step that leads to the first of them.
        ([1, 2, 8, 9], [WW, REALTIME, MOMENT, MOMENT], [([1, 2], [WW, REALTIME])]),
    ],
)
def test_a_walk_is_cut_into_cycles_that_pass_no_node_twice(
    nodes: list[int], kinds: list[int], expected: list[tuple[list[int], list[int]]]
) -> None:
    walk = list(map(Step, nodes, [*nodes[1:], nodes[0]], kinds))
    cycles = [([step.source for step in cycle], [step.kind for step in cycle]) for cycle in simple_cycles(walk)]
    assert cycles == expected


def graph(*steps: tuple[int, int, int], rule: Rule = ANY) -> StepGraph:
    return StepGraph([Steps(*np.array(steps, np.int64).T)], 8, rule)


@pytest.mark.parametrize(
    ("rule", "first", "expected"),
    [
        (Rule(), WR, [0, 1]),
        # Two rw in a row are avoided,
        (Rule(apart=RW), WR, [0, 2, 3]),
        # also where the path meets the step before its first one.
        (Rule(apart=RW), RW, [4, 5, 6, 3]),
        # The path has as many steps of a kind as are required,
        (Rule(least=((WW, 2),)), WR, [4, 5, 6, 3]),
        # and no more than one of another.
        (Rule(least=((RW, 1),), once=RW), WR, [0, 2, 3]),
        (Rule(least=((RW, 1),), once=RW), RW, [4, 5, 6, 3]),
        (Rule(least=((OUT, 1),)), WR, None),
    ],
)
def test_the_shortest_path_keeps_its_rule(rule: Rule, first: int, expected: list[int] | None) -> None:
    steps = ((1, 2, RW), (2, 0, RW), (2, 3, WR), (3, 0, WR), (1, 4, WW), (4, 5, WW), (5, 3, WW))
    one = graph(*steps, rule=rule)
    assert one.path(1, 0, first=first) == expected
    assert one.is_closed(0, 1, first) == (expected is not None)


def test_a_chain_counts_for_less_than_any_other_step() -> None:
    steps = ((1, 2, CHAIN), (2, 3, CHAIN), (3, 0, CHAIN), (1, 0, IN))
    assert graph(*steps).path(1, 0) == [0, 1, 2]


def on_cycles(one: StepGraph, kind: int) -> list[bool]:
    result: list[bool] = one.on_cycles(one.steps.source, one.steps.target, kind).tolist()
    return result


def test_a_step_is_closed_if_a_path_leads_back_without_two_of_a_kind_in_a_row() -> None:
    one = graph((0, 1, RW), (1, 2, RW), (2, 0, WW), (2, 3, WW))
    assert on_cycles(one, WW) == [True, True, True, False]
    one = graph((0, 1, RW), (1, 2, RW), (2, 0, WW), (2, 3, WW), rule=Rule(apart=RW))
    assert on_cycles(one, RW)[:2] == [False, False]
    other = graph((0, 1, RW), (1, 2, WR), (2, 3, RW), (3, 0, WW), rule=Rule(apart=RW))
    assert on_cycles(other, RW)[::2] == on_cycles(other, WW)[1::2] == [True, True]


@pytest.mark.parametrize("seed", range(300))
def test_nodes_share_a_number_if_a_closed_path_leads_through_both(seed: int) -> None:
    draw = Random(seed)
    size, reach = draw.randint(1, 12), draw.choice([1, 2, 12])
    near = [(node, node + draw.randint(-reach, reach)) for node in range(size) for _ in range(2)]
    steps = [(node, other) for node, other in near if 0 <= other < size and draw.random() < 0.7]
    source, target = np.array(steps, np.int64).reshape(-1, 2).T
    label = cycle_labels(source, target, size).tolist()
    expected = nx.DiGraph(steps)
    expected.add_nodes_from(range(size))
    together = list(nx.strongly_connected_components(expected))
    for one, other in product(range(size), repeat=2):
        assert (label[one] == label[other]) == any(one in part and other in part for part in together)


def test_only_steps_around_one_that_leads_backwards_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = list[int]()
    monkeypatch.setattr(paths, "labels_of", lambda source, target, size: searched.append(len(source)))
    ahead = np.arange(100)
    cycle_labels(np.append(ahead, 52), np.append(ahead + 1, 50), 101)
    cycle_labels(ahead, ahead + 1, 101)
    assert searched == [3, 0]


def test_only_nodes_with_a_step_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = list[int]()

    def search(source: Int64s, target: Int64s, size: int) -> Int64s:
        searched.append(size)
        return strong_labels(source, target, size)

    monkeypatch.setattr(paths, "strong_labels", search)
    label = labels_of(np.array([90, 50, 70]), np.array([50, 90, 50]), 100)
    assert searched == [3]
    assert label.tolist() == [50 if node == 90 else node for node in range(100)]
