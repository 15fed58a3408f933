"""Which pairs of nodes a path connects: against a plain search, and within a budget."""

from random import Random

import numpy as np
import pytest

from checkers.axioms.levels import Level
from checkers.axioms.orders import cycles, forced, polygraph
from checkers.axioms.orders.cycles import connected
from checkers.axioms.orders.polygraph import Unsolved
from checkers.graph.paths import Steps
from checkers.history.transactions import to_transactions
from tests.unit.checkers.axioms.test_ladder import history, of, unguessed

SEED = 20261126
Pairs = list[tuple[int, int]]


def steps(pairs: Pairs) -> Steps:
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return Steps(source, target, np.zeros(len(pairs), np.int64))


def reached(pairs: Pairs, start: int) -> set[int]:
    found, waiting = {start}, [start]
    for node in waiting:
        new = {target for source, target in pairs if source == node} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("block", [1, 3, cycles._BLOCK])
def test_pairs_are_connected_as_a_plain_search_says(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    print(f"seed {SEED}")
    monkeypatch.setattr(cycles, "_BLOCK", block)
    seen = set[bool]()
    for number in range(40):
        draw = Random(SEED + number)
        place = draw.sample(range(12), 12)
        drawn = [(draw.randrange(12), draw.randrange(12)) for _ in range(14)]
        graph = [(one, other) for one, other in drawn if place[one] < place[other]]
        pairs = [(draw.randrange(12), draw.randrange(12)) for _ in range(30)]
        pairs = [(one, other) for one, other in pairs if one != other]
        found, _ = connected(steps(graph), np.array(place), steps(pairs), most=10_000)
        assert found.tolist() == [other in reached(graph, one) for one, other in pairs], SEED + number
        seen |= set(found.tolist())
    assert seen == {True, False}


def test_what_is_looked_at_lies_between_the_pairs_and_the_budget_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "_BLOCK", 10)
    line = steps([(node, node + 1) for node in range(1_000)])
    pairs = steps([(node, node + 5) for node in range(900)])
    found, cost = connected(line, np.arange(1_001), pairs, most=10_000)
    assert found.all()
    assert cost < 4 * 1_000
    found, cost = connected(line, np.arange(1_001), pairs, most=50)
    assert found.sum() < 50
    assert cost < 100


def test_a_search_that_ended_early_passes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = of(to_transactions(history(*unguessed(40))))
    assert polygraph.decided(ours, Level.UPDATE, 0) is None
    assert polygraph.decided(ours, Level.PARALLEL, 0) is None
    for module, name in ((forced, "FIRST"), (forced, "MOST"), (polygraph, "_LOOP")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(polygraph, "WORK", -1)
    assert isinstance(polygraph.decided(ours, Level.SERIAL, 0), Unsolved)
