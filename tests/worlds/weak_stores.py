"""Long histories of stores that keep a weak model: each session sees others late, as its replica learns of them."""

from collections.abc import Iterator
from random import Random

from checkers.history.transactions import Load, Mop, Operation, Store
from harness.core.columns import NOTHING, OK


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
