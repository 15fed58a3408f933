"""Random runs of a correct cluster with restarts raise no alarm; each lie about what a state holds raises one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from checkers.engine.protocol import Context
from checkers.state import durability
from clusters.ndb.checks import authority
from harness.core.record import Outcome
from nemesis.registry import EXCUSES
from tests.amount import FIRST_SEED, count
from tests.worlds.run_cases import BOUNDS, ENGINE, GROUPS, Run, anomalies, epoch

KEYS = range(6)
SEEDS = range(FIRST_SEED, FIRST_SEED + count(24))
Rows = dict[int, list[int]]


@dataclass
class Shown:
    """What the nodes show after a restart, or at the end (`restart` is None), and what may be told of it."""

    ms: int
    restart: int | None
    rows: Rows
    certain: list[tuple[int, int]]  # Elements that must be there, as somebody was told that they are written,
    forbidden: list[tuple[int, int]]  # and that must not, as they failed or are void.


@dataclass
class Model:
    """A cluster that does everything right, one transaction after the other."""

    draw: Random
    run: Run = field(default_factory=Run)
    ms: int = 10
    gci: int = 1
    written: int = 0
    restarts: int = 0
    rows: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # Elements with their checkpoints.
    certain: list[tuple[int, int]] = field(default_factory=list)
    forbidden: list[tuple[int, int]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)

    def live(self) -> None:
        """A life of some transactions, checkpoints and restarts."""
        self.run.fault("crash", "d2", 5, 10_000)
        for _ in range(self.draw.randint(10, 25)):
            self.ms += 10
            match self.draw.randrange(8):
                case 0:
                    self.gci += 1
                case 1 if self.restarts < 2:
                    self._restart()
                case _:
                    self._transact()
        self.ms += 10
        self._show(None)

    def _transact(self) -> None:
        keys = self.draw.sample(KEYS, self.draw.randint(1, 3))
        writes = {key: self.written + place for place, key in enumerate(keys, 1)}
        self.written += len(keys)
        at = epoch(self.gci, self.ms)
        outcome = self.draw.choices(("ok", "info", "fail"), (6, 3, 1))[0]
        result: Outcome = "ok" if outcome == "ok" else "info" if outcome == "info" else "fail"
        self.run.append(self.ms, writes, result, at=at)
        happens = outcome == "ok" or (outcome == "info" and self.draw.random() < 0.5)
        is_delivered = happens and self.draw.random() < 0.5
        if is_delivered:
            key, element = self.draw.choice(list(writes.items()))
            self.run.event(self.ms + 5, "s1", "row", at, key=key, value=element)
        if happens:
            for key, element in writes.items():
                self.rows.setdefault(key, []).append((element, self.gci))
        if outcome == "ok" or is_delivered:
            self.certain += writes.items()
        if outcome == "fail":
            self.forbidden += writes.items()

    def _restart(self) -> None:
        self.restarts += 1
        restored = self.draw.randint(max(0, self.gci - 2), self.gci)
        for key, elements in self.rows.items():
            void = [(key, element) for element, gci in elements if gci > restored]
            self.forbidden += [each for each in void if each in self.certain]
            self.certain = [each for each in self.certain if each not in void]
            self.rows[key] = [(element, gci) for element, gci in elements if gci <= restored]
        self.gci += self.draw.randint(1, 3)
        self.run.restart(self.ms, self.restarts, restored, self.gci)
        self._show(self.restarts)

    def _show(self, restart: int | None) -> None:
        rows = {key: [element for element, _ in elements] for key, elements in self.rows.items() if elements}
        self.shown.append(Shown(self.ms, restart, rows, list(self.certain), list(self.forbidden)))


def histories(model: Model) -> Iterator[Path]:
    """The history of a model, once."""
    for shown in model.shown:
        for number, group in enumerate(GROUPS):
            of_group = {key: elements for key, elements in shown.rows.items() if key % len(GROUPS) == number}
            model.run.dump(shown.ms, " ".join(group), of_group, restart=shown.restart)
    with TemporaryDirectory() as folder:
        yield model.run.write(Path(folder))


def lived(seed: int) -> Model:
    model = Model(Random(seed))
    model.live()
    return model


def found(model: Model) -> list[str]:
    for history in histories(model):
        return [
            name
            for check in (durability.check_restarts, durability.check_rest, authority.check)
            for name in anomalies(check(history, Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES)))
            if name != "loss-beyond-bound"
        ]
    return []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_that_restores_what_it_saved_raises_no_alarm(seed: int) -> None:
    assert found(lived(seed)) == []


def test_an_element_that_is_dropped_from_a_state_is_missed() -> None:
    tried = 0
    for seed in SEEDS:
        model = lived(seed)
        shown = model.draw.choice(model.shown)
        # A group that shows nothing at all proves nothing.
        candidates = [
            (key, element)
            for key, element in shown.certain
            if any(other != key and (other - key) % len(GROUPS) == 0 for other in shown.rows)
        ]
        if candidates:
            key, element = model.draw.choice(candidates)
            shown.rows[key] = [each for each in shown.rows[key] if each != element]
            tried += 1
            names = found(model)
            assert {"lost-acknowledged", "double-status"} & set(names), (seed, key, element, names)
    assert tried >= len(SEEDS) // 2


def test_an_element_that_a_state_must_not_have_is_seen() -> None:
    tried = 0
    for seed in SEEDS:
        model = lived(seed)
        shown = model.draw.choice(model.shown)
        if shown.forbidden:
            key, element = model.draw.choice(shown.forbidden)
            shown.rows.setdefault(key, []).append(element)
            tried += 1
            names = found(model)
            assert {"resurrected", "phantom-write"} & set(names), (seed, key, element, names)
    assert tried >= len(SEEDS) // 4
