"""What may lie on a cycle after the order of versions changed: against the whole graph, in the solver's own rounds."""

from collections import Counter
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from checkers.axioms.execution import Execution
from checkers.axioms.levels import CALM, LAYERED, Layers, Level, base, chains, layers, places
from checkers.axioms.moments import Moments, guesses
from checkers.axioms.orders import polygraph
from checkers.axioms.orders.ascent import Ascent, Disturbed, along, by_moments
from checkers.axioms.orders.choices import in_order
from checkers.axioms.orders.cycles import Contradiction
from checkers.graph.edges import PROCESS, REALTIME
from checkers.graph.paths import MOMENT
from checkers.history.transactions import Load, Operation, Store, to_transactions
from harness.core.columns import NOTHING, OK, Int64s
from tests.bench import generated
from tests.unit.checkers.axioms.test_ladder import Mops, history, of

SEED = 20261127


def on_cycles(graph: Layers, label: Int64s) -> set[int]:
    is_on = label[graph.steps.source] == label[graph.steps.target]
    nodes = np.concatenate((graph.steps.source[is_on], graph.steps.target[is_on]))
    return set((nodes[nodes < 2 * graph.size] % graph.size).tolist())


class Watched(polygraph._Search):
    """A search that compares each round of what may lie on a cycle with the whole graph."""

    seen: ClassVar[Counter[str]]

    def _disturbed(self) -> Disturbed:
        found = super()._disturbed()
        graph = self._graph(found.versions)
        label = along(graph.steps, 3 * graph.size)
        assert on_cycles(graph, label) <= set(found.nodes.tolist())
        assert self._ascent is not None
        self.seen["mended"] += self._ascent is not self._guess.ascent
        self._require_ascent(self._graph(self._ascent.versions), self._ascent.place)
        assert np.all(found.versions[self._chosen.source] < found.versions[self._chosen.target])
        self.seen["part"] += len(found.nodes) < graph.size
        self.seen["cycles"] += bool(on_cycles(graph, label))
        return found

    def _graph(self, versions: Int64s) -> Layers:
        ours = self._whole
        return layers(ours, base(ours, self._order, self._level), in_order(ours, versions), self._level)

    def _require_ascent(self, graph: Layers, place: Int64s) -> None:
        size, steps = graph.size, graph.steps
        label = along(steps, 3 * size)
        is_plain = steps.kind != MOMENT
        if self._level in LAYERED:
            is_plain |= (steps.source < 2 * size) & (steps.target < size)
        source, target = steps.source[is_plain], steps.target[is_plain]
        is_among = (source < 2 * size) & (target < 2 * size)
        source, target = source[is_among], target[is_among]
        if self._order == REALTIME:
            before, after = np.nonzero(self._whole.end[:, None] <= self._whole.op)
            source = np.append(source, before)
            target = np.append(target, after + (size if self._level in LAYERED else 0))
        assert np.all(place[source] <= place[target])
        assert np.all((place[source] < place[target]) | (label[source] == label[target]))


def contended(seed: int) -> Execution:
    """300 transactions on ten registers, twenty at a time."""
    return of(generated.registers_of(generated.transactions(300, seed)))


def begun(ours: Execution, order: int, level: Level, moments: Moments) -> tuple[Ascent, Disturbed]:
    """The places of an untimed order, or of real time, by those moments."""
    versions = chains(ours, moments.install)
    steps = layers(ours, base(ours, 0, level), versions, level).steps
    return by_moments(ours, moments.commit, level, steps, places(versions), is_timed=order == REALTIME)


def bad_guesses(ours: Execution) -> list[Moments]:
    """Moments of commit that keep real time, and begins of the writers, each a little wrong.

    So the search takes many rounds.
    """
    draw = np.random.default_rng(SEED)
    installed = ours.op[ours.installs.writer] + draw.integers(-20, 20, len(ours.installs.writer))
    return [Moments(next(guesses(ours)).commit, installed)]


def test_all_cycles_lie_among_what_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")
    monkeypatch.setattr(Watched, "seen", Counter(), raising=False)
    monkeypatch.setattr(polygraph, "guesses", bad_guesses)
    levels = [level for level in Level if level not in CALM]
    for number, level, order in product(range(2), levels, (0, PROCESS, REALTIME)):
        ours = contended(SEED + number)
        guess = polygraph._best_guess(ours, level, order)
        assert guess is not None
        assert Watched(ours, level, order, guess).result(polygraph.ROUNDS) is None
    assert all(Watched.seen[kind] > 5 for kind in ("part", "mended", "cycles")), Watched.seen


@pytest.mark.parametrize("level", [level for level in Level if level not in CALM])
def test_moments_that_keep_real_time_leave_a_part_to_look_at_and_others_leave_everything(level: Level) -> None:
    ours = contended(SEED)
    best = next(guesses(ours))
    late = best.commit.copy()
    late[0] = late.max() + 1  # The first transaction ended long before the last one began.
    for order, commit, has_part in ((REALTIME, best.commit, True), (REALTIME, late, False), (0, late, True)):
        begin, found = begun(ours, order, level, Moments(commit, best.install))
        graph = layers(ours, base(ours, order, level), in_order(ours, found.versions), level)
        label = along(graph.steps, 3 * graph.size)
        assert on_cycles(graph, label) <= set(found.nodes.tolist())
        assert np.all(np.bincount(begin.place) == 1)
        if order:
            assert (len(found.nodes) < graph.size) == has_part


def test_moments_alone_prove_a_serial_history() -> None:
    ours = of(to_transactions(history(*((Store(0, value), Load(1, NOTHING)) for value in range(20)))))
    _, found = begun(ours, REALTIME, Level.SERIAL, next(guesses(ours)))
    assert not len(found.nodes)
    assert polygraph.decided(ours, Level.SERIAL, REALTIME) is None


@pytest.mark.parametrize("level", [Level.UPDATE, Level.PARALLEL, Level.SNAPSHOT, Level.SERIAL])
def test_what_contradicts_the_moments_is_looked_at(level: Level) -> None:
    """A lost update, in which all versions but the first are read: no moments put it in order."""
    moves: list[Mops] = [(Store(0, 1),), (Load(0, 1), Store(0, 2)), (Load(0, 1), Store(0, 3))]
    ours = of(to_transactions([Operation(at, at, OK, 9, mops) for at, mops in enumerate(moves)]))
    assert isinstance(polygraph.decided(ours, level, 0), Contradiction)
