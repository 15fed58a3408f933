"""The search for cycles against all simple cycles, on small graphs whose edges are of any kinds."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from checkers.graph import paths
from checkers.graph import search as graph
from checkers.graph.classes import Cycle, name
from checkers.graph.edges import (
    OPEN_END,
    PROCESS,
    REALTIME,
    RW,
    RW_BY_PROCESS,
    RW_BY_REALTIME,
    WR,
    WW,
    WW_BY_PROCESS,
    WW_BY_REALTIME,
    Edges,
)
from checkers.graph.residual import residual, search
from checkers.history.transactions import Operation
from harness.core.columns import INFO, NEVER, OK
from tests.amount import count
from tests.oracles.serializability import Labels, occurrences, weaker, with_time

WORDS = {
    WW: "ww",
    WR: "wr",
    RW: "rw",
    WW_BY_PROCESS: "ww-process",
    RW_BY_PROCESS: "rw-process",
    WW_BY_REALTIME: "ww-realtime",
    RW_BY_REALTIME: "rw-realtime",
    PROCESS: "process",
    REALTIME: "realtime",
}
KINDS = list(WORDS)[:-2]
Pairs = dict[tuple[int, int], int]


def operations(draw: Random) -> list[Operation]:
    """In order of their index, most of them short; a process whose operation has no answer is not used again."""
    made: list[Operation] = []
    for at in range(draw.randint(2, 7)):
        outcome = INFO if draw.random() < 0.15 else OK
        after = NEVER if outcome == INFO else at + draw.randint(1, 6)
        busy = {one.process for one in made if one.after > at}
        free = [process for process in range(3) if process not in busy]
        made.append(Operation(at, draw.choice(free) if free else 10 + at, outcome, after, ()))
    return made


def dependencies(draw: Random, count: int) -> Pairs:
    """Between some operations, of some of all kinds."""
    few = draw.choice((KINDS[:3], KINDS[:3], KINDS[:5], KINDS))
    pairs: Pairs = {}
    for _ in range(draw.randint(1, 2 * count)):
        source, target = draw.sample(range(count), 2)
        pairs[source, target] = pairs.get((source, target), 0) | draw.choice(few)
    return pairs


def edges(made: list[Operation], pairs: Pairs) -> Edges:
    """The same as columns, each kind in a row of its own."""
    rows = [(*pair, kind) for pair, kinds in pairs.items() for kind in KINDS if kinds & kind]
    source, target, kinds = np.array(rows, np.int32).T
    end = np.array([min(one.after, OPEN_END) for one in made], np.int32)
    return Edges(source, target, end[source], end[target], kinds.astype(np.int8))


def labels(made: list[Operation], pairs: Pairs) -> Labels:
    """Why each operation must precede another, for the oracle."""
    result = {pair: {WORDS[kind] for kind in KINDS if kinds & kind} for pair, kinds in pairs.items()}
    return with_time(result, made)


def allowed(why: Labels, cycle: Cycle) -> bool:
    """Whether each step of the cycle is one of the graph, as what is not said better."""
    steps = zip(pairwise([*cycle.ops, cycle.ops[0]]), cycle.kinds, strict=True)
    return all(WORDS[kind] in (why[pair] - set(weaker(why[pair]))) for pair, kind in steps)


@settings(max_examples=count(300))
@given(seed=st.integers(0, 2**48))
def test_the_classes_of_cycles_are_those_of_all_simple_cycles(seed: int) -> None:
    draw = Random(seed)
    made = operations(draw)
    pairs = dependencies(draw, len(made))
    note("\n".join(map(str, [*made, *pairs.items()])))
    op, process = np.array([one.index for one in made], np.int64), np.array([one.process for one in made], np.int64)
    found = search(residual(edges(made, pairs), op=op, process=process))
    why = labels(made, pairs)
    assert {named.anomaly: named.count for named in found.named} == occurrences(why)
    assert found.undecided == ()
    for named in found.named:
        cycle = named.example
        assert "".join(name(cycle.kinds)) == named.anomaly
        assert cycle.ops[0] == min(cycle.ops)
        assert len(set(cycle.ops)) == len(cycle.ops)
        assert allowed(why, cycle)
        assert not any(set(two).isdisjoint(KINDS) for two in pairwise([*cycle.kinds, cycle.kinds[0]]))


def test_what_closes_a_cycle_with_one_step_is_tried_before_what_lies_closer() -> None:
    """A long operation makes twenty short edges with ten before and ten after it; one edge alone goes against time."""
    count = 21
    ends = [1000, 20, *range(3, count + 1)]  # The second ends just in time for the last.
    made = [Operation(at, at, OK, end, ()) for at, end in enumerate(ends)]
    pairs = {(0, at): WW for at in range(1, 11)} | {(at, 0): WW for at in range(11, count)} | {(20, 1): WW}
    op = np.arange(count)
    (named,) = search(residual(edges(made, pairs), op=op, process=op)).named
    assert (named.anomaly, named.example) == ("G0-realtime", Cycle((1, 20), (REALTIME, WW)))


def test_two_that_depend_on_each_other_are_tried_before_what_lies_closer() -> None:
    """All overlap: ten circles of three pass the first, and one of two lies apart from it."""
    count = 21
    made = [Operation(at, at, OK, 1000, ()) for at in range(count)]
    pairs = {(0, at): WW for at in range(1, 11)} | {(at, at + 10): WW for at in range(1, 11)}
    pairs |= {(at, 0): WW for at in range(11, count)} | {(2, 19): WW, (19, 2): WW}
    op = np.arange(count)
    (named,) = search(residual(edges(made, pairs), op=op, process=op)).named
    assert (named.anomaly, named.example) == ("G0", Cycle((2, 19), (WW, WW)))


def test_a_way_that_leaves_the_time_around_an_edge_is_found_in_a_wider_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "NETWORKX_STEPS", 0)
    count = 40
    made = [Operation(at, at, OK, 1000, ()) for at in range(count)]
    pairs = {(at, (at + 1) % count): WW for at in range(count)}
    op = np.arange(count)
    (named,) = search(residual(edges(made, pairs), op=op, process=op)).named
    assert (named.anomaly, named.example) == ("G0", Cycle(tuple(range(count)), (WW,) * count))


@pytest.mark.parametrize(
    ("budget", "undecided"), [(0, ("G-single", "G-single-process", "G-single-realtime")), (10**6, ())]
)
def test_what_was_given_up_is_undecided(
    monkeypatch: pytest.MonkeyPatch, budget: int, undecided: tuple[str, ...]
) -> None:
    """Nine long forks in a ring: eighteen rw may each be the only one of a cycle, and none is."""
    monkeypatch.setattr(graph, "_REACH_BUDGET", budget)
    pairs: Pairs = {}
    for at in range(0, 36, 4):
        pairs |= {(at, at + 1): WR, (at + 1, at + 2): RW, (at + 2, at + 3): WR, (at + 3, at): RW}
        pairs[at, (at + 4) % 36] = RW
    made = [Operation(at, at, OK, 1000, ()) for at in range(36)]
    found = search(residual(edges(made, pairs), op=np.arange(36), process=np.arange(36)))
    assert [named.anomaly for named in found.named] == ["G-nonadjacent"]
    assert found.undecided == undecided
