"""Models that need the order of versions, where it is not known: a solver chooses, and each cycle is a new clause.

Theory of operation.
1. A guess comes first: versions in the order in which their writers began, or ended. If the graph of the level has no
   cycle with it, the model holds: these versions prove it. That takes linear time.
2. Else the pairs of versions are variables. A cycle rests on the pairs that its ww and rw steps assume, and not all of
   these can be true. The solver finds an order of pairs that obeys all such clauses so far. The versions are sorted by
   it, and by the guess where it says nothing, and the new graph shows new cycles. Only pairs that occur in a cycle are
   variables, so what a guess has right costs nothing.
3. It ends with an order without a cycle, or with clauses that no order obeys: then no order explains the history. The
   evidence is a minimal set of such cycles.
Pairs whose order is known, those of a list, are never assumed.

Source: Tan et al., Cobra, OSDI 2020; Huang et al., PolySI, VLDB 2023; the clauses from cycles as in lazy SMT.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from checkers.axioms.execution import INITIAL, UNRANKED, Execution, part
from checkers.axioms.levels import Chains, Layers, Level, base, chains, guesses, layers
from checkers.columns.index import Places
from checkers.columns.runs import first_of_each
from checkers.columns.table import take
from checkers.graph.edges import RW, WW
from checkers.graph.paths import MOMENT, Steps, strong_labels
from harness.core.columns import Bools, Int64s

if TYPE_CHECKING:
    from pysat.solvers import Solver  # Only a history that a guess does not explain needs a solver.

ROUNDS: Final = 400  # The number of orders that the solver may propose.
WORK: Final = 60_000_000  # The number of steps of all graphs together, after the guesses.
_CYCLES: Final = 20_000  # The number of cycles that are taken from one graph,
_TRIES: Final = 16  # and from one strong component of it.


class ChosenStep(NamedTuple):
    """A step from operation to operation (indexes). For ww and rw: the later version is that of `target` in `key`."""

    source: int
    target: int
    kind: int
    key: int = -1


class Contradiction(NamedTuple):
    """Cycles of which every order of versions has one. A single one assumes no order at all."""

    cycles: tuple[tuple[ChosenStep, ...], ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """The operations of all cycles, in their order."""
        return tuple(dict.fromkeys(step.source for cycle in self.cycles for step in cycle))


@dataclass(frozen=True, slots=True)
class Unsolved:
    """The budget ended; so many pairs of versions were in doubt."""

    pairs: int


def decided(
    execution: Execution, level: Level, order: int, *, rounds: int | None = None
) -> Contradiction | Unsolved | None:
    """None if some order of versions explains the history at that level, with sessions or real time by `order`.

    The solver proposes up to `rounds` orders, or ROUNDS.
    """
    known = base(execution, order)
    # Snapshot isolation implies parallel snapshot isolation, and takes one look at the graph.
    guessed = Level.SNAPSHOT if level is Level.PARALLEL else level
    doubtful, moments = [], guesses(execution)
    for guess in moments:
        graph = layers(execution, known, chains(execution, guess), guessed)
        steps = np.flatnonzero(_cyclic(graph))
        if not len(steps):
            return None
        doubtful.append(_transactions(execution, graph, steps))
    best = min(range(len(doubtful)), key=lambda number: len(doubtful[number]))
    search = _Search(execution, level, order, moments[best])
    return search.result(doubtful[best], ROUNDS if rounds is None else rounds)


def _cyclic(graph: Layers) -> Bools:
    """True for the steps that lie on a cycle."""
    label = strong_labels(graph.steps.source, graph.steps.target, 3 * graph.size)
    result: Bools = label[graph.steps.source] == label[graph.steps.target]
    return result


def _transactions(execution: Execution, graph: Layers, steps: Int64s) -> Int64s:
    """The transactions between which those steps lead, and those that they read from, ascending."""
    nodes = np.concatenate((graph.steps.source[steps], graph.steps.target[steps]))
    nodes = np.unique(nodes[nodes < 2 * graph.size] % graph.size)
    views = execution.views
    writers = views.writer[np.isin(views.reader, nodes)]
    return np.union1d(nodes, writers[writers != INITIAL])


class _Search:
    """The search for an order of versions, guessed by those moments.

    It looks at the transactions that were on a cycle once; when these have none, at all.
    """

    def __init__(self, execution: Execution, level: Level, order: int, moments: Int64s) -> None:
        self._whole, self._level, self._order = execution, level, order
        self._moments = moments
        self._number: dict[tuple[int, int], int] = {}  # Pairs of installs, the lesser first, as variables from 1 on.
        self._guessed: list[int] = []  # The literal that the guess makes true, by variable.
        self._clauses: list[tuple[list[int], tuple[ChosenStep, ...]]] = []

    def result(self, nodes: Int64s, rounds: int) -> Contradiction | Unsolved | None:
        """The contradiction; None if there is an order. `nodes` are those to look at first."""
        from pysat.solvers import Solver  # noqa: PLC0415  See TYPE_CHECKING above.

        work, model = 0, set[int]()
        with Solver(name="glucose4") as solver:
            for _ in range(rounds):
                self._execution, self._rows = part(self._whole, nodes)
                graph = self._graph(model)
                cycles, cost = self._cycles(graph)
                work += cost
                if not cycles:
                    if len(nodes) == len(self._whole.op):
                        return None
                    nodes = self._wider(nodes, model)
                    work += len(self._whole.op)
                    continue
                new = list(self._learned(graph, cycles))
                for clause, cycle in new:
                    if not clause:
                        return Contradiction((cycle,))
                    solver.add_clause(clause)
                self._clauses += new
                solver.set_phases(self._guessed)
                if not self._solved(solver):
                    return Contradiction(self._core())
                if work > WORK:
                    break
                model = set(solver.get_model() or ())
        return Unsolved(len(self._number))

    def _graph(self, model: set[int]) -> Layers:
        order = self._ordered(model)
        return layers(self._execution, base(self._execution, self._order), order, self._level)

    def _wider(self, nodes: Int64s, model: set[int]) -> Int64s:
        """Those and the transactions on cycles of the whole; all if that has none."""
        self._execution, self._rows = self._whole, np.arange(len(self._whole.installs.key))
        graph = self._graph(model)
        steps = np.flatnonzero(_cyclic(graph))
        if self._level is Level.PARALLEL or not len(steps):
            return np.arange(len(self._whole.op))
        wider = np.union1d(nodes, _transactions(self._whole, graph, steps))
        return wider if len(wider) > len(nodes) else np.arange(len(self._whole.op))

    def _cycles(self, graph: Layers) -> tuple[list[Int64s], int]:
        """The rows of some short cycles that break the level, and the number of steps looked at."""
        rows = np.flatnonzero(_cyclic(graph))
        if self._level is not Level.PARALLEL:
            return [rows[walk] for walk in _short_cycles(take(graph.steps, rows), 3 * graph.size)], len(graph.later)
        calm = rows[graph.steps.kind[rows] != RW]
        walks = [calm[walk] for walk in _short_cycles(take(graph.steps, calm), 3 * graph.size)]
        if walks:
            return walks, len(graph.later)
        order = calm[np.argsort(graph.steps.source[calm], kind="stable")]
        source, target = graph.steps.source[order], graph.steps.target[order]
        cost = len(graph.later)
        for row in rows[graph.steps.kind[rows] == RW].tolist():
            path, looked = _path(int(graph.steps.target[row]), int(graph.steps.source[row]), source, target)
            cost += looked
            if path:
                walks.append(np.array([row, *order[path]], np.int64))
            if len(walks) == _CYCLES:
                break
        return walks, cost

    def _solved(self, solver: "Solver") -> bool:
        """True if the solver has an assignment in which each key's pairs have no cycle."""
        while solver.solve():
            model = set(solver.get_model() or ())
            rings = list(_rings({pair: number in model for pair, number in self._number.items()}))
            if not rings:
                return True
            for ring in rings:
                clause = [-self._literal(one, other) for one, other in zip(ring, (*ring[1:], ring[0]), strict=True)]
                self._clauses.append((clause, ()))
                solver.add_clause(clause)
        return False

    def _literal(self, earlier: int, later: int) -> int:
        pair = (min(earlier, later), max(earlier, later))
        if pair not in self._number:
            self._number[pair] = len(self._number) + 1
            is_so = self._moments[pair[0]] <= self._moments[pair[1]]
            self._guessed.append(self._number[pair] if is_so else -self._number[pair])
        number = self._number[pair]
        return number if earlier < later else -number

    def _learned(self, graph: Layers, cycles: Iterable[Int64s]) -> Iterator[tuple[list[int], tuple[ChosenStep, ...]]]:
        """The clauses of those cycles, each with its cycle."""
        known: set[tuple[int, ...]] = set()
        for steps in cycles:
            clause = []
            pairs = (np.append(self._rows, -1)[column[steps]].tolist() for column in (graph.earlier, graph.later))
            for earlier, later in zip(*pairs, strict=True):
                if earlier >= 0 and not self._is_known(earlier, later):
                    clause.append(-self._literal(earlier, later))
            if tuple(sorted(clause)) not in known:
                known.add(tuple(sorted(clause)))
                yield sorted(set(clause)), tuple(self._shown(graph, steps))

    def _is_known(self, earlier: int, later: int) -> bool:
        """True if the order of those versions is known: they are of a list, and not both unseen."""
        rank = self._whole.installs.rank
        return bool(rank[earlier] != UNRANKED and rank[earlier] != rank[later])

    def _shown(self, graph: Layers, steps: Int64s) -> Iterator[ChosenStep]:
        op, size = self._execution.op, graph.size
        rows = [row for row in steps.tolist() if graph.steps.kind[row] != MOMENT]
        ends = [int(graph.steps.source[row]) % size for row in rows]
        for row, source, target in zip(rows, ends, (*ends[1:], *ends[:1]), strict=True):
            kind, later = int(graph.steps.kind[row]), int(graph.later[row])
            key = int(self._execution.keys[self._execution.installs.key[later]]) if kind in (WW, RW) else -1
            yield ChosenStep(int(op[source]), int(op[target]), kind, key)

    def _ordered(self, model: set[int]) -> Chains:
        """The versions sorted by the solver's pairs, and else by the guess."""
        order = chains(self._execution, self._moments[self._rows])
        keys = self._execution.installs.key
        place = Places(self._rows)
        known = np.array(list(self._number), np.int64).reshape(-1, 2)
        is_so = np.array([number in model for number in self._number.values()], np.bool_)
        earlier, later = (place.of(np.where(is_so, one, other)) for one, other in (known.T, known.T[::-1]))
        is_here = (earlier >= 0) & (later >= 0)
        earlier, later = earlier[is_here], later[is_here]
        # Where all of a key's pairs are as guessed, so is their order.
        at = np.empty(len(order.row), np.int64)
        at[order.row] = np.arange(len(order.row))
        sorted_otherwise = np.isin(keys[earlier], keys[earlier[at[earlier] > at[later]]])
        before: dict[int, list[tuple[int, int]]] = {}
        for one, other in zip(earlier[sorted_otherwise].tolist(), later[sorted_otherwise].tolist(), strict=True):
            before.setdefault(int(keys[one]), []).append((one, other))
        row = order.row.copy()
        key_of = keys[row]
        for key, pairs in before.items():
            first, stop = np.searchsorted(key_of, (key, key + 1))
            row[first:stop] = _sorted(row[first:stop].tolist(), pairs)
        return Chains(row, order.is_next)

    def _core(self) -> tuple[tuple[ChosenStep, ...], ...]:
        """The cycles of a minimal set of clauses that no order obeys."""
        from pysat.examples.musx import MUSX  # noqa: PLC0415  Likewise.
        from pysat.formula import WCNF  # noqa: PLC0415

        formula = WCNF()
        for clause, _ in self._clauses:
            formula.append(clause, weight=1)
        with MUSX(formula, verbosity=0) as finder:
            chosen = finder.compute() or []
        return tuple(self._clauses[number - 1][1] for number in chosen if self._clauses[number - 1][1])


def _sorted(rows: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    """The rows in an order that obeys the pairs, which have no cycle; else in their own."""
    place = {row: at for at, row in enumerate(rows)}
    after: dict[int, list[int]] = {}
    waits = dict.fromkeys(rows, 0)
    for one, other in pairs:
        after.setdefault(one, []).append(other)
        waits[other] += 1
    ready = [place[row] for row in rows if not waits[row]]
    heapify(ready)
    result = []
    while ready:
        row = rows[heappop(ready)]
        result.append(row)
        for other in after.get(row, ()):
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, place[other])
    return result


def _rings(chosen: dict[tuple[int, int], bool]) -> Iterator[list[int]]:
    """Cycles of the chosen pairs, one for each component that has any."""
    if not chosen:
        return
    pairs = np.array([pair if is_so else pair[::-1] for pair, is_so in chosen.items()], np.int64)
    nodes, places = np.unique(pairs, return_inverse=True)
    source, target = places.reshape(-1, 2).T
    steps = Steps(source, target, np.full(len(source), WW))
    for walk in _short_cycles(steps, len(nodes)):
        yield nodes[source[walk]].tolist()


def _short_cycles(steps: Steps, size: int) -> Iterator[Int64s]:
    """Rows of short cycles among the steps, some for each strong component, at most _CYCLES in all."""
    label = strong_labels(steps.source, steps.target, size)
    inside = np.flatnonzero(label[steps.source] == label[steps.target])
    order = inside[np.argsort(steps.source[inside], kind="stable")]
    source, target = steps.source[order], steps.target[order]
    nodes = source[first_of_each(source)]  # On a cycle each node has a step inside.
    nodes, of_node = nodes[np.argsort(label[nodes], kind="stable")], np.sort(label[nodes])
    groups = np.split(nodes, np.flatnonzero(np.diff(of_node)) + 1)
    for group in groups[:_CYCLES] if len(nodes) else ():
        tried = min(_TRIES, len(group), max(1, _CYCLES // len(groups)))
        for start in group[np.linspace(0, len(group) - 1, tried).astype(np.int64)].tolist():
            yield order[_path(start, start, source, target)[0]]


def _path(start: int, goal: int, source: Int64s, target: Int64s) -> tuple[list[int], int]:
    """The rows of a shortest path of at least one step, and the number of steps looked at. Steps are by source."""
    came: dict[int, tuple[int, int]] = {}
    waiting, looked = [start], 0
    for node in waiting:
        low, high = np.searchsorted(source, (node, node + 1)).tolist()
        looked += high - low
        for row, reached in zip(range(low, high), target[low:high].tolist(), strict=True):
            if reached not in came:
                came[reached] = (node, row)
                waiting.append(reached)
        if goal in came:
            break
    rows, at = list[int](), goal
    while goal in came and (not rows or at != start):
        at, row = came[at]
        rows.append(row)
    return rows[::-1], looked
