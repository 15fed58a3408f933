"""Cycles through watermarks among the edges that no certificate covers: components, their steps, their classes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import Places
from checkers.columns.table import take
from checkers.engine.datasets import Dataset
from checkers.graph.classes import kinds_of
from checkers.graph.edges import CHAIN, IN, OUT, RW, WR, WW, Edges
from checkers.graph.paths import UNORDERED, components, labels_of, time_steps
from checkers.graph.residual import Residual, merged, processes_of
from checkers.history.stretches import Stretches
from checkers.history.transactions import Source, load
from checkers.watermarks.cycles.classes import classes, has_client_cycle
from checkers.watermarks.cycles.steps import CLASSES, READS, Component, Loop, Step
from checkers.watermarks.numbering import Watermarks, chain_pairs
from checkers.watermarks.task import Detail, Placed
from harness.core.columns import Bools, Int64s

COMPONENTS: Final = 64  # The number of components searched: first those that may break a promise, then the smallest.
STEPS: Final = 30_000  # A component with more is not searched either.
DEPENDENCIES: Final = (WW, WR, RW)

Details = Callable[[Int64s, Int64s], Sequence[Detail]]  # Finds the edges between given operations and watermarks.
Processes = Callable[[Int64s], tuple[Int64s, Int64s]]  # Those of given operations that did not fail; their processes.


class ShownCycle(Struct, frozen=True):
    """A cycle, with each node by its identity: an operation, or where `is_mark` is true a node of watermarks.

    `count` components have one of its class. `is_secondary`: the clients' operations alone have a cycle there, too.
    """

    loop: Loop
    nodes: tuple[int, ...]
    is_mark: tuple[bool, ...]
    count: int
    is_secondary: bool


class Found(Struct, frozen=True):
    """The cycles found, and the number of components with watermarks.

    `unsearched` are those that may have a forbidden class, and were too many or too large to be searched. `undecided`
    are the forbidden classes whose search in a component came to no end.
    """

    cycles: tuple[ShownCycle, ...] = ()
    component_count: int = 0
    unsearched: int = 0
    undecided: frozenset[str] = frozenset()


class _Graph(Struct, frozen=True):
    """The residual graph. Its n indexes are numbers of nodes (checkers/watermarks/numbering.py)."""

    whole: Residual
    is_mark: Bools  # (n,)
    identity: Int64s  # (n,) the operation, or the node of watermarks


def search(
    edges: Edges,
    places: Placed,
    marks: Watermarks,
    *,
    forbidden: frozenset[str],
    details: Details,
    processes: Processes,
) -> Found:
    """All classes of cycles through watermarks in the graph of those edges."""
    graph = _graph(edges, places)
    groups = _components(graph)
    if not groups:
        return Found()
    suspects = _suspects(graph, forbidden)
    is_suspect = np.zeros(len(graph.is_mark), np.bool_)
    is_suspect[[int(nodes[0]) for nodes in suspects]] = True
    groups = sorted(groups, key=lambda nodes: not is_suspect[nodes].any())
    searched, left = groups[:COMPONENTS], groups[COMPONENTS:]
    chosen = np.sort(np.concatenate(searched)) if searched else np.empty(0, np.int64)
    members = np.flatnonzero(np.isin(places.node, graph.identity[chosen[graph.is_mark[chosen]]]))
    ops = np.sort(graph.identity[chosen[~graph.is_mark[chosen]]])
    links = _links(places, marks, details(ops, members), members)
    op, process = processes(ops)
    found: dict[str, list[ShownCycle]] = {}
    undecided = frozenset[str]()
    for nodes in searched:
        component = _component(graph, nodes, links, op, process)
        if len(component.steps) > STEPS:
            left = [*left, nodes]
            continue
        is_secondary = has_client_cycle(component)
        there = classes(component, forbidden)
        undecided |= there.undecided
        for name, loop in there.loops.items():
            found.setdefault(name, []).append(_shown_cycle(graph, nodes, loop, is_secondary=is_secondary))
    best = (min(each, key=_rank) for each in found.values())
    counted = (
        ShownCycle(one.loop, one.nodes, one.is_mark, len(found[one.loop.anomaly]), one.is_secondary) for one in best
    )
    return Found(tuple(counted), len(groups), sum(bool(is_suspect[nodes].any()) for nodes in left), undecided)


def may_be_cyclic(
    edges: Edges, places: Placed, sources: Dataset[Source], stretches: Stretches, forbidden: frozenset[str]
) -> bool:
    """True if the edges of one generation may have a cycle through watermarks of a forbidden class.

    `edges` are those of all generations, from `sources`, whose keys are stretches. A cycle of a generation has only
    operations that it includes. O(n), and O(m) for each generation, with m edges in the components of such a cycle.
    """
    graph = _graph(edges, places)
    suspects = _suspects(graph, forbidden)
    if not suspects:
        return False
    graph = _within(graph, np.sort(np.concatenate(suspects)))
    first, last = _spans(graph, sources, stretches)
    whole = graph.whole
    for generation in range(stretches.generations):
        is_in = (first <= generation) & (generation <= last)
        is_kept = is_in[whole.source] & is_in[whole.target]
        if is_kept.any() and _suspects(replace(graph, whole=_only(whole, is_kept)), forbidden):
            return True
    return False


def _within(graph: _Graph, nodes: Int64s) -> _Graph:
    """The graph of those nodes alone, which ascend."""
    whole = graph.whole
    rows = np.flatnonzero(np.isin(whole.source, nodes) & np.isin(whole.target, nodes))
    return _Graph(whole.part(nodes, rows), graph.is_mark[nodes], graph.identity[nodes])


def _only(whole: Residual, is_kept: Bools) -> Residual:
    return replace(whole, source=whole.source[is_kept], target=whole.target[is_kept], kinds=whole.kinds[is_kept])


def _spans(graph: _Graph, sources: Dataset[Source], stretches: Stretches) -> tuple[Int64s, Int64s]:
    """The first and the last generation that may include each node, (n,) each: all may have a watermark."""
    is_op, every = ~graph.is_mark, stretches.generations
    op = np.sort(graph.identity[is_op])
    first, last = np.full(len(op), every), np.full(len(op), -1)
    for place, key in sources.map(partial(_keys, op=op)).collect():
        np.minimum.at(first, place, stretches.first[key])
        np.maximum.at(last, place, stretches.last[key])
    is_known, place = first <= last, np.searchsorted(op, graph.identity[is_op])
    lowest, highest = np.zeros(len(is_op), np.int64), np.full(len(is_op), every)
    lowest[is_op] = np.where(is_known, first, 0)[place]
    highest[is_op] = np.where(is_known, last, every)[place]
    return lowest, highest


def _keys(source: Source, *, op: Int64s) -> tuple[Int64s, Int64s]:
    """The keys of those operations, which ascend: for each micro-operation the place in `op`, and the key."""
    transactions = load(source)
    place = np.repeat(Places(op).of(transactions.index), np.diff(transactions.mop_start))
    return place[place >= 0], transactions.key[place >= 0]


def _suspects(graph: _Graph, forbidden: frozenset[str]) -> list[Int64s]:
    """The components that the edges form whose kinds a forbidden class may have, or which watermarks have."""
    whole, kinds = graph.whole, kinds_of(forbidden, CLASSES)[0] & (WW | WR | RW)
    is_kept = (whole.kinds & kinds != 0) | graph.is_mark[whole.source] | graph.is_mark[whole.target]
    return _components(replace(graph, whole=_only(whole, is_kept)))


def _rank(cycle: ShownCycle) -> tuple[bool, int, int, tuple[int, ...]]:
    return cycle.is_secondary, cycle.loop.chains(), len(cycle.loop.steps), cycle.nodes


def _graph(edges: Edges, places: Placed) -> _Graph:
    # Other edges are those of watermarks: they are kept for the components, and get their details later.
    is_client = edges.kinds & (WW | WR | RW) != 0
    is_mark = [places.numbering.known(column.astype(np.int64))[0] for column in (edges.source, edges.target)]
    whole = merged(take(edges, is_client | is_mark[0] | is_mark[1]))
    return _Graph(whole, *places.numbering.known(whole.index))


def _components(graph: _Graph) -> list[Int64s]:
    """The nodes of each component with a watermark and another node, the smallest component first; real time counts."""
    whole, size = graph.whole, len(graph.is_mark)
    time = time_steps(whole.index, whole.end, graph.is_mark)
    source, target = np.append(whole.source, time.source), np.append(whole.target, time.target)
    groups = components(labels_of(source, target, 2 * size)[:size])
    return sorted((one for one in groups if graph.is_mark[one].any()), key=lambda one: (len(one), int(one[0])))


def _links(
    places: Placed, marks: Watermarks, details: Sequence[Detail], members: Int64s
) -> dict[int, list[tuple[int, Step]]]:
    """The steps through watermarks, by node: chain steps by their source, in and out edges by their watermark.

    Each comes with the operation at its other end, or for a chain step the node; its own ends are not set yet.
    """
    result: dict[int, list[tuple[int, Step]]] = {}
    for detail in details:
        kind = IN if detail.is_into else OUT
        columns = (detail.op, detail.mark, detail.key, detail.value, detail.came)
        for op, mark, key, value, came in zip(*(column.tolist() for column in columns), strict=True):
            step = Step(0, 0, kind, int(marks.chain[mark]), key, value, came, (mark,), int(marks.place[mark]))
            result.setdefault(int(places.node[mark]), []).append((op, step))
    earlier, later = chain_pairs(marks)
    inside = np.isin(earlier, members) & np.isin(later, members) & (places.node[earlier] != places.node[later])
    for one, two in zip(earlier[inside].tolist(), later[inside].tolist(), strict=True):
        step = Step(0, 0, CHAIN, int(marks.chain[one]), marks=(one, two), place=int(marks.place[one]))
        result.setdefault(int(places.node[one]), []).append((int(places.node[two]), step))
    return result


def _component(
    graph: _Graph, nodes: Int64s, links: dict[int, list[tuple[int, Step]]], op: Int64s, process: Int64s
) -> Component:
    is_mark = graph.is_mark[nodes]
    identity = graph.identity[nodes]
    at_op = {int(identity[at]): at for at in np.flatnonzero(~is_mark).tolist()}
    at_mark = {int(identity[at]): at for at in np.flatnonzero(is_mark).tolist()}
    whole = graph.whole
    rows = np.flatnonzero(np.isin(whole.source, nodes) & np.isin(whole.target, nodes))
    rows = rows[whole.kinds[rows] & (WW | WR | RW) != 0]
    source, target = np.searchsorted(nodes, whole.source[rows]), np.searchsorted(nodes, whole.target[rows])
    steps = [
        step
        for one, two, kinds in zip(source.tolist(), target.tolist(), whole.kinds[rows].tolist(), strict=True)
        if (step := _client_step(graph, nodes, one, two, kinds)) is not None
    ]
    for node, at in at_mark.items():
        for identity_there, step in links.get(node, ()):
            there = (at_mark if step.kind == CHAIN else at_op).get(identity_there)
            if there is not None:
                source_at, target_at = (there, at) if step.kind == IN else (at, there)
                steps.append(replace(step, source=source_at, target=target_at))
    # The order is the same on every engine.
    steps = sorted(
        dict.fromkeys(steps), key=lambda step: (step.source, step.target, step.kind, step.chain, step.place, step.key)
    )
    who = np.where(is_mark, UNORDERED, processes_of(identity, op=op, process=process))
    who[who < 0] = UNORDERED
    return Component(whole.index[nodes], whole.end[nodes], who, is_mark.tolist(), tuple(steps))


def _client_step(graph: _Graph, nodes: Int64s, one: int, two: int, kinds: int) -> Step | None:
    """The step for a dependency between two nodes; None if both are nodes of watermarks.

    If one is, the other is a read that shares its node, and the step leads into or out of watermarks.
    """
    kind = next(kind for kind in DEPENDENCIES if kinds & kind)
    into, out = bool(graph.is_mark[nodes[two]]), bool(graph.is_mark[nodes[one]])
    if not into and not out:
        return Step(one, two, kind)
    if into and out:
        return None
    return Step(one, two, IN if into else OUT, READS - int(graph.identity[nodes[two if into else one]]))


def _shown_cycle(graph: _Graph, nodes: Int64s, loop: Loop, *, is_secondary: bool) -> ShownCycle:
    at = nodes[[step.source for step in loop.steps]]
    return ShownCycle(loop, tuple(graph.identity[at].tolist()), tuple(graph.is_mark[at].tolist()), 1, is_secondary)
