"""Cycles through watermarks among the edges that no certificate covers: components, their steps, their classes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from checkers.columns.runs import codes
from checkers.graph.edges import OPEN_END, RW, WR, WW, Edges
from checkers.watermarks.cycles.classes import classes, is_circular
from checkers.watermarks.cycles.steps import CHAIN, IN, OUT, READS, Component, Loop, Step
from checkers.watermarks.numbering import Watermarks, chain_pairs
from checkers.watermarks.task import Detail, Placed
from harness.core.columns import Bools, Int64s

COMPONENTS: Final = 64  # The number of components searched for names, the smallest first. All are counted.
STEPS: Final = 30_000  # A component with more is not searched: then the answer is unknown.
DEPENDENCIES: Final = (WW, WR, RW)

Details = Callable[[Int64s, Int64s], Sequence[Detail]]  # From operations and watermarks to the edges between them.
Processes = Callable[[Int64s], tuple[Int64s, Int64s]]  # From operations to the ok ones, ascending, and their processes.


@dataclass(frozen=True, slots=True)
class Told:
    """A cycle by the identity of its nodes: operations, or nodes of watermarks where `is_mark` is true.

    `count` components have one of its class. `is_secondary`: the clients' operations alone have a cycle there, too.
    """

    loop: Loop
    nodes: tuple[int, ...]
    is_mark: tuple[bool, ...]
    count: int
    is_secondary: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The cycles found, and the number of components with watermarks; `too_large` of them were not searched."""

    told: tuple[Told, ...] = ()
    component_count: int = 0
    too_large: int = 0


@dataclass(frozen=True, slots=True)
class _Graph:
    """The residual graph: n nodes by their numbers, and e edges as places of nodes, at most one from u to v."""

    number: Int64s  # (n,) ascending
    end: Int64s
    is_mark: Bools
    identity: Int64s  # (n,) the operation, or the node of watermarks
    source: Int64s
    target: Int64s
    kinds: Int64s


def search(
    edges: Edges,
    places: Placed,
    marks: Watermarks,
    *,
    forbidden: frozenset[str],
    details: Details,
    processes: Processes,
) -> Found:
    """The classes of all cycles through watermarks in the graph of those edges."""
    graph = _graph(edges, places)
    groups = _components(graph)
    chosen = np.sort(np.concatenate(groups)) if groups else np.empty(0, np.int64)
    members = np.flatnonzero(np.isin(places.node, graph.identity[chosen[graph.is_mark[chosen]]]))
    ops = np.sort(graph.identity[chosen[~graph.is_mark[chosen]]])
    if not len(members):
        return Found()
    links = _links(places, marks, details(ops, members), members)
    op, process = processes(ops)
    told: dict[str, list[Told]] = {}
    too_large = 0
    for nodes in groups[:COMPONENTS]:
        component = _component(graph, nodes, links, op, process)
        if len(component.steps) > STEPS:
            too_large += 1
            continue
        is_secondary = is_circular(component)
        for name, loop in classes(component, forbidden).items():
            told.setdefault(name, []).append(_told(graph, nodes, loop, is_secondary=is_secondary))
    best = (min(each, key=_rank) for each in told.values())
    counted = (Told(one.loop, one.nodes, one.is_mark, len(told[one.loop.anomaly]), one.is_secondary) for one in best)
    return Found(tuple(counted), len(groups), too_large)


def _rank(told: Told) -> tuple[bool, int, int, tuple[int, ...]]:
    return told.is_secondary, told.loop.chains(), len(told.loop.steps), told.nodes


def _graph(edges: Edges, places: Placed) -> _Graph:
    number, place = codes(np.concatenate((edges.source, edges.target)).astype(np.int64))
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    end = np.full(len(number), OPEN_END, np.int64)
    end[source], end[target] = edges.source_after, edges.target_after
    is_mark, identity = places.numbering.told(number)
    # Edges without these kinds are edges of watermarks: they are kept for the components, and detailed later.
    is_kept = (edges.kinds & (WW | WR | RW) != 0) | is_mark[source] | is_mark[target]
    source, target, kinds = source[is_kept], target[is_kept], edges.kinds[is_kept].astype(np.int64)
    pair, group = np.unique(source * max(1, len(number)) + target, return_inverse=True)
    together = np.zeros(len(pair), np.int64)
    np.bitwise_or.at(together, group, kinds)
    return _Graph(number, end, is_mark, identity, pair // max(1, len(number)), pair % max(1, len(number)), together)


def _components(graph: _Graph) -> list[Int64s]:
    """The nodes of each component with a watermark and more than one node, with real time, the smallest first."""
    from scipy.sparse import coo_array  # noqa: PLC0415  Not needed without a window.
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  Likewise.

    size = len(graph.number)
    moments = np.arange(size) + size
    due = np.searchsorted(graph.number, graph.end)
    ended = np.flatnonzero((due < size) & (graph.end != OPEN_END))
    ops = np.flatnonzero(~graph.is_mark)
    source = np.concatenate((graph.source, ended, moments[:-1], moments[ops]))
    target = np.concatenate((graph.target, moments[due[ended]], moments[1:], ops))
    ones = np.ones(len(source), np.int8)
    matrix = coo_array((ones, (source, target)), (2 * size, 2 * size)).tocsr()
    _, label = connected_components(matrix, directed=True, connection="strong")
    label = label[:size].astype(np.int64)
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if size else []
    found = [group for group in groups if len(group) > 1 and graph.is_mark[group].any()]
    return sorted(found, key=lambda group: (len(group), int(group[0])))


@dataclass(frozen=True, slots=True)
class _Link:
    """A step through watermarks, by the identities of its ends."""

    node: int
    other: int  # an operation, or for a chain a node
    step: Step


def _links(places: Placed, marks: Watermarks, details: Sequence[Detail], members: Int64s) -> dict[int, list[_Link]]:
    """The steps through watermarks by node: the one that a chain step leaves, or the one of an in or out edge."""
    result: dict[int, list[_Link]] = {}
    for detail in details:
        columns = (detail.op, detail.mark, detail.key, detail.value, detail.came)
        for op, mark, key, value, came in zip(*(column.tolist() for column in columns), strict=True):
            node, chain, place = int(places.node[mark]), int(marks.chain[mark]), int(marks.place[mark])
            kind = IN if detail.is_into else OUT
            step = Step(0, 0, kind, chain, key, value, came, (mark,), place)
            result.setdefault(node, []).append(_Link(node, op, step))
    earlier, later = chain_pairs(marks)
    inside = np.isin(earlier, members) & np.isin(later, members)
    for one, two in zip(earlier[inside].tolist(), later[inside].tolist(), strict=True):
        node, other = int(places.node[one]), int(places.node[two])
        if node != other:
            step = Step(0, 0, CHAIN, int(marks.chain[one]), marks=(one, two), place=int(marks.place[one]))
            result.setdefault(node, []).append(_Link(node, other, step))
    return result


def _component(graph: _Graph, nodes: Int64s, links: dict[int, list[_Link]], op: Int64s, process: Int64s) -> Component:
    is_mark = graph.is_mark[nodes]
    identity = graph.identity[nodes]
    at_op = {int(identity[at]): at for at in np.flatnonzero(~is_mark).tolist()}
    at_mark = {int(identity[at]): at for at in np.flatnonzero(is_mark).tolist()}
    rows = np.flatnonzero(np.isin(graph.source, nodes) & np.isin(graph.target, nodes))
    rows = rows[graph.kinds[rows] & (WW | WR | RW) != 0]
    source, target = np.searchsorted(nodes, graph.source[rows]), np.searchsorted(nodes, graph.target[rows])
    steps = [
        step
        for one, two, kinds in zip(source.tolist(), target.tolist(), graph.kinds[rows].tolist(), strict=True)
        if (step := _client_step(graph, nodes, one, two, kinds)) is not None
    ]
    for node, at in at_mark.items():
        for link in links.get(node, ()):
            other = (at_mark if link.step.kind == CHAIN else at_op).get(link.other)
            if other is not None:
                ends = (other, at) if link.step.kind == IN else (at, other)
                steps.append(_placed(link.step, ends))
    who = np.full(len(nodes), -1, np.int64)
    place = np.minimum(np.searchsorted(op, identity), max(0, len(op) - 1))
    if len(op):
        who = np.where(~is_mark & (op[place] == identity), process[place], -1)
    return Component(graph.number[nodes], graph.end[nodes], who, is_mark.tolist(), tuple(_distinct(steps)))


def _client_step(graph: _Graph, nodes: Int64s, one: int, two: int, kinds: int) -> Step | None:
    """A dependency between operations; or a step into or out of watermarks, for a read that is one node with them."""
    kind = next(kind for kind in DEPENDENCIES if kinds & kind)
    into, out = bool(graph.is_mark[nodes[two]]), bool(graph.is_mark[nodes[one]])
    if not into and not out:
        return Step(one, two, kind)
    if into and out:
        return None
    return Step(one, two, IN if into else OUT, READS - int(graph.identity[nodes[two if into else one]]))


def _placed(step: Step, ends: tuple[int, int]) -> Step:
    return Step(*ends, step.kind, step.chain, step.key, step.version, step.row, step.marks, step.place)


def _distinct(steps: Sequence[Step]) -> Iterator[Step]:
    """The distinct steps, in one order for every engine."""
    yield from sorted(
        dict.fromkeys(steps), key=lambda step: (step.source, step.target, step.kind, step.chain, step.place, step.key)
    )


def _told(graph: _Graph, nodes: Int64s, loop: Loop, *, is_secondary: bool) -> Told:
    at = nodes[[step.source for step in loop.steps]]
    return Told(loop, tuple(graph.identity[at].tolist()), tuple(graph.is_mark[at].tolist()), 1, is_secondary)
