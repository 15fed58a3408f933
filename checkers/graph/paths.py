"""The one search for cycles: steps on closed paths, and shortest paths under a rule. The only user of networkx.

A *step* leads from one node to another for a reason, its kind. Nodes 0 to n - 1 ascend by index. Real time adds n
*moments*, the nodes from n on: an operation leads to the moment of the first index after its end, a moment leads to the
next one, and to the operation that begins there. So the order of n operations takes 3 n steps.

A *rule* limits closed paths by the kinds of their steps. A search under a rule is a plain search in a graph of layers:
a layer is a state of the path so far, and a step leads from its source in one layer to its target in the layer of the
state after it, or nowhere if the rule forbids it. Node v of layer i is v + 2 n i. networkx finds the shortest paths: in
the whole graph up to NETWORKX_STEPS steps, above in a short range of time. `strong` finds the components.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import first_places
from checkers.columns.runs import first_of_each
from checkers.columns.table import concat, take
from checkers.graph.edges import CHAIN, OPEN_END, PROCESS, REALTIME
from checkers.graph.strong import matrix, strong_labels
from harness.core.columns import Bools, Int64s

if TYPE_CHECKING:
    # Loading scipy or networkx takes up to half a second in every process. Histories without a window and the workers
    # of an engine never need them, so only a search loads them.
    import networkx as nx
    from scipy.sparse import csr_array

NETWORKX_STEPS: Final = 20_000  # Above, networkx would take too long.
MOMENT: Final = 0  # The kind of a step from a moment.
UNORDERED: Final = np.iinfo(np.int64).min  # The process of a node outside every process order.
_STEP: Final = 1_000_000  # The weight of a step: more than that of any chain of moments.
State = tuple[bool, tuple[int, ...]]  # True after a step of `apart`; the number of steps of each of `least`.


class Steps(Struct, frozen=True):
    """Steps of a graph. A path search tries them in this order."""

    source: Int64s
    target: Int64s
    kind: Int64s


class Rule(Struct, frozen=True):
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


def labels_of(source: Int64s, target: Int64s, size: int) -> Int64s:
    """The least node of the strongly connected component of each node, shape (size,)."""
    result, is_met = np.arange(size), np.zeros(size, np.bool_)
    is_met[source] = is_met[target] = True
    nodes, place = np.flatnonzero(is_met), np.cumsum(is_met) - 1  # Few of many nodes may have a step.
    label = strong_labels(place[source], place[target], len(nodes))
    result[nodes] = nodes[first_places(label, len(nodes))[label]]
    return result


def cycle_labels(source: Int64s, target: Int64s, size: int) -> Int64s:
    """For each node a number, shape (size,), that it shares with those which have a closed path in common with it.

    Fast where few steps lead backwards, to a node of a lower number: only around these there are closed paths.
    """
    is_inner = _is_inner(source, target, size)
    return labels_of(source[is_inner], target[is_inner], size)


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


def components(label: Int64s) -> list[Int64s]:
    """The nodes of each component of two or more nodes, ascending, in the order of their labels."""
    nodes = np.flatnonzero(np.bincount(label)[label] > 1)  # Most nodes are alone, in a graph of any size.
    nodes = nodes[np.argsort(label[nodes], kind="stable")]
    return np.split(nodes, np.flatnonzero(np.diff(label[nodes])) + 1) if len(nodes) else []


class _Layers:
    """The layers of a graph of `nodes` nodes for closed paths under a rule, from the state after their first step on.

    Columns of shape (e,): `source` and `target` of each edge, and the `row` of its step.
    """

    def __init__(self, steps: Steps, nodes: int, rule: Rule, begun: State) -> None:
        self.states = [begun]
        self._nodes, self._rule, self._kind = nodes, rule, steps.kind
        rows_of = [(kind, np.flatnonzero(steps.kind == kind)) for kind in np.unique(steps.kind).tolist()]
        sources, targets, rows = ([np.empty(0, np.int64)] for _ in range(3))
        for layer, state in enumerate(self.states):  # Which grow meanwhile.
            for kind, row in rows_of:
                after = _after(rule, state, kind)
                if after is not None:
                    self.states += [after] * (after not in self.states)
                    sources.append(steps.source[row] + nodes * layer)
                    targets.append(steps.target[row] + nodes * self.states.index(after))
                    rows.append(row)
        self.source, self.target, self.row = map(np.concatenate, (sources, targets, rows))
        self.size = nodes * len(self.states)

    def begin(self, first: int) -> int:
        """The place of node 0 after a first step of that kind."""
        return self._nodes * self.states.index(_begun(self._rule, first))

    def goals(self, first: int) -> list[int]:
        """The places of node 0 where a path may end that a first step of that kind closes."""
        return [self._nodes * at for at, state in enumerate(self.states) if _is_goal(self._rule, state, first)]

    @cached_property
    def labels(self) -> Int64s:
        """The number of the strongly connected component of each place."""
        return labels_of(self.source, self.target, self.size)

    @cached_property
    def _network(self) -> "nx.DiGraph[int]":
        """The edges in networkx: of several between two places the lightest, and of equal ones the first."""
        import networkx as nx  # noqa: PLC0415  Likewise.

        kind = self._kind[self.row]
        weight = np.where((kind == MOMENT) | (kind == CHAIN), 1, _STEP)
        order = np.lexsort((self.row, weight, self.target, self.source))
        kept = order[first_of_each(self.source[order]) | first_of_each(self.target[order])]
        kept = kept[np.argsort(self.row[kept], kind="stable")]  # A path search tries them in this order.
        edges = zip(*(column[kept].tolist() for column in (self.source, self.target, weight, self.row)), strict=True)
        network: nx.DiGraph[int] = nx.DiGraph()
        network.add_edges_from((one, two, {"weight": cost, "row": row}) for one, two, cost, row in edges)
        return network

    @cached_property
    def _ranks(self) -> dict[int, int]:
        """The rank of each place, by time where no path decides: no path leads from a place to one of a lower rank."""
        import networkx as nx  # noqa: PLC0415  Likewise.

        size = self._nodes // 2
        parts = nx.condensation(self._network)
        earliest = {part: min(place % size for place in parts.nodes[part]["members"]) for part in parts}
        ranks = {part: at for at, part in enumerate(nx.lexicographical_topological_sort(parts, key=earliest.get))}
        return {place: ranks[part] for place, part in parts.graph["mapping"].items()}

    def may_lead(self, start: int, goal: int) -> bool:
        """False only if no path leads from one place to the other. Fast for many pairs: most lead on in time."""
        return start == goal or self._ranks.get(start, 1) <= self._ranks.get(goal, 0)

    def leads(self, start: int, goal: int) -> bool:
        """True if a path leads from one place to the other."""
        import networkx as nx  # noqa: PLC0415  Likewise.

        network = self._network
        return start == goal or (start in network and goal in network and nx.has_path(network, start, goal))

    def path(self, start: int, goals: Sequence[int]) -> list[int] | None:
        """The rows of the steps of a shortest path to one of the goals; None if there is none."""
        import networkx as nx  # noqa: PLC0415  Likewise.

        if start in goals:
            return []
        network = self._network
        found = [nx.dijkstra_path(network, start, goal) for goal in goals if self.leads(start, goal)]
        shortest = min(found, key=lambda path: nx.path_weight(network, path, "weight"), default=None)
        return None if shortest is None else [network.edges[ends]["row"] for ends in pairwise(shortest)]

    @cached_property
    def matrix(self) -> "csr_array":
        """The edges in scipy."""
        return matrix(self.source, self.target, self.size)


class StepGraph:
    """A graph under a rule: nodes 0 to `size` - 1 are operations, the next `size` nodes are moments of real time."""

    def __init__(self, parts: Sequence[Steps], size: int, rule: Rule = ANY) -> None:
        self.steps, self.size, self._apart = concat(parts), size, rule.apart
        # Steps of which there is only one follow no other like them.
        self._rule = rule if rule.apart & ~rule.once else replace(rule, apart=0)
        self._layers: list[tuple[Rule, _Layers]] = []

    @property
    def _is_small(self) -> bool:
        return len(self.steps.source) <= NETWORKX_STEPS

    def on_cycles(self, source: Int64s, target: Int64s, kind: int) -> Bools:
        """True for pairs whose step, of that kind, lies on a closed path; of the rule, only `apart` counts."""
        layers = self._under(Rule(apart=self._apart), kind)
        begin, label = layers.begin(kind), layers.labels
        result = np.zeros(len(source), np.bool_)
        for goal in layers.goals(kind):
            result |= label[source + goal] == label[target + begin]
        return result

    def is_closed(self, source: int, target: int, kind: int) -> bool:
        """True if a path under the rule leads from the target of a step of that kind back to its source."""
        layers = self._under(self._rule, kind)
        begin, goals = layers.begin(kind) + target, [goal + source for goal in layers.goals(kind)]
        if self._is_small:
            return any(layers.may_lead(begin, goal) and layers.leads(begin, goal) for goal in goals)
        from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415  See TYPE_CHECKING above.

        return bool(np.isin(goals, breadth_first_order(layers.matrix, begin, return_predecessors=False)).any())

    def path(self, start: int, goal: int, *, first: int = MOMENT) -> list[int] | None:
        """Rows of the steps of a shortest path from `start` to `goal` that keeps the rule after a step of kind `first`.

        None if there is no such path. In a large graph it is the shortest within a short range of time.
        """
        if self._is_small:
            return _path(self._under(self._rule, first), start, goal, first)
        low, high = sorted((start, goal))
        margin = 8 + high - low
        while True:
            rows = np.flatnonzero(self._is_near(low - margin, high + margin))
            layers = _Layers(take(self.steps, rows), 2 * self.size, self._rule, _begun(self._rule, first))
            path = _path(layers, start, goal, first)
            if path is not None:
                return [int(rows[row]) for row in path]
            if margin >= self.size:
                return None
            margin *= 4

    def _under(self, rule: Rule, first: int) -> _Layers:
        """The layers of the whole graph under a rule, with a state after a first step of that kind."""
        begun = _begun(rule, first)
        for known, layers in self._layers:
            if known == rule and begun in layers.states:
                return layers
        layers = _Layers(self.steps, 2 * self.size, rule, begun)
        self._layers.append((rule, layers))
        return layers

    def _is_near(self, low: int, high: int) -> Bools:
        """True for steps between operations and moments from `low` to `high`."""
        source, target = self.steps.source % self.size, self.steps.target % self.size
        result: Bools = (low <= source) & (source <= high) & (low <= target) & (target <= high)
        return result


def _path(layers: _Layers, start: int, goal: int, first: int) -> list[int] | None:
    return layers.path(layers.begin(first) + start, [each + goal for each in layers.goals(first)])


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


def _begun(rule: Rule, first: int) -> State:
    """The state after a first step of that kind, which breaks no rule."""
    begun = _after(rule, (False, (0,) * len(rule.least)), first)
    assert begun is not None, "a first step breaks no rule"
    return begun


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
