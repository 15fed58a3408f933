"""Histories of up to a dozen transactions, lists and registers beside each other, with several troubles at once.

A hidden store commits transactions one after the other. Each reads from one moment of it, late or not, and now and then
something else. So all models hold for some histories, and for some none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from msgspec.structs import replace

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK

TROUBLES: Final = ("unclear", "failed", "twice", "reset", "intermediate", "unwritten", "torn", "again")
_OUTSIDE: Final = 90  # A value that nobody writes.


@dataclass
class _Store:
    """The versions of each key after each commit. The keys below `lists` are lists."""

    lists: int
    states: list[dict[int, tuple[int, ...]]] = field(default_factory=lambda: [{}])
    counts: dict[int, int] = field(default_factory=dict)

    def value(self, key: int) -> int:
        """A value that no other write of the key has."""
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]

    def at(self, key: int, moment: int) -> tuple[int, ...]:
        """All versions of the key up to that moment, the first one first."""
        return self.states[moment].get(key, ())


def tangled(draw: Random, *, most: int = 9, troubles: tuple[str, ...] | None = None) -> list[Operation]:
    """From one to `most` transactions of up to six reads and writes on up to six keys, in up to four processes."""
    if troubles is None:
        troubles = tuple(draw.sample(TROUBLES, draw.choice([0, 0, 0, 1, 1, 2, 3])))
    keys, size = draw.randint(1, 6), draw.randint(1, most)
    store = _Store(lists=draw.choice([0, keys, draw.randint(0, keys)]))
    if "unwritten" in troubles:
        store.states[0] = {key: (_OUTSIDE,) for key in range(keys) if draw.random() < 0.4}
    times, lag, noise = _times(draw, size), draw.choice([0, 0, 1, 3]), draw.choice([0.0, 0.0, 0.05, 0.3])
    order = sorted(range(size), key=lambda at: draw.uniform(*times[at]) if draw.random() < 0.9 else draw.random())
    chance = dict.fromkeys(troubles, 0.25)
    done: dict[int, tuple[int, tuple[Mop, ...]]] = {}
    for at in order:
        outcome = OK
        if draw.random() < chance.get("failed", 0):
            outcome = FAIL
        elif draw.random() < chance.get("unclear", 0.05):
            outcome = INFO
        mops = tuple(_mops(draw, store, keys, chance, lag=lag, noise=noise))
        if outcome == OK or (outcome == INFO and draw.random() < 0.7) or (outcome == FAIL and draw.random() < 0.2):
            _commit(store, mops)
        done[at] = outcome, mops if outcome == OK else tuple(map(_unknown, mops))
    return list(_operations(draw, times, done, chance))


def _times(draw: Random, size: int) -> list[tuple[float, float]]:
    """The begin and end of each transaction, in the order of their begins; sometimes nearly all overlap."""
    length = draw.choice([0.3, 1.5, 6.0, 30.0])
    begins = sorted(draw.uniform(0, size) for _ in range(size))
    return [(begin, begin + draw.uniform(0.01, length)) for begin in begins]


def _mops(draw: Random, store: _Store, keys: int, chance: dict[str, float], *, lag: int, noise: float) -> Iterator[Mop]:
    moment = max(0, len(store.states) - 1 - draw.randint(0, lag))
    shown: dict[int, tuple[int, ...]] = {}
    written: set[int] = set()
    for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4, 6])):
        key = draw.randrange(keys)
        if draw.random() < 0.5:
            if key not in shown or draw.random() < chance.get("torn", 0):
                seen = draw.randrange(len(store.states)) if draw.random() < noise else moment
                shown[key] = store.at(key, seen)
            yield Read(key, shown[key]) if key < store.lists else Load(key, (shown[key] or (NOTHING,))[-1])
        elif key not in written or "intermediate" in chance:
            value = store.value(key)
            if draw.random() < chance.get("twice", 0) and value > 1 and key >= store.lists:
                value = draw.randint(1, value)
            if draw.random() < chance.get("reset", 0) and key >= store.lists:
                value = NOTHING
            written.add(key)
            shown[key] = (*shown.get(key, store.at(key, moment)), value)
            yield Append(key, value) if key < store.lists else Store(key, value)


def committed(draw: Random, operations: list[Operation]) -> list[Operation]:
    """The history with positions for most transactions, in the order of begins or ends, or in none; some are equal."""
    orders: list[Callable[[Operation], int]] = [
        lambda one: one.index,
        lambda one: min(one.after, len(operations) * 3),
        lambda _: draw.randrange(len(operations)),
    ]
    of, noise = draw.choice(orders), draw.choice([0.0, 0.2])
    return [
        one if draw.random() < 0.15 else replace(one, commit=(orders[-1] if draw.random() < noise else of)(one))
        for one in operations
    ]


def _commit(store: _Store, mops: tuple[Mop, ...]) -> None:
    state = dict(store.states[-1])
    for mop in mops:
        if isinstance(mop, Append | Store):
            state[mop.key] = (*state.get(mop.key, ()), mop[1])
    store.states.append(state)


def _unknown(mop: Mop) -> Mop:
    return mop if isinstance(mop, Append | Store) else Read(mop.key, None)


def _operations(
    draw: Random,
    times: list[tuple[float, float]],
    done: dict[int, tuple[int, tuple[Mop, ...]]],
    chance: dict[str, float],
) -> Iterator[Operation]:
    """The transactions by index, which is the rank of the begin, with gaps or without."""
    processes, busy, gap = draw.randint(1, 4), dict[int, float](), draw.choice([1, 1, 3])
    for at, (begin, end) in enumerate(times):
        outcome, mops = done[at]
        free = [process for process in range(processes) if busy.get(process, 0) <= begin]
        process = draw.choice(free) if free else 10 + at
        busy[process] = end if outcome != INFO else float("inf")
        after = next((each for each, (start, _) in enumerate(times) if start >= end), len(times)) * gap
        if outcome == FAIL and draw.random() < chance.get("again", 0):
            mops = mops[: draw.randint(0, len(mops))]
        yield Operation(at * gap, process, outcome, NEVER if outcome == INFO else after, mops)
