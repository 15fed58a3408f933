"""The one search for cycles: steps on closed paths, and shortest paths under a rule. The only user of networkx.

A *step* leads from one node to another for a reason, its kind. Nodes 0 to n - 1 ascend by index. Real time adds n
*moments*, the nodes from n on: an operation leads to the moment of the first index after its end, a moment leads to the
next one, and to the operation that begins there. So the order of n operations takes 3 n steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from checkers.columns.table import concat
from checkers.graph.edges import CHAIN, OPEN_END, PROCESS, REALTIME
from harness.core.columns import Bools, Int64s

if TYPE_CHECKING:
    # Loading scipy and networkx takes half a second in every process. Histories without a window and the workers of an
    # engine never need them, so only a search loads them.
    import networkx as nx
    from scipy.sparse import csr_array

MOMENT: Final = 0  # The kind of a step from a moment.
UNORDERED: Final = np.iinfo(np.int64).min  # The process of a node outside every process order.
_PATH_EDGES: Final = 30_000  # A larger graph is searched in growing ranges of time.
_STEP: Final = 1_000_000  # The weight of a step: more than that of any chain of moments.
State = tuple[bool, tuple[int, ...]]  # True after a step of `apart`; the number of steps of each of `least`.


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of a graph. A path search tries them in this order."""

    source: Int64s
    target: Int64s
    kind: Int64s


@dataclass(frozen=True, slots=True)
class Rule:
    """Limits on closed paths, by bits of kinds. Without limits, every closed path counts."""

    apart: int = 0  # No two steps of these kinds follow each other, the last and the first included.
    least: tuple[tuple[int, int], ...] = ()  # (kinds, number): at least that many steps of these kinds.
    once: int = 0  # At most one step of these kinds.


ANY: Final = Rule()


class HasEnds(Protocol):
    """A step as an object."""

    @property
    def source(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def kind(self) -> int: ...


S = TypeVar("S", bound=HasEnds)


def process_steps(index: Int64s, end: Int64s, process: Int64s) -> Steps:
    """Steps to each operation of a process from the last one before it that has a certain end, if that had ended."""
    nodes = np.flatnonzero(process != UNORDERED)
    nodes = nodes[np.argsort(process[nodes], kind="stable")]
    has_end = end[nodes] != OPEN_END
    last = np.maximum.accumulate(np.where(has_end, np.arange(len(nodes)), -1))[:-1]
    source, target = nodes[last], nodes[1:]
    # A process does one thing after the other; two operations that a history shows as concurrent have no order.
    follows = (last >= 0) & (process[source] == process[target]) & (end[source] <= index[target])
    return Steps(source[follows], target[follows], np.full(np.count_nonzero(follows), PROCESS))


def time_steps(index: Int64s, end: Int64s, is_mark: Bools | None = None) -> Steps:
    """Steps for real time. None leads to a watermark (`is_mark`): its index is not that of an invocation."""
    size = len(index)
    nodes, due = np.arange(size), np.searchsorted(index, end)
    ended = np.flatnonzero((due < size) & (end != OPEN_END))
    begun = nodes if is_mark is None else np.flatnonzero(~is_mark)
    source = np.concatenate((ended, nodes[:-1] + size, begun + size))
    target = np.concatenate((due[ended] + size, nodes[1:] + size, begun))
    return Steps(source, target, np.where(np.arange(len(source)) < len(ended), REALTIME, MOMENT))


def strong_labels(source: Int64s, target: Int64s, size: int) -> Int64s:
    """The number of the strongly connected component of each node, shape (size,). No step leads to a higher number."""
    if not len(source):
        return np.arange(size)  # Without scipy, whose import takes longer than most checks of registers.
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  See TYPE_CHECKING above.

    _, label = connected_components(_matrix(source, target, size), directed=True, connection="strong")
    return label.astype(np.int64)


def cycle_labels(source: Int64s, target: Int64s, size: int) -> Int64s:
    """For each node a number, shape (size,), that it shares with those which have a closed path in common with it.

    Fast where few steps lead backwards, to a node of a lower number: only around these there are closed paths.
    """
    is_inner = _is_inner(source, target, size)
    return strong_labels(source[is_inner], target[is_inner], size)


def _is_inner(source: Int64s, target: Int64s, size: int) -> Bools:
    """True for the steps that may lie on a closed path: all gaps between their two ends are crossed backwards.

    A closed path crosses each gap, from a node to the next number, as often backwards as forwards.
    """
    back = np.flatnonzero(source > target)
    if not len(back):
        return np.zeros(len(source), np.bool_)
    crossings = np.bincount(target[back], minlength=size) - np.bincount(source[back], minlength=size)
    stretch = np.cumsum(np.append(False, np.cumsum(crossings)[:-1] == 0))
    result: Bools = stretch[source] == stretch[target]
    return result


def _matrix(source: Int64s, target: Int64s, size: int) -> "csr_array":
    from scipy.sparse import coo_array  # noqa: PLC0415  See TYPE_CHECKING above.

    return coo_array((np.ones(len(source), np.int8), (source, target)), (size, size)).tocsr()


def components(label: Int64s) -> list[Int64s]:
    """The nodes of each component of two or more nodes, ascending, in the order of their labels."""
    nodes = np.flatnonzero(np.bincount(label)[label] > 1)  # Most nodes are alone, in a graph of any size.
    nodes = nodes[np.argsort(label[nodes], kind="stable")]
    return np.split(nodes, np.flatnonzero(np.diff(label[nodes])) + 1) if len(nodes) else []


class StepGraph:
    """A graph: nodes 0 to `size` - 1 are operations, and the next `size` nodes are moments of real time."""

    def __init__(self, parts: Sequence[Steps], size: int) -> None:
        self.steps, self.size = concat(parts), size

    def closed(self, source: Int64s, target: Int64s, *, apart: int = 0) -> Bools:
        """True for pairs whose step lies on a closed path.

        With `apart` each pair's step is of these kinds, and the path has no two such steps in a row. The nodes that
        such steps reach are then a second layer of the graph, from which no step of these kinds leads on.
        """
        steps, nodes = self.steps, 2 * self.size
        is_missed = steps.kind & apart != 0
        sources, targets = steps.source, steps.target + nodes * is_missed
        if apart:
            sources = np.append(sources, steps.source[~is_missed] + nodes)
            targets = np.append(targets, steps.target[~is_missed])
        label = strong_labels(sources, targets, nodes * (2 if apart else 1))
        result: Bools = label[source] == label[target + (nodes if apart else 0)]
        return result

    def reached(self, start: int) -> Int64s:
        """The nodes to which paths lead from `start`."""
        from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415  See TYPE_CHECKING above.

        return breadth_first_order(self._matrix, start, return_predecessors=False).astype(np.int64)

    @cached_property
    def _matrix(self) -> "csr_array":
        return _matrix(self.steps.source, self.steps.target, 2 * self.size)

    @cached_property
    def _network(self) -> "nx.MultiDiGraph[int]":
        """The steps as edges of a networkx graph; the key of an edge is the row of its step."""
        import networkx as nx  # noqa: PLC0415  Likewise.

        network: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        network.add_nodes_from(range(2 * self.size))
        for row, ends in enumerate(zip(self.steps.source.tolist(), self.steps.target.tolist(), strict=True)):
            network.add_edge(*ends, key=row)
        return network

    @cached_property
    def _steps_from(self) -> dict[int, list[tuple[int, int, int]]]:
        """For each node the steps that leave it: target, row, and kind."""
        kinds = self.steps.kind.tolist()
        ends = self._network.adjacency()
        return {
            node: [(to, int(row), kinds[int(row)]) for to, rows in after.items() for row in rows]
            for node, after in ends
        }

    def path(self, start: int, goal: int, *, first: int = MOMENT, rule: Rule = ANY) -> list[int] | None:
        """Rows of the steps of a shortest path from `start` to `goal` that keeps the rule after a step of kind `first`.

        None if there is no such path. In a large graph it is the shortest within a short range of time.
        """
        low, high = sorted((start, goal))
        margin = self.size if len(self.steps.source) <= _PATH_EDGES else 8 + high - low
        while True:
            rows = self._path(start, goal, first, rule, range(low - margin, high + margin + 1))
            if rows is not None or margin >= self.size:
                return rows
            margin *= 4

    def _path(self, start: int, goal: int, first: int, rule: Rule, near: range) -> list[int] | None:
        steps_from, size, ticket = self._steps_from, self.size, count()
        begun = _after(rule, (False, (0,) * len(rule.least)), first)
        assert begun is not None, "a first step breaks no rule"
        begin = (start, begun)
        came: dict[tuple[int, State], tuple[tuple[int, State], int]] = {}
        costs = {begin: 0}
        waiting = [(0, next(ticket), begin)]
        states: dict[tuple[State, int], State | None] = {}  # After a state and a step of a kind.
        while waiting:
            cost, _, at = heappop(waiting)
            if cost > costs[at]:
                continue
            node, state = at
            if node == goal and _is_goal(rule, state, first):
                return _traced(came, at)
            for target, row, kind in steps_from[node]:
                if target % size not in near:
                    continue
                if (state, kind) not in states:
                    states[state, kind] = _after(rule, state, kind)
                after = states[state, kind]
                if after is None:
                    continue
                reached, further = (target, after), cost + (1 if kind in (MOMENT, CHAIN) else _STEP)
                if further < costs.get(reached, further + 1):
                    costs[reached], came[reached] = further, (at, row)
                    heappush(waiting, (further, next(ticket), reached))
        return None


def _after(rule: Rule, state: State, kind: int) -> State | None:
    """The state after a step of that kind; None if the rule forbids the step."""
    was_apart, counts = state
    is_apart = kind & rule.apart != 0
    steps = [(kind & kinds != 0, limit, count) for (kinds, limit), count in zip(rule.least, counts, strict=True)]
    if (was_apart and is_apart) or (kind & rule.once and any(is_one and count for is_one, _, count in steps)):
        return None
    return is_apart, tuple(min(limit, count + is_one) for is_one, limit, count in steps)


def _is_goal(rule: Rule, state: State, first: int) -> bool:
    """True if a closed path may end in that state: it keeps the rule, also where its first step follows its last."""
    was_apart, counts = state
    is_enough = all(count == limit for (_, limit), count in zip(rule.least, counts, strict=True))
    return is_enough and not (was_apart and first & rule.apart)


def _traced(came: dict[tuple[int, State], tuple[tuple[int, State], int]], at: tuple[int, State]) -> list[int]:
    rows = []
    while at in came:
        at, row = came[at]
        rows.append(row)
    return rows[::-1]


def simple_cycles(walk: Sequence[S]) -> Iterator[list[S]]:
    """The simple cycles that make up a closed path.

    Steps from moments are omitted: the step before them takes their place.
    """
    stack: list[S] = []
    places: dict[int, int] = {}
    for step in walk:
        places[step.source] = len(stack)
        stack.append(step)
        if step.target in places:
            begin = places[step.target]
            yield [each for each in stack[begin:] if each.kind != MOMENT]
            for gone in stack[begin + 1 :]:
                places.pop(gone.source, None)
            del stack[begin:]
