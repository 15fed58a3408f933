"""Independent on purpose: the names of all canonical cycles through watermarks, by trying every one; for few nodes.

A *step* leads from one transaction to another: a client's edge, or a way through watermarks, which counts for nothing
but the chains that it passes, and for its last edge: an out edge stands beside a client's rw as a second rw.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from tests.oracles.watermark_source import CLIENT, Chain, Edge, Node

TIMES = {"process": 1, "rt": 2}
SUFFIX = ("", "-process", "-realtime")
ALONE = ("intermediate-watermark", "torn-watermark", "split-watermark")
NONE: frozenset[Chain] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; `label` is a kind of CLIENT, or "" for a way through watermarks, `time` a place in SUFFIX."""

    target: Node
    label: str
    chains: frozenset[Chain] = NONE
    is_missed: bool = False  # Does it end like an rw edge?
    time: int = 0
    is_locked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Named:
    """The name of a cycle, of how many chains it is, and if every read of its rw edges kept its lock."""

    name: str
    chains: int
    is_locked: bool


def closure(edges: Sequence[Edge]) -> frozenset[tuple[Node, Node]]:
    """All pairs of nodes of which the first comes before the second."""
    graph = _graph(edges)
    return frozenset((one, two) for one in graph for two in nx.descendants(graph, one))


def components(edges: Sequence[Edge]) -> frozenset[frozenset[Node]]:
    """The strongly connected components of two nodes or more that hold a watermark, or the read side of a reader."""
    found = [frozenset(c) for c in nx.strongly_connected_components(_graph(edges)) if len(c) > 1]
    return frozenset(c for c in found if any(kind != "t" for kind, _ in c))


def level(edges: Sequence[Edge], *, through: str = "") -> int:
    """0: no cycle through a watermark; 1: one with no rw edge of a client; 2: no two rw adjacent; 3: any other.

    These are the tests of validity. `through` "process" or "rt": with the edges of that kind, and process below rt.
    """
    times = {"": (), "process": ("process",), "rt": ("process", "rt")}[through]
    kept = [e for e in edges if e.kind not in TIMES or e.kind in times]
    if components([e for e in kept if e.kind != "rw"]):
        return 1
    layered: nx.DiGraph[tuple[Node, bool]] = nx.DiGraph()  # Was the edge before this node an rw or an out?
    for e in kept:
        is_missed = e.kind in {"rw", "out"}
        for was_missed in (False,) if is_missed else (False, True):
            layered.add_edge((e.source, was_missed), (e.target, is_missed))
    parts = [p for p in nx.strongly_connected_components(layered) if len(p) > 1]
    if any(node[0] != "t" for part in parts for node, _ in part):
        return 2
    return 3 if components(kept) else 0


def names(edges: Sequence[Edge]) -> set[Named]:
    """The names of all canonical cycles through watermarks."""
    steps = _steps(edges)
    result = set(_orders(edges)) | set(_alone(edges))
    for start in sorted(steps):
        for way in _ways(steps, start, start, (), {start}):
            if any(step.chains for step in way):
                result.add(_named(way))
    return result


def _graph(edges: Sequence[Edge]) -> "nx.DiGraph[Node]":
    return nx.DiGraph([(e.source, e.target) for e in edges])


def _orders(edges: Sequence[Edge]) -> Iterator[Named]:
    """Cycles without transactions."""
    for time, kinds in enumerate((("chain",), ("chain", "process"), ("chain", "process", "rt"))):
        within = [e for e in edges if e.kind in kinds and "t" not in (e.source[0], e.target[0])]
        if components(within):
            count = len({e.chain for e in within if e.kind == "chain"})
            yield Named(name="order-watermark" + SUFFIX[time], chains=count, is_locked=True)
            return


def _alone(edges: Sequence[Edge]) -> Iterator[Named]:
    """Cycles of one transaction."""
    for entry in edges:
        if entry.kind != "in":
            continue
        for node, chains, time in _along(edges, entry):
            for last in edges:
                if (last.source, last.target, last.kind) == (node, entry.source, "out") and time == 0:
                    count = len(chains | {last.chain})
                    name = ALONE[2] if count > 1 else ALONE[entry.key != last.key]
                    yield Named(name=name, chains=count, is_locked=True)


def _along(edges: Sequence[Edge], entry: Edge) -> set[tuple[Node, frozenset[Chain], int]]:
    """Watermarks to which that edge leads, by the chains passed, and by the times used."""
    first = (entry.target, frozenset({entry.chain} if entry.chain else ()), TIMES.get(entry.kind, 0))
    found, todo = {first}, [first]
    within = [e for e in edges if e.kind in {"chain", *TIMES} and "t" not in (e.source[0], e.target[0])]
    while todo:
        node, chains, time = todo.pop()
        for e in within:
            if e.source == node:
                reached = (e.target, chains | ({e.chain} if e.chain else NONE), max(time, TIMES.get(e.kind, 0)))
                if reached not in found:
                    found.add(reached)
                    todo.append(reached)
    return found


def _steps(edges: Sequence[Edge]) -> dict[Node, list[Step]]:
    """The steps from each transaction."""
    result: dict[Node, set[Step]] = {node: set() for e in edges for node in (e.source, e.target) if node[0] == "t"}
    kinds: dict[tuple[Node, Node], list[Edge]] = {}
    for e in edges:
        if e.source[0] == e.target[0] == "t":
            kinds.setdefault((e.source, e.target), []).append(e)
    for (source, target), between in kinds.items():
        for kind in _labels([e.kind for e in between]):
            is_locked = kind != "rw" or any(e.is_locked for e in between if e.kind == kind)
            step = Step(target=target, label=kind, is_missed=kind == "rw", time=TIMES.get(kind, 0), is_locked=is_locked)
            result[source].add(step)
    for entry in edges:
        if entry.source[0] == "t" and entry.target[0] != "t":
            for node, chains, time in _along(edges, entry):
                for last in edges:
                    if last.source == node and last.target[0] == "t" and last.target != entry.source:
                        used = chains | ({last.chain} if last.chain else NONE)
                        when = max(time, TIMES.get(last.kind, 0))
                        is_missed = last.kind == "out"
                        result[entry.source].add(
                            Step(target=last.target, label="", chains=used, is_missed=is_missed, time=when)
                        )
    return {node: _needed(found) for node, found in result.items()}


def _labels(kinds: list[str]) -> list[str]:
    """What a pair counts as: the first of CLIENT; and beside an rw also what time says, which is not another rw."""
    first = min(kinds, key=CLIENT.index)
    timed = [kind for kind in ("process", "rt") if kind in kinds and first == "rw"]
    return [first, *timed[:1]]


def _needed(steps: set[Step]) -> list[Step]:
    """The steps without those through watermarks that pass more chains than another one of the same kind."""
    return sorted(
        (
            s
            for s in steps
            if not any(
                o.chains < s.chains
                and (o.target, o.label, o.is_missed, o.time) == (s.target, s.label, s.is_missed, s.time)
                for o in steps
                if not o.label
            )
        ),
        key=repr,
    )


def _ways(
    steps: dict[Node, list[Step]], start: Node, at: Node, way: tuple[Step, ...], used: set[Node]
) -> Iterator[tuple[Step, ...]]:
    """All cycles of two transactions or more that begin with their least one, and pass each chain once."""
    passed = NONE.union(*(step.chains for step in way))
    for step in steps[at]:
        if passed & step.chains:
            continue
        if step.target == start and way:
            yield (*way, step)
        elif step.target > start and step.target not in used:
            yield from _ways(steps, start, step.target, (*way, step), used | {step.target})


def _named(way: tuple[Step, ...]) -> Named:
    labels = [step.label for step in way if step.label]
    count = labels.count("rw")
    chains = len(NONE.union(*(step.chains for step in way)))
    time = SUFFIX[max(step.time for step in way)]
    is_locked = all(step.is_locked for step in way if step.label == "rw")
    is_adjacent = any(one.is_missed and two.label == "rw" for one, two in pairwise([*way, way[0]]))
    if not labels and not time:
        name = "fork-watermark"
    elif count == 0:
        name = "G1c-watermark" if "wr" in labels else "G0-watermark"
    elif is_adjacent:
        name = "G2-item-watermark"
    else:
        name = "G-single-watermark" if count == 1 else "G-nonadjacent-watermark"
    return Named(name=name + time, chains=chains, is_locked=is_locked)
