"""Cycles of a residual graph: the classes that occur, and a short cycle of each.

A class is named by its edges (checkers/words/anomalies.py) and by what closes it: dependencies alone, the order of a
process, or real time. The strongly connected components of the graph with just these edges decide if a class occurs.
That is the acyclicity test of the models that prohibit the class; the search only finds a cycle to show. A class that
is implied by one found in the same component is not sought. Source: Adya 1999; Elle, VLDB 2020, section 5.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from checkers.columns.index import Places
from checkers.columns.runs import codes, expand, spans
from checkers.graph.classes import (
    CLASSES,
    DEPENDENCIES,
    TIMED,
    WRITES,
    Cycle,
    CycleClass,
    from_least,
    name,
    strongest,
)
from checkers.graph.edges import PROCESS, REALTIME, RW, WR, WW, Edges
from checkers.graph.paths import (
    UNORDERED,
    Rule,
    StepGraph,
    Steps,
    components,
    labels_of,
    process_steps,
    simple_cycles,
    time_steps,
)
from checkers.words.models import implied
from harness.core.columns import Bools, Int8s, Int64s

COMPONENTS: Final = 256  # The number of components searched one by one, the smallest first: the rest is searched,
_TOGETHER: Final = 2_000  # so many nodes together, for classes that did not occur before.
_TRIES: Final = 16  # The number of edges of a class that are tried for the shortest cycle through them.
_REACH_BUDGET: Final = 300_000_000  # Limit of nodes and edges visited for G-single, which components do not decide.


@dataclass(frozen=True, slots=True)
class Residual:
    """Operations and their dependencies: n nodes, e edges between places of nodes, at most one edge from u to v.

    `process` is set for operations of clients; `end` is OPEN_END for operations without a certain end.
    """

    index: Int64s  # (n,) ascending
    end: Int64s
    process: Int64s
    source: Int64s  # (e,)
    target: Int64s
    kinds: Int8s

    def part(self, nodes: Int64s, rows: Int64s) -> "Residual":
        """The graph of those nodes, which ascend, with the edges in those rows, which lie between them."""
        return Residual(
            self.index[nodes],
            self.end[nodes],
            self.process[nodes],
            np.searchsorted(nodes, self.source[rows]),
            np.searchsorted(nodes, self.target[rows]),
            self.kinds[rows],
        )


@dataclass(frozen=True, slots=True)
class Named:
    """A class of cycle, with the shortest example found.

    `count`: for a class with one rw, at least the number of transactions whose own rw closes such a cycle; for another,
    whose cycles share edges, the number of components that have one. `is_restated`: a step of the example counts as
    order, though its operations have a dependency as well. So the same operations form a cycle of another class too,
    which says more.
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
    """The graph of those edges. `op` are client operations among its nodes, ascending, with the `process` of each."""
    graph = merged(edges)
    kinds = graph.kinds
    # A pair ordered by ww or wr must not be named by an rw beside it, which is weaker; nor an rw by a timed kind.
    kinds[kinds & (WW | WR) != 0] &= WW | WR
    kinds[kinds & RW != 0] &= ~(TIMED & ~WRITES[REALTIME])
    return replace(graph, process=processes_of(graph.index, op=op, process=process))


def merged(edges: Edges) -> Residual:
    """The graph of those edges, without processes. Edges between the same two nodes become one, of all their kinds."""
    index, place = codes(np.concatenate((edges.source, edges.target)).astype(np.int64))
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    end = np.zeros(len(index), np.int64)
    end[source], end[target] = edges.source_after, edges.target_after
    count = max(1, len(index))
    pair, group = codes(source * count + target)
    kinds = np.zeros(len(pair), np.int8)
    np.bitwise_or.at(kinds, group, edges.kinds)
    return Residual(index, end, np.full(len(index), UNORDERED), pair // count, pair % count, kinds)


def processes_of(index: Int64s, *, op: Int64s, process: Int64s) -> Int64s:
    """The process of each operation in `index`; UNORDERED for one that is not in `op`, which ascends."""
    return np.append(process, UNORDERED)[Places(op).of(index)]


def search(graph: Residual) -> Search:
    """All classes of cycles in the graph, named."""
    parts = _Components(graph)
    found: dict[str, list[tuple[bool, Cycle]]] = {}
    counts = Counter[str]()
    undecided: set[str] = set()
    for nodes in parts.single():
        _collect(_Classes(parts.graph_of(nodes), frozenset()), found, counts, undecided)
    for nodes in parts.together():
        _collect(_Classes(parts.graph_of(nodes), implied(found)), found, counts, undecided)
    named = (
        Named(anomaly, counts[anomaly], example, is_restated)
        for anomaly, cycles in found.items()
        for is_restated, example in [min(cycles, key=lambda one: (one[0], len(one[1].ops), one[1]))]
    )
    return Search(tuple(named), len(parts.nodes), tuple(sorted(undecided)))


def has_cycle(graph: Residual, *, kinds: int, is_timed: bool) -> bool:
    """True if edges of those kinds close a cycle, with `is_timed` together with the order of real time. O(n)."""
    rows, size = np.flatnonzero(graph.kinds & kinds), len(graph.index)
    source, target = graph.source[rows], graph.target[rows]
    time = time_steps(graph.index, graph.end)
    if is_timed:
        label = labels_of(np.append(source, time.source), np.append(target, time.target), 2 * size)
    else:
        label = labels_of(source, target, size)
    return bool(np.any(label[source] == label[target]))


def _collect(
    classes: "_Classes", found: dict[str, list[tuple[bool, Cycle]]], counts: Counter[str], undecided: set[str]
) -> None:
    """Add all that was found."""
    for anomaly, cycle in classes.found.items():
        found.setdefault(anomaly, []).append((classes.is_restated(cycle), cycle))
    counts.update(classes.counts)
    undecided |= classes.undecided


class _Components:
    """The strongly connected components of more than one node, including real time: `nodes`, the smallest first."""

    def __init__(self, graph: Residual) -> None:
        size, time = len(graph.index), time_steps(graph.index, graph.end)
        source, target = np.append(graph.source, time.source), np.append(graph.target, time.target)
        self._graph, self._label = graph, labels_of(source, target, 2 * size)[:size]
        inside = np.flatnonzero(self._label[graph.source] == self._label[graph.target])
        self._rows = inside[np.argsort(self._label[graph.source[inside]], kind="stable")]
        self._labels = self._label[graph.source[self._rows]]
        self.nodes = sorted(components(self._label), key=lambda nodes: (len(nodes), int(nodes[0])))

    def single(self) -> Iterator[Int64s]:
        """The nodes of each component that is searched by itself: the COMPONENTS smallest ones."""
        yield from self.nodes[:COMPONENTS]

    def together(self) -> Iterator[Int64s]:
        """The nodes of all others, several components at a time."""
        rest = self.nodes[COMPONENTS:]
        batch = np.cumsum([0, *map(len, rest)])[:-1] // _TOGETHER
        for number in np.unique(batch):
            first, stop = np.searchsorted(batch, (number, number + 1))
            yield np.sort(np.concatenate(rest[first:stop]))

    def graph_of(self, nodes: Int64s) -> Residual:
        """The graph inside the components that have these nodes, ascending."""
        first, stop = spans(self._labels, np.unique(self._label[nodes]))
        return self._graph.part(nodes, self._rows[expand(first, stop - first)])


class _Step(NamedTuple):
    source: int
    target: int
    kind: int


class _Classes:
    """The classes of cycles in a graph: `found` and `counts`, by name, and those whose search was given up.

    Those already `known` are not sought.
    """

    def __init__(self, graph: Residual, known: frozenset[str]) -> None:
        self.graph = graph
        self.found: dict[str, Cycle] = {}
        self.counts = Counter[str]()
        self.undecided: set[str] = set()
        columns = (graph.source.tolist(), graph.target.tolist(), graph.kinds.tolist())
        self._kinds = {(source, target): kinds for source, target, kinds in zip(*columns, strict=True)}
        for sought in CLASSES:
            if sought.name not in known and sought.name not in implied(self.found):
                self._seek(sought)

    def is_restated(self, cycle: Cycle) -> bool:
        """True if two operations of the cycle that are joined by a step of order have a dependency as well."""
        places = np.searchsorted(self.graph.index, np.array(cycle.ops)).tolist()
        steps = zip(places, [*places[1:], places[0]], cycle.kinds, strict=True)
        return any(kind not in DEPENDENCIES and (source, target) in self._kinds for source, target, kind in steps)

    def _seek(self, sought: CycleClass) -> None:
        edges = self._by_span(self.graph.kinds & sought.required != 0, order=sought.order)
        if not len(edges):  # Saves computing the components.
            return
        steps = self._steps(sought, apart=sought.apart)
        edges = edges[steps.on_cycles(self.graph.source[edges], self.graph.target[edges], sought.required)]
        if sought.is_single:
            steps = self._steps(sought, apart=0)
            edges = self._single(sought, steps, edges)
        cycles = [cycle for edge in edges[:_TRIES].tolist() for cycle in self._through(steps, edge, sought)]
        named = [cycle for cycle in cycles if name(cycle) == sought.name]
        if named:
            missing = edges[self.graph.kinds[edges] & RW != 0] if sought.is_single else edges[:1]
            self.counts[sought.name] = max(1, len(np.unique(self.graph.source[missing])))
            self.found[sought.name] = min(named, key=lambda cycle: (self.is_restated(cycle), len(cycle.ops), cycle))

    def _steps(self, sought: CycleClass, *, apart: int) -> StepGraph:
        graph, parts = self.graph, list[Steps]()
        for mask in (sought.kinds, apart):
            kinds = graph.kinds & mask
            rows = np.flatnonzero(kinds)
            kind = np.select([kinds[rows] & each != 0 for each in DEPENDENCIES], DEPENDENCIES)
            parts.append(Steps(graph.source[rows], graph.target[rows], kind))
        if sought.order == PROCESS:
            parts.append(process_steps(graph.index, graph.end, graph.process))
        if sought.order == REALTIME:
            parts.append(time_steps(graph.index, graph.end))
        return StepGraph(parts, len(graph.index), Rule(apart=apart))

    def _single(self, sought: CycleClass, steps: StepGraph, edges: Int64s) -> Int64s:
        """The first few edges from whose target a path leads back to their source."""
        cost = len(steps.steps.source) + 2 * steps.size
        affordable = edges[: max(_TRIES, _REACH_BUDGET // cost)]
        ends = zip(self.graph.source[affordable].tolist(), self.graph.target[affordable].tolist(), strict=True)
        hits = affordable[[steps.is_closed(source, target, RW) for source, target in ends]]
        if not len(hits) and len(affordable) < len(edges):
            self.undecided.add(sought.name)
        return hits

    def _by_span(self, is_wanted: Bools, *, order: int) -> Int64s:
        """The wanted edges: first those that close a cycle with one more step, then by the time that they span."""
        graph, rows = self.graph, np.flatnonzero(is_wanted)
        source, target = graph.source[rows], graph.target[rows]
        count = len(graph.index)
        back = np.isin(target * count + source, graph.source * count + graph.target, assume_unique=True)
        if order == REALTIME:
            back |= graph.end[target] <= graph.index[source]
        return rows[np.lexsort((target, source, np.abs(target - source), ~back))]

    def _through(self, steps: StepGraph, edge: int, sought: CycleClass) -> Iterator[Cycle]:
        """Short cycles through that edge, which counts as one of a required kind. Its target must reach its source."""
        goal, start = int(self.graph.source[edge]), int(self.graph.target[edge])
        first = _Step(goal, start, strongest(self._kinds[goal, start] & sought.required))
        rows = steps.path(start, goal, first=first.kind)
        assert rows is not None
        ends = (steps.steps.source[rows], steps.steps.target[rows], steps.steps.kind[rows])
        walk = [first, *(_Step(*step) for step in zip(*(column.tolist() for column in ends), strict=True))]
        for cycle in simple_cycles(walk):
            yield from_least([int(self.graph.index[step.source]) for step in cycle], [step.kind for step in cycle])
