"""Small random histories of registers: a serial execution with overlapping operations, then what may go wrong."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from checkers.history.transactions import Load, Mop, Operation, Read, Store
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK
from tests.worlds.histories import KEYS, intervals

State = dict[int, int]


def correct(draw: Random, *, count: int = 7, keys: int = 3, processes: int = 4) -> list[Operation]:
    """A strictly serializable history: each operation takes effect at a moment between its two ends."""
    return _history(draw, count, keys, processes, lambda state, past: state)


def stale(draw: Random, *, count: int = 7, keys: int = 3, processes: int = 4) -> list[Operation]:
    """A history in which some transactions read an older state."""
    return _history(
        draw, count, keys, processes, lambda state, past: draw.choice(past) if draw.random() < 0.4 else state
    )


def _history(
    draw: Random, count: int, keys: int, processes: int, view: Callable[[State, list[State]], State]
) -> list[Operation]:
    state: State = dict.fromkeys(KEYS[:keys], NOTHING)
    past = [dict(state)]
    operations: dict[int, Operation] = {}
    value = 0
    ordered = sorted(intervals(draw, count, processes), key=lambda interval: interval[3])
    for commit, (index, process, after, _) in enumerate(ordered):
        outcome = draw.choices((OK, FAIL, INFO), (8, 1, 1))[0]
        seen = dict(view(state, past))
        mops: list[Mop] = []
        for _ in range(draw.randint(1, 4)):
            key = draw.choice(KEYS[:keys])
            if draw.random() < 0.5:
                value += 1
                seen[key] = value
                mops.append(Store(key, value))
            else:
                mops.append(Load(key, seen[key]) if outcome == OK else Read(key, None))
        happens = outcome == OK or (outcome == INFO and draw.random() < 0.5)
        if happens:
            state |= {mop.key: mop.value for mop in mops if isinstance(mop, Store)}
            past.append(dict(state))
        end = after if outcome == OK else NEVER
        operations[index] = Operation(index, process, outcome, end, tuple(mops), commit if happens else NEVER)
    return [operations[index] for index in range(count)]


def spoiled(draw: Random, operations: list[Operation]) -> list[Operation]:
    """The same history with some lies: lost writes, leaked aborts, reads of other values, a value written twice."""
    result = list(operations)
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(result))
        result[at] = draw.choice((_wrong_outcome, _odd_read, _odd_read))(draw, result[at])
    if draw.random() < 0.1:
        at = draw.randrange(len(result))
        again = Store(draw.choice(KEYS), draw.choice((NOTHING, *range(1, 7))))
        result[at] = replace(result[at], mops=(*result[at].mops, again))
    return result


def _wrong_outcome(draw: Random, operation: Operation) -> Operation:
    """Reported otherwise than it went: an aborted write leaks, or a committed one is lost."""
    outcome = draw.choice((OK, FAIL, INFO))
    end = operation.after if operation.after != NEVER else operation.index + 1
    return replace(operation, outcome=outcome, after=end if outcome == OK else NEVER)


def _odd_read(draw: Random, operation: Operation) -> Operation:
    mops = list(operation.mops)
    places = [at for at, mop in enumerate(mops) if isinstance(mop, Load)]
    if places:
        at = draw.choice(places)
        mops[at] = Load(mops[at].key, draw.choice((NOTHING, *range(1, 13), 95)))
    return replace(operation, mops=tuple(mops))
