"""Long histories of stores that keep a weak model: each session sees others late, as its replica learns of them."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Final, Literal, NamedTuple

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import FAIL, NOTHING, OK


def causal(draw: Random, *, transactions: int, sessions: int, keys: int) -> Iterator[Operation]:
    """Registers in a store that is causal and no more: of each session a replica knows some first transactions.

    From time to time a session learns what another one knows. It reads the last version that it knows, in one order of
    versions for all.
    """
    clocks = [[-1] * sessions for _ in range(sessions)]
    versions: list[list[tuple[int, int, int]]] = [[] for _ in range(keys)]  # (session, turn, value)
    value = 0
    for number in range(transactions):
        session = draw.randrange(sessions)
        clock = clocks[session]
        if draw.random() < 0.5:
            clocks[session] = clock = list(map(max, clock, clocks[draw.randrange(sessions)]))
        turn = clock[session] + 1
        mops: list[Mop] = []
        for key in draw.sample(range(keys), draw.randint(1, 8)):
            if draw.random() < 0.5:
                known = (each for each in reversed(versions[key]) if each[1] <= clock[each[0]])
                mops.append(Load(key, next(known, (0, 0, NOTHING))[2]))
            else:
                value += 1
                mops.append(Store(key, value))
        for mop in mops:
            if isinstance(mop, Store):
                versions[mop.key].append((session, turn, mop.value))
        clock[session] = turn
        yield Operation(2 * number, session, OK, 2 * number + 1, tuple(mops))


class _Lists:
    """Lists to append to, a few at a time: of each it is known which elements it had at which commit."""

    def __init__(self, keys: int, appends: int) -> None:
        self._keys, self._appends = keys, appends
        self._first = 0
        self.elements: dict[int, list[int]] = {}
        self.commits: dict[int, list[int]] = {}

    def drawn(self, draw: Random) -> int:
        """A key in use."""
        while len(self.elements.setdefault(self._first, [])) >= self._appends:
            self._first += 1
        return self._first + draw.randrange(self._keys)

    def read(self, key: int, commit: int) -> tuple[int, ...]:
        """The elements as of that commit."""
        return tuple(self.elements.get(key, ())[: bisect_right(self.commits.get(key, []), commit)])

    def append(self, key: int, element: int, commit: int) -> None:
        """Append it by that commit."""
        self.elements.setdefault(key, []).append(element)
        self.commits.setdefault(key, []).append(commit)


LAG: Final = 40  # By so many commits a replica may lag.
Isolation = Literal["read-committed", "snapshot-isolation", "strict-serializable"]


def lists(draw: Random, isolation: Isolation, *, transactions: int, sessions: int, keys: int) -> Iterator[Operation]:
    """Lists in a store that keeps that model.

    At read committed each read sees what is committed when it is made. At snapshot isolation all reads of a transaction
    see one moment of a replica that lags, and of two that append to a key without seeing each other the second fails.
    """
    store = _Lists(keys, 50)
    commit, event = 0, 0
    waiting: dict[int, _Running] = {}
    ended: dict[int, Operation] = {}
    order = deque[int]()  # The begun transactions that were not yielded yet.
    begun = 0
    while begun < transactions or waiting:
        session = draw.randrange(sessions)
        event += 1
        running = waiting.get(session)
        if running is None:
            if begun < transactions:
                begun += 1
                chosen = tuple(dict.fromkeys(store.drawn(draw) for _ in range(draw.randint(1, 4))))
                waiting[session] = _Running(event, chosen, max(0, commit - draw.randint(0, LAG)), {})
                order.append(event)
            continue
        if isolation != "strict-serializable" and len(running.seen) < len(running.keys):
            key = running.keys[len(running.seen)]
            running.seen[key] = store.read(key, commit if isolation == "read-committed" else running.snapshot)
            continue
        del waiting[session]
        seen = running.seen or {key: store.read(key, commit) for key in running.keys}
        written = [key for key in running.keys if draw.random() < 0.5]
        is_lost = isolation == "snapshot-isolation" and any(store.read(key, commit) != seen[key] for key in written)
        if not is_lost:
            commit += 1
            for key in written:
                store.append(key, event, commit)
        mops: list[Mop] = [Read(key, None if is_lost else seen[key]) for key in running.keys]
        mops += [Append(key, event) for key in written]
        ended[running.begun] = Operation(running.begun, session, FAIL if is_lost else OK, event, tuple(mops))
        while order and order[0] in ended:
            yield ended.pop(order.popleft())


class _Running(NamedTuple):
    """A transaction that has begun: its keys, its snapshot (a commit), and what it has read."""

    begun: int
    keys: tuple[int, ...]
    snapshot: int
    seen: dict[int, tuple[int, ...]]
