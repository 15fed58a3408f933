"""Models that need the order of versions, where it is not known: a solver chooses, and each cycle is a new clause.

Theory of operation.
1. A guess comes first: versions in the order in which their writers began, or ended. If the graph of the level has no
   cycle with it, the model holds: these versions prove it. That takes linear time.
2. Else a proof without a guess is tried on a part of the history (`forced`): a store that keeps only a weaker model
   breaks this one everywhere. If the part is the whole and nothing is proven, what is forced is the best guess.
3. Else the pairs of versions are variables. A cycle rests on the pairs that its ww and rw steps assume, and not all of
   these can be true. The solver finds an order of pairs that obeys all such clauses so far. The versions are sorted by
   it, and by the guess where it says nothing, and the new graph shows new cycles. Only pairs that occur in a cycle are
   variables, so what a guess has right costs nothing.
4. It ends with an order without a cycle, or with clauses that no order obeys: then no order explains the history. The
   evidence is a minimal set of such cycles.
Pairs whose order is known, those of a list, are never assumed.

Source: Tan et al., Cobra, OSDI 2020; Huang et al., PolySI, VLDB 2023; the clauses from cycles as in lazy SMT.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from checkers.axioms.execution import UNRANKED, Execution, Pairs, part
from checkers.axioms.levels import CALM, Chains, Layers, Level, base, chains, is_ordered, layers, places
from checkers.axioms.moments import Moments, guesses, of_commits
from checkers.axioms.orders import forced
from checkers.axioms.orders.ascent import Ascent, Disturbed, along, by_moments
from checkers.axioms.orders.choices import Variables, in_order, reordered
from checkers.axioms.orders.cycles import (
    CYCLES,
    LOOKED,
    ChosenStep,
    Contradiction,
    Cycle,
    Evidence,
    Paths,
    Walks,
    connected,
    short_cycles,
)
from checkers.columns.index import Places
from checkers.columns.runs import codes
from checkers.columns.table import empty, take
from checkers.graph.edges import REALTIME, RW, WW
from checkers.graph.paths import Steps
from checkers.graph.strong import strong_labels
from harness.core.columns import Bools, Int64s

if TYPE_CHECKING:
    from pysat.solvers import Solver  # Only a history that a guess does not explain needs a solver.

ROUNDS: Final = 400  # The number of orders that the solver may propose.
WORK: Final = 60_000_000  # The number of steps of all graphs together, after the guesses,
WORTH: Final = 1_000_000  # of so many transactions; more have a greater budget, so that the time grows linearly.
_LOOP: Final = 8  # A step on a path, in a loop of Python, counts as much as so many in columns.
_PROBED: Final = 150  # The number of orders to propose before something else is tried: a proof, or a weaker model.
_FEW: Final = 2  # A guess is good if of so many transactions less than one is near a cycle.


class Unsolved(Struct, frozen=True):
    """The result of a search whose budget ended.

    `pairs` is the number of pairs of versions whose order was in doubt.
    """

    pairs: int


def decided(
    execution: Execution, level: Level, order: int, *, rounds: int | None = None
) -> Contradiction | Unsolved | None:
    """None if some order of versions satisfies the level, with the order of time `order`; else the contradiction.

    The solver proposes at most `rounds` orders, by default ROUNDS. Unsolved if that, or WORK, was not enough.
    """
    best = _best_guess(execution, level, order)
    if best is None:
        return None
    most = ROUNDS if rounds is None else rounds
    if len(best.nodes) * _FEW < len(execution.op):
        answer = _Search(execution, level, order, best).result(min(most, _PROBED))
        if not isinstance(answer, Unsolved):
            return answer
    found = _after_forced(execution, level, order, best)
    if isinstance(found, Contradiction):
        return found
    # An order that explains more is found faster, as more of it is known.
    is_last = (level, order) == (Level.SERIAL, REALTIME) or level is Level.UPDATE  # The latter knows more ww.
    if not is_last and most and is_ordered(execution, REALTIME):
        strong = _best_guess(execution, Level.SERIAL, REALTIME)
        if strong is None or _is_serial(execution, strong):
            return None
    return _Search(execution, level, order, found).result(most)


def _most_work(execution: Execution) -> int:
    """The budget of a search: the number of steps of its graphs."""
    return WORK * max(1, -(-len(execution.op) // WORTH))


def _after_forced(execution: Execution, level: Level, order: int, guess: "_Guess") -> "Contradiction | _Guess":
    """The proof that no order of versions is left; or a guess that keeps what is forced, if all of it was followed."""
    every = np.arange(len(execution.op))
    found = forced.decided(execution, level, order, every if len(every) <= forced.MOST else guess.nodes)
    if isinstance(found, Contradiction):
        return found
    if len(found) < len(every):
        return guess
    return _guess(execution, level, order, of_commits(execution, found))


def _is_serial(execution: Execution, guess: "_Guess") -> bool:
    """True if an order of versions is found that is strictly serializable."""
    found = _after_forced(execution, Level.SERIAL, REALTIME, guess)
    if isinstance(found, Contradiction):
        return False
    return bool(_Search(execution, Level.SERIAL, REALTIME, found).is_explained(_PROBED))


def _best_guess(execution: Execution, level: Level, order: int) -> "_Guess | None":
    """The guess with the fewest transactions on cycles; None if some guess has no cycle, which decides the level."""
    tried: list[tuple[int, _Guess]] = []
    for moments in guesses(execution):
        guess = _guess(execution, level, order, moments)
        trouble = len(guess.nodes)
        if trouble and level in CALM:
            versions = chains(execution, moments.install)
            closing, cost = _closing(layers(execution, base(execution, order, level), versions, level))
            trouble = len(execution.op) if closing is None or cost > WORK // _LOOP else len(closing)
        if not trouble:
            return None
        tried.append((trouble, guess))
        if trouble * _FEW < len(execution.op):
            break
    return min(tried, key=lambda each: each[0])[1]


class _Guess(Struct, frozen=True):
    """A guess of the order of versions: the place of each row of installs.

    `nodes` are the transactions on cycles of its graph, with their neighbours. `ascent` is along that graph, and None
    if it is that of another level, which implies the wanted one.
    """

    versions: Int64s
    nodes: Int64s
    ascent: Ascent | None


def _guess(execution: Execution, level: Level, order: int, moments: Moments) -> _Guess:
    # Snapshot isolation implies parallel snapshot isolation and update atomic, and one search for cycles decides it.
    is_other = level in CALM
    shown = Level.SNAPSHOT if is_other else level
    is_timed = order == REALTIME
    versions = chains(execution, moments.install)
    graph = layers(execution, base(execution, 0 if is_timed else order, level), versions, shown)
    begin, found = by_moments(execution, moments.commit, shown, graph.steps, places(versions), is_timed=is_timed)
    inside, rows = part(execution, found.nodes)
    looked_at = layers(inside, base(inside, order, level), in_order(inside, found.versions[rows]), shown)
    label = along(looked_at.steps, 3 * looked_at.size)
    is_cyclic = np.zeros(graph.size, np.bool_)
    is_cyclic[found.nodes] = _at_ends(looked_at, _on_cycles(looked_at, label))
    return _Guess(found.versions, _around(graph, is_cyclic), None if is_other else begin.mended(found, label))


def _closing(graph: Layers) -> tuple[Int64s | None, int]:
    """The rw steps that close a cycle with calm ones alone; and the number of steps looked at.

    None if calm steps have a cycle. If the number is above WORK // _LOOP, some may be missing.
    """
    rows = _on_cycles(graph, along(graph.steps, 3 * graph.size))
    kind = graph.steps.kind[rows]
    calm, misses = take(graph.steps, rows[kind != RW]), rows[kind == RW]
    place = along(calm, 3 * graph.size)
    if np.any(place[calm.source] == place[calm.target]):
        return None, len(rows)
    back = Steps(graph.steps.target[misses], graph.steps.source[misses], graph.steps.kind[misses])
    is_closed, cost = connected(calm, place, back, most=WORK // _LOOP)
    return misses[is_closed], cost


def _on_cycles(graph: Layers, label: Int64s) -> Int64s:
    """The steps that lie on a cycle; `label` is `along` the graph."""
    return np.flatnonzero(label[graph.steps.source] == label[graph.steps.target])


def _at_ends(graph: Layers, steps: Int64s) -> Bools:
    """True for the transactions at the ends of those steps."""
    result = np.zeros(graph.size, np.bool_)
    for ends in (graph.steps.source[steps], graph.steps.target[steps]):
        result[ends[ends < 2 * graph.size] % graph.size] = True
    return result


def _around(graph: Layers, is_inside: Bools) -> Int64s:
    """Those transactions and their neighbours, ascending."""
    source, target = graph.steps.source, graph.steps.target
    between = (source < 2 * graph.size) & (target < 2 * graph.size)
    source, target = source[between] % graph.size, target[between] % graph.size
    result = is_inside.copy()
    result[source[is_inside[target]]] = True
    result[target[is_inside[source]]] = True
    return np.flatnonzero(result)


class _Search:
    """The search for an order of versions without a cycle, which starts at a guess.

    Each round looks for cycles among the transactions around the last round's cycles. When these have none left, it
    looks at all transactions that may lie on one (`Ascent.disturbed`); the search is over when these have none either.
    """

    def __init__(self, execution: Execution, level: Level, order: int, guess: _Guess) -> None:
        self._whole, self._level, self._order, self._guess = execution, level, order, guess
        self._ascent, self._versions = guess.ascent, guess.versions
        self._variables = Variables(guess.versions)
        self._chosen = empty(Pairs)
        self._clauses: list[tuple[list[int], Cycle | None]] = []

    def result(self, rounds: int) -> Contradiction | Unsolved | None:
        """None if some order explains the history; the contradiction if none does; Unsolved if the budget ended."""
        match self.is_explained(rounds):
            case True:
                return None
            case False:
                return Contradiction(self._core())
            case None:
                return Unsolved(len(self._variables))

    def is_explained(self, rounds: int) -> bool | None:
        """True if some order of versions explains the history, False if none does; None if the budget ended."""
        from pysat.solvers import Solver  # noqa: PLC0415  See TYPE_CHECKING above.

        work, most = 0, _most_work(self._whole)
        whole: Disturbed | None = None  # If the round looks at all that may lie on a cycle, that.
        self._execution, self._rows = part(self._whole, self._guess.nodes)
        with Solver(name="glucose4") as solver:
            for _ in range(rounds):
                graph = layers(
                    self._execution, base(self._execution, self._order, self._level), self._ordered(), self._level
                )
                label = along(graph.steps, 3 * graph.size)
                steps = _on_cycles(graph, label)
                cycles, cost = self._cycles(graph, label)
                work += len(graph.later) + _LOOP * cost
                is_free = not len(cycles.rows)
                if is_free and (whole is not None or work > most):
                    return True if work <= most else None
                if is_free:
                    whole = self._disturbed()
                    self._versions = whole.versions
                    self._execution, self._rows = part(self._whole, whole.nodes)
                    continue
                if whole is not None and self._ascent is not None:
                    self._ascent = self._ascent.mended(whole, label)
                whole = None
                if not self._is_learned(solver, graph, cycles) or not self._is_solved(solver):
                    return False
                if work > most:
                    break
                self._execution, rows = part(self._execution, _around(graph, _at_ends(graph, steps)))
                self._rows = self._rows[rows]
        return None

    def _disturbed(self) -> Disturbed:
        """The transactions that may lie on a cycle with the chosen pairs. Without an ascent these are all."""
        if self._ascent is None:
            return Disturbed(np.arange(len(self._whole.op)), np.empty(0, np.bool_), self._versions)
        return self._ascent.disturbed(self._whole, self._chosen)

    def _cycles(self, graph: Layers, label: Int64s) -> tuple[Walks, int]:
        """Some short cycles that break the level, by rows of steps; and the number of steps looked at.

        `label` is `along` the graph.
        """
        if self._level not in CALM:
            return short_cycles(graph.steps, label)
        steps = _on_cycles(graph, label)
        calm = steps[graph.steps.kind[steps] != RW]
        inside = take(graph.steps, calm)
        place = along(inside, 3 * graph.size)
        walks, cost = short_cycles(inside, place)
        if len(walks.rows):
            return Walks(calm[walks.rows], walks.lengths), cost
        closing, looked = _closing(graph)
        assert closing is not None, "calm steps without a short cycle have none"
        paths = Paths(inside.source, inside.target, place.tolist())
        cost += looked
        rows, lengths = list[int](), list[int]()
        ends = zip(
            closing.tolist(), graph.steps.target[closing].tolist(), graph.steps.source[closing].tolist(), strict=True
        )
        for row, start, goal in ends:
            path, looked = paths.path(start, goal)
            cost += looked
            rows += (row, *calm[path].tolist())
            lengths.append(1 + len(path))
            if len(lengths) == CYCLES or cost > LOOKED:
                break
        return Walks(np.array(rows, np.int64), np.array(lengths, np.int64)), cost

    def _is_solved(self, solver: "Solver") -> bool:
        """True if the solver finds an assignment in which the pairs of no key have a cycle; it becomes `_chosen`."""
        while solver.solve():
            chosen = self._variables.chosen(solver.get_model() or ())
            pairs = self._changed(chosen)
            rings = _rings(pairs)
            if not len(rings.rows):
                self._chosen = chosen
                return True
            for clause in self._excluded(pairs.source[rings.rows], pairs.target[rings.rows], rings.lengths):
                self._clauses.append((clause, None))
                solver.add_clause(clause)
        return False

    def _changed(self, chosen: Pairs) -> Pairs:
        """The pairs of those keys of which a pair is new, or its order another one than in `_chosen`."""
        known, key = len(self._chosen.source), self._whole.installs.key
        is_changed = np.append(
            chosen.source[:known] != self._chosen.source, np.ones(len(chosen.source) - known, np.bool_)
        )
        is_among = np.zeros(len(self._whole.keys), np.bool_)
        is_among[key[chosen.source[is_changed]]] = True
        return take(chosen, is_among[key[chosen.source]])

    def _is_learned(self, solver: "Solver", graph: Layers, cycles: Walks) -> bool:
        """Tell the solver that of each of those cycles not all orders are true. False if a cycle assumes no order."""
        before = len(self._variables)
        new = dict(self._learned(graph, cycles))  # Each clause once.
        self._clauses += ((list(clause), cycle) for clause, cycle in new.items())
        if () in new:
            return False
        for clause in new:
            solver.add_clause(clause)
        solver.set_phases(self._variables.guessed(before))  # Of the others it remembers the last ones.
        return True

    def _learned(self, graph: Layers, cycles: Walks) -> Iterator[tuple[tuple[int, ...], Cycle]]:
        """For each of those cycles the clause "not all orders that it assumes are true", and the cycle."""
        rows, rank = np.append(self._rows, -1), self._whole.installs.rank
        earlier, later = rows[graph.earlier[cycles.rows]], rows[graph.later[cycles.rows]]
        # The order of two versions of a list is known, unless no read shows either of them.
        is_open = (earlier >= 0) & ((rank[earlier] == UNRANKED) | (rank[earlier] == rank[later]))
        stops = np.cumsum(cycles.lengths)
        lengths = np.diff(np.append(0, np.cumsum(is_open))[stops], prepend=0)
        clauses = self._excluded(earlier[is_open], later[is_open], lengths)
        every = Evidence(self._execution, graph, cycles.rows)
        for clause, start, stop in zip(clauses, (stops - cycles.lengths).tolist(), stops.tolist(), strict=True):
            yield tuple(sorted({*clause})), Cycle(every, start, stop)

    def _excluded(self, earlier: Int64s, later: Int64s, lengths: Int64s) -> list[list[int]]:
        """Clauses of so many pairs each: not all of these are in that order."""
        literals: list[int] = (-self._variables.literals(earlier, later)).tolist()
        return [literals[start:stop] for start, stop in pairwise([0, *np.cumsum(lengths).tolist()])]

    def _ordered(self) -> Chains:
        """The versions in the order of the solver's pairs; where these say nothing, in the last one of all."""
        order = in_order(self._execution, self._versions[self._rows])
        place = Places(self._rows)
        return reordered(order, Pairs(place.of(self._chosen.source), place.of(self._chosen.target)))

    def _core(self) -> tuple[tuple[ChosenStep, ...], ...]:
        """The cycles of a minimal set of clauses that cannot all be true."""
        from pysat.examples.musx import MUSX  # noqa: PLC0415  Likewise.
        from pysat.formula import WCNF  # noqa: PLC0415

        direct = next((cycle for clause, cycle in self._clauses if not clause and cycle), None)
        if direct is not None:
            return (direct.steps(),)
        formula = WCNF()
        for clause, _ in self._clauses:
            formula.append(clause, weight=1)
        with MUSX(formula, verbosity=0) as finder:
            chosen = finder.compute() or []
        cycles = (self._clauses[number - 1][1] for number in chosen)
        return tuple(cycle.steps() for cycle in cycles if cycle is not None)


def _rings(chosen: Pairs) -> Walks:
    """Cycles among the chosen pairs, by rows of these: some for each component that has any."""
    nodes, ends = codes(np.concatenate((chosen.source, chosen.target)))
    source, target = np.split(ends, 2)
    steps = Steps(source, target, np.full(len(source), WW))
    return short_cycles(steps, strong_labels(source, target, len(nodes)))[0]
