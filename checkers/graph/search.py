"""Cycles of a residual graph: the classes that occur, and a short cycle of each. The only user of networkx.

A class is named by its edges (checkers/words/anomalies.py) and by what closes it: dependencies alone, the order of a
process, or real time. Strongly connected components of a graph with just its edges decide if a class occurs, which is
the acyclicity test of the models that prohibit it; the search only finds a cycle to show. A class that is implied by
one found in the same component is not sought. Source: Adya 1999; Elle, VLDB 2020, section 5.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from checkers.columns.runs import codes
from checkers.graph.classes import DEPENDENCIES, MISSES, TIMED, WRITES, Cycle, from_least, name, simple, strongest
from checkers.graph.edges import OPEN_END, PROCESS, REALTIME, RW, WR, WW, Edges
from checkers.words.models import implied
from harness.core.columns import Bools, Int8s, Int64s

if TYPE_CHECKING:
    # Loading scipy and networkx takes half a second in every process. Histories without a window and the workers of an
    # engine never need them, so only a search loads them.
    from scipy.sparse import csr_array

COMPONENTS: Final = 256  # The number of components searched for names, the smallest first. All are counted.
_TRIES: Final = 16  # The number of edges of a class that are tried for the shortest cycle through them.
_PATH_EDGES: Final = 30_000  # A larger graph is searched in growing ranges of time.
_REACH_BUDGET: Final = 300_000_000  # Nodes and edges visited to decide on G-single, which no component decides.
_STEP: Final = 1_000_000  # The weight of an edge, so that no chain of real time outweighs one.
_UNORDERED: Final = np.iinfo(np.int64).min  # The process of an operation outside every process order.


@dataclass(frozen=True, slots=True)
class Residual:
    """Operations and their dependencies: n nodes, e edges as places of nodes, at most one edge from u to v.

    `process` is set for ok operations only; `end` is OPEN_END for operations without a certain end.
    """

    index: Int64s  # (n,) ascending
    end: Int64s
    process: Int64s
    source: Int64s  # (e,)
    target: Int64s
    kinds: Int8s


@dataclass(frozen=True, slots=True)
class Named:
    """A class of cycle that was found in `count` components, with the shortest example that came up.

    `is_restated`: a step of the example counts as order, though its operations have a dependency as well. So the same
    operations form a cycle of another class too, which says more.
    """

    anomaly: str
    count: int
    example: Cycle
    is_restated: bool


@dataclass(frozen=True, slots=True)
class Search:
    """The classes found, and the number of components; `undecided` are classes whose search was given up."""

    named: tuple[Named, ...]
    component_count: int
    undecided: tuple[str, ...]


def residual(edges: Edges, *, op: Int64s, process: Int64s) -> Residual:
    """The graph of those edges. `op` are the ok operations among its nodes, ascending, with their processes."""
    index, place = codes(np.concatenate((edges.source, edges.target)).astype(np.int64))
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    end = np.zeros(len(index), np.int64)
    end[source], end[target] = edges.source_after, edges.target_after
    pair, group = np.unique(source * max(1, len(index)) + target, return_inverse=True)
    kinds = np.zeros(len(pair), np.int8)
    np.bitwise_or.at(kinds, group, edges.kinds)
    # A pair ordered by ww or wr must not be named by an rw beside it, which is weaker; nor an rw by a timed kind.
    kinds[kinds & (WW | WR) != 0] &= WW | WR
    kinds[kinds & RW != 0] &= ~(TIMED & ~WRITES[REALTIME])
    processes = np.full(len(index), _UNORDERED)
    at = np.minimum(np.searchsorted(op, index), max(0, len(op) - 1))
    if len(op):
        processes = np.where(op[at] == index, process[at], _UNORDERED)
    return Residual(index, end, processes, pair // max(1, len(index)), pair % max(1, len(index)), kinds)


def search(graph: Residual) -> Search:
    """All classes of cycles in the graph, by name."""
    components = list(_components(graph))
    found: dict[str, list[tuple[bool, Cycle]]] = {}
    undecided: set[str] = set()
    for component in components[:COMPONENTS]:
        classes = _Classes(component)
        for anomaly, cycle in classes.found.items():
            found.setdefault(anomaly, []).append((classes.is_restated(cycle), cycle))
        undecided |= classes.undecided
    named = (
        Named(anomaly, len(cycles), example, is_restated)
        for anomaly, cycles in found.items()
        for is_restated, example in [min(cycles, key=lambda one: (one[0], len(one[1].ops), one[1]))]
    )
    return Search(tuple(named), len(components), tuple(sorted(undecided)))


def _components(graph: Residual) -> Iterator[Residual]:
    """The strongly connected components of more than one node, including real time, the smallest first."""
    whole = _Steps(graph, WRITES[REALTIME] | WR | MISSES[REALTIME], REALTIME)
    label = whole.labels()[: len(graph.index)]
    size = np.bincount(label)
    inside = np.flatnonzero(label[graph.source] == label[graph.target])
    inside = inside[np.argsort(label[graph.source[inside]], kind="stable")]
    names, begin = np.unique(label[graph.source[inside]], return_index=True)
    groups = np.split(inside, begin[1:]) if len(names) else []
    order = sorted(range(len(names)), key=lambda at: (int(size[names[at]]), int(begin[at])))
    for at in order:
        nodes = np.flatnonzero(label == names[at])
        rows = groups[at]
        yield Residual(
            graph.index[nodes],
            graph.end[nodes],
            graph.process[nodes],
            np.searchsorted(nodes, graph.source[rows]),
            np.searchsorted(nodes, graph.target[rows]),
            graph.kinds[rows],
        )


class _Steps:
    """A graph to walk in: dependencies of some kinds, and an order (0, PROCESS or REALTIME).

    Its nodes are the operations. If some kinds are `missed`, there is a second layer, n places on, for operations
    reached by such an edge: no such edge leads on from there. Real time adds a line of moments, so that an order of n
    operations needs 3 n edges.
    """

    def __init__(self, graph: Residual, kinds: int, order: int, *, missed: int = 0) -> None:
        count = len(graph.index)
        self.graph, self.kinds, self.order, self.missed = graph, kinds, order, missed
        self.layers = 2 if missed else 1
        plain = np.flatnonzero(graph.kinds & kinds)
        parts = [(graph.source[plain] + layer * count, graph.target[plain], _STEP) for layer in range(self.layers)]
        if missed:
            apart = np.flatnonzero(graph.kinds & missed)
            parts.append((graph.source[apart], graph.target[apart] + count, _STEP))
        if order == PROCESS:
            parts += self._process_steps()
        if order == REALTIME:
            parts += self._realtime_steps()
        self.source = np.concatenate([source for source, _, _ in parts])
        self.target = np.concatenate([target for _, target, _ in parts])
        self.weight = np.concatenate([np.full(len(source), weight) for source, _, weight in parts])
        self.size = count * (self.layers + 1)

    def _process_steps(self) -> list[tuple[Int64s, Int64s, int]]:
        graph, count = self.graph, len(self.graph.index)
        nodes = np.flatnonzero(graph.process != _UNORDERED)
        nodes = nodes[np.argsort(graph.process[nodes], kind="stable")]
        # A process does one thing after the other; two operations that a history shows as concurrent have no order.
        is_next = graph.process[nodes[1:]] == graph.process[nodes[:-1]]
        follows = np.flatnonzero(is_next & (graph.end[nodes[:-1]] <= graph.index[nodes[1:]]))
        return [(nodes[follows] + layer * count, nodes[follows + 1], _STEP) for layer in range(self.layers)]

    def _realtime_steps(self) -> list[tuple[Int64s, Int64s, int]]:
        graph, count = self.graph, len(self.graph.index)
        line = np.arange(count) + self.layers * count
        due = np.searchsorted(graph.index, graph.end)
        ended = np.flatnonzero((due < count) & (graph.end != OPEN_END))
        steps = [(ended + layer * count, line[due[ended]], _STEP) for layer in range(self.layers)]
        return [*steps, (line[:-1], line[1:], 1), (line, np.arange(count), 1)]

    @cached_property
    def _matrix(self) -> "csr_array":
        from scipy.sparse import coo_array  # noqa: PLC0415  See `csr_array` above.

        ones = np.ones(len(self.source), np.int8)
        return coo_array((ones, (self.source, self.target)), (self.size, self.size)).tocsr()

    def labels(self) -> NDArray[np.int32]:
        """The component of each node."""
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  See `csr_array` above.

        _, labels = connected_components(self._matrix, directed=True, connection="strong")
        return labels

    def reaches(self, start: int, goal: int) -> bool:
        """True if a path leads from `start` to `goal`."""
        from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415  See `csr_array` above.

        reached = breadth_first_order(self._matrix, start, return_predecessors=False)
        return bool(np.any(reached == goal))

    def path(self, start: int, goal: int) -> list[int] | None:
        """The nodes of a shortest path; in a large graph, of one within a short time. None without a path."""
        count = len(self.graph.index)
        low, high = sorted((start % count, goal % count))
        margin = count if len(self.source) <= _PATH_EDGES else 8 + high - low
        while True:
            nodes = self._way(start, goal, low - margin, high + margin)
            if nodes is not None or margin >= count:
                return nodes
            margin *= 4

    def _way(self, start: int, goal: int, low: int, high: int) -> list[int] | None:
        count = len(self.graph.index)
        from_, to = self.source % count, self.target % count
        near = np.flatnonzero((low <= from_) & (from_ <= high) & (low <= to) & (to <= high))
        import networkx as nx  # noqa: PLC0415  See `csr_array` above.

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from((start, goal))
        columns = (self.source[near].tolist(), self.target[near].tolist(), self.weight[near].tolist())
        graph.add_weighted_edges_from(zip(*columns, strict=True))
        try:
            _, nodes = nx.bidirectional_dijkstra(graph, start, goal)
        except nx.NetworkXNoPath:
            return None
        return [int(node) for node in nodes]


class _Classes:
    """The classes of cycles in one component: `found`, by name, and those whose search was given up."""

    def __init__(self, graph: Residual) -> None:
        self.graph = graph
        self.found: dict[str, Cycle] = {}
        self.undecided: set[str] = set()
        self._pairs = dict(
            zip(zip(graph.source.tolist(), graph.target.tolist(), strict=True), graph.kinds.tolist(), strict=True)
        )
        for suffix, order in (("", 0), ("-process", PROCESS), ("-realtime", REALTIME)):
            self._closed("G0" + suffix, _Steps(graph, WW, order), WW)
            self._closed("G1c" + suffix, _Steps(graph, WW | WR, order), WR)
            self._single("G-single" + suffix, order)
            self._nonadjacent("G-nonadjacent" + suffix, order)
            every = WRITES[order] | WR | MISSES[order]
            self._closed("G2-item" + suffix, _Steps(graph, every, order), MISSES[order])

    def _is_known(self, anomaly: str) -> bool:
        return anomaly in implied(self.found)

    def _closed(self, anomaly: str, steps: _Steps, required: int) -> None:
        """Find a class whose cycles are those of `steps` through an edge of a required kind."""
        if self._is_known(anomaly):
            return
        edges = self._by_span(self.graph.kinds & required != 0, order=steps.order)
        if not len(edges):  # Saves computing the components.
            return
        label = steps.labels()
        inside = edges[label[self.graph.source[edges]] == label[self.graph.target[edges]]]
        self._show(anomaly, steps, inside[:_TRIES], required)

    def _show(self, anomaly: str, steps: _Steps, edges: Int64s, required: int) -> None:
        cycles = (self._through(steps, int(edge), required) for edge in edges)
        named = [cycle for cycle in cycles if name(cycle) == anomaly]
        if named:
            self.found[anomaly] = min(named, key=lambda cycle: (self.is_restated(cycle), len(cycle.ops), cycle))

    def is_restated(self, cycle: Cycle) -> bool:
        """True if a step of the cycle counts as order, though its operations have a dependency as well."""
        places = np.searchsorted(self.graph.index, np.array(cycle.ops)).tolist()
        steps = zip(places, [*places[1:], places[0]], cycle.kinds, strict=True)
        return any(kind not in DEPENDENCIES and (source, target) in self._pairs for source, target, kind in steps)

    def _single(self, anomaly: str, order: int) -> None:
        """Find cycles with exactly one rw: a path by other edges from the target of an rw back to its source.

        If one of the other edges is timed, there may be no rw.
        """
        if self._is_known(anomaly):
            return
        candidates = self._alternating(order)
        steps = _Steps(self.graph, WRITES[order] | WR, order)
        cost = len(steps.source) + steps.size
        affordable = candidates[: max(_TRIES, _REACH_BUDGET // cost)]
        hits = [
            edge
            for edge in affordable.tolist()
            if steps.reaches(int(self.graph.target[edge]), int(self.graph.source[edge]))
        ][:_TRIES]
        if not hits and len(affordable) < len(candidates):
            self.undecided.add(anomaly)
        self._show(anomaly, steps, np.array(hits, np.int64), MISSES[order])
        self._closed(anomaly, steps, WRITES[order] & TIMED)

    def _nonadjacent(self, anomaly: str, order: int) -> None:
        """Find cycles with two or more rw, none right after another."""
        if self._is_known(anomaly):
            return
        steps = _Steps(self.graph, WRITES[order] | WR, order, missed=MISSES[order])
        self._show(anomaly, steps, self._alternating(order)[:_TRIES], MISSES[order])

    def _alternating(self, order: int) -> Int64s:
        """The rw edges on a closed walk without two rw in a row, those of short time first."""
        label = _Steps(self.graph, WRITES[order] | WR, order, missed=MISSES[order]).labels()
        edges = self._by_span(self.graph.kinds & MISSES[order] != 0, order=order)
        is_closed: Bools = label[self.graph.source[edges]] == label[self.graph.target[edges] + len(self.graph.index)]
        return edges[is_closed]

    def _by_span(self, is_wanted: Bools, *, order: int) -> Int64s:
        """The wanted edges: first those that close a cycle with one more step, then by time between their ends."""
        graph, rows = self.graph, np.flatnonzero(is_wanted)
        source, target = graph.source[rows], graph.target[rows]
        back = np.isin(target * len(graph.index) + source, graph.source * len(graph.index) + graph.target)
        if order == REALTIME:
            back |= graph.end[target] <= graph.index[source]
        return rows[np.lexsort((target, source, np.abs(target - source), ~back))]

    def _through(self, steps: _Steps, edge: int, required: int) -> Cycle:
        """A short cycle through that edge, taken as a required kind. Its ends must reach each other."""
        count = len(self.graph.index)
        start, goal = int(self.graph.target[edge]), int(self.graph.source[edge])
        walk = steps.path(start + count if steps.missed else start, goal)
        assert walk is not None
        places, kinds = [start], list[int]()
        for before, node in pairwise(walk):
            if node < count * steps.layers:  # The other nodes are moments on the line of real time.
                kinds.append(self._kind(steps, before, node))
                places.append(node % count)
        places, kinds = simple(places, [*kinds, strongest(self._pairs[goal, start] & required)])
        return from_least([int(self.graph.index[place]) for place in places], kinds)

    def _kind(self, steps: _Steps, before: int, node: int) -> int:
        """The kind of a step: the strongest dependency that it may be, else the order that it follows."""
        count = len(self.graph.index)
        if before >= count * steps.layers:
            return REALTIME
        pair = self._pairs.get((before % count, node % count), 0)
        return strongest(pair & (steps.missed if node >= count else steps.kinds)) or PROCESS
