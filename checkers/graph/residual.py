"""The residual graph of operations, and the classes of its cycles. Watermarks have none here: see checkers/watermarks.

A class is named by its edges and by what closes it: dependencies alone, the order of a process, or real time. A class
that is implied by one found in the same component is not sought.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, partial
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import Places
from checkers.columns.runs import codes, expand, spans
from checkers.graph.classes import CLASSES, DEPENDENCIES, TIMED, WRITES, Cycle, CycleClass, from_least, name
from checkers.graph.edges import PROCESS, REALTIME, RW, WR, WW, Edges
from checkers.graph.paths import UNORDERED, Steps, components, labels_of, process_steps, time_steps
from checkers.graph.search import Step, classes, seek
from checkers.words.models import implied
from harness.core.columns import Bools, Int8s, Int64s

COMPONENTS: Final = 256  # The number of components searched one by one, the smallest first: the rest is searched,
_TOGETHER: Final = 2_000  # so many nodes together, for classes that did not occur before.


class Residual(Struct, frozen=True):
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


class Named(Struct, frozen=True):
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


class Search(Struct, frozen=True):
    """The classes found, and the number of components; `undecided` are classes whose search was given up."""

    named: tuple[Named, ...]
    component_count: int
    undecided: tuple[str, ...]

    def without(self, anomalies: Set[str]) -> "Search":
        """The same search without those classes."""
        named = tuple(each for each in self.named if each.anomaly not in anomalies)
        return replace(self, named=named, undecided=tuple(each for each in self.undecided if each not in anomalies))


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
        _collect(parts.graph_of(nodes), frozenset(), found, counts, undecided)
    for nodes in parts.together():
        _collect(parts.graph_of(nodes), implied(found), found, counts, undecided)
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
    graph: Residual,
    known: frozenset[str],
    found: dict[str, list[tuple[bool, Cycle]]],
    counts: Counter[str],
    undecided: set[str],
) -> None:
    """Add all classes of cycles in the graph but the `known` ones."""
    operations = _Operations(graph)
    result = classes(CLASSES, partial(seek, operations), lambda name, there: name in known | implied(there))
    for anomaly, sought in result.there.items():
        if sought.cycle is not None:
            found.setdefault(anomaly, []).append((operations.is_restated(sought.cycle), sought.cycle))
            counts[anomaly] += sought.count
    undecided |= result.undecided


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


class _Operations:
    """A graph of operations as one in which cycles are sought."""

    def __init__(self, graph: Residual) -> None:
        self._graph, self.size = graph, len(graph.index)
        rows = [np.flatnonzero(graph.kinds & kind) for kind in DEPENDENCIES]
        row = np.concatenate(rows)
        strength = np.repeat(np.arange(len(rows)), [*map(len, rows)])
        order = np.lexsort((strength, row))
        kind = np.array(DEPENDENCIES)[strength[order]]
        self.steps = Steps(graph.source[row[order]], graph.target[row[order]], kind)
        self.chain = np.zeros(len(row), np.int64)

    def time(self, sought: CycleClass) -> Iterator[Steps]:
        """The order of processes, or real time, which includes it."""
        graph = self._graph
        if sought.order == PROCESS:
            yield process_steps(graph.index, graph.end, graph.process)
        if sought.order == REALTIME:
            yield time_steps(graph.index, graph.end)

    def apart(self, sought: CycleClass) -> Iterable[Bools]:
        """No part goes before the whole."""
        return ()

    def comes_first(self, rows: Int64s, sought: CycleClass) -> Bools:
        """True for steps that close a cycle with one more step."""
        graph, source, target = self._graph, self.steps.source[rows], self.steps.target[rows]
        back: Bools = np.isin(target * self.size + source, graph.source * self.size + graph.target)
        if sought.order == REALTIME:
            back |= graph.end[target] <= graph.index[source]
        return back

    def cycle(self, steps: Sequence[Step]) -> Cycle:
        """The operations of the cycle, by index."""
        return from_least([int(self._graph.index[step.source]) for step in steps], [step.kind for step in steps])

    def name(self, cycle: Cycle) -> str:
        """The class of a cycle."""
        return "".join(name(cycle.kinds))

    def rank(self, cycle: Cycle) -> tuple[bool, int, Cycle]:
        """The shortest cycle comes first, but before all one that restates no other."""
        return self.is_restated(cycle), len(cycle.ops), cycle

    def is_restated(self, cycle: Cycle) -> bool:
        """True if two operations of the cycle that are joined by a step of order have a dependency as well."""
        places = np.searchsorted(self._graph.index, np.array(cycle.ops)).tolist()
        steps = zip(places, [*places[1:], places[0]], cycle.kinds, strict=True)
        return any(kind not in DEPENDENCIES and (source, target) in self._pairs for source, target, kind in steps)

    @cached_property
    def _pairs(self) -> set[tuple[int, int]]:
        return set(zip(self._graph.source.tolist(), self._graph.target.tolist(), strict=True))
