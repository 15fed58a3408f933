"""What may lie on a cycle after the order of versions changed: against the whole graph, in the solver's own rounds."""

from collections import Counter
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from checkers.axioms.execution import Execution
from checkers.axioms.levels import CALM, LAYERED, Layers, Level, base, layers
from checkers.axioms.orders import polygraph
from checkers.axioms.orders.ascent import Disturbed, along
from checkers.axioms.orders.choices import in_order
from checkers.graph.edges import PROCESS, REALTIME
from checkers.graph.paths import MOMENT
from harness.core.columns import Int64s
from tests.bench import generated
from tests.unit.checkers.axioms.test_ladder import of

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


def bad_guesses(ours: Execution) -> list[Int64s]:
    """The begins of the writers, each a little wrong: so the search takes many rounds."""
    draw = np.random.default_rng(SEED)
    return [ours.op[ours.installs.writer] + draw.integers(-20, 20, len(ours.installs.writer))]


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
