"""Small random histories of list-append: a serial execution with overlapping operations, then what may go wrong."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from checkers.history.transactions import Append, Operation, Read
from harness.core.columns import FAIL, INFO, NEVER, OK

KEYS = (120, 121, 122)


def correct(draw: Random, *, count: int = 7, keys: int = 3, processes: int = 4) -> list[Operation]:
    """A strictly serializable history: each operation takes effect at a moment between its two ends."""
    return _history(draw, count, keys, processes, lambda state, past: state)


def stale(draw: Random, *, count: int = 7, keys: int = 3, processes: int = 4) -> list[Operation]:
    """A history in which some transactions read an older state."""
    return _history(
        draw, count, keys, processes, lambda state, past: draw.choice(past) if draw.random() < 0.4 else state
    )


State = dict[int, tuple[int, ...]]


def _history(
    draw: Random, count: int, keys: int, processes: int, view: Callable[[State, list[State]], State]
) -> list[Operation]:
    state: State = dict.fromkeys(KEYS[:keys], ())
    past = [dict(state)]
    operations: dict[int, Operation] = {}
    element = 0
    for index, process, after, _ in sorted(intervals(draw, count, processes), key=lambda interval: interval[3]):
        outcome = draw.choices((OK, FAIL, INFO), (8, 1, 1))[0]
        seen = dict(view(state, past))
        mops: list[Read | Append] = []
        for _ in range(draw.randint(1, 4)):
            key = draw.choice(KEYS[:keys])
            if draw.random() < 0.5:
                element += 1
                seen[key] += (element,)
                mops.append(Append(key, element))
            else:
                mops.append(Read(key, seen[key] if outcome == OK else None))
        if outcome == OK or (outcome == INFO and draw.random() < 0.5):
            for mop in mops:
                if isinstance(mop, Append):
                    state[mop.key] += (mop.element,)
            past.append(dict(state))
        operations[index] = Operation(index, process, outcome, after if outcome == OK else NEVER, tuple(mops))
    return [operations[index] for index in range(count)]


def intervals(draw: Random, count: int, processes: int) -> list[tuple[int, int, int, float]]:
    """For each operation: index, process, the first index invoked after its end, and the moment of its effect."""
    running: list[tuple[int, int, float]] = []
    ended: list[tuple[int, int, int, float]] = []
    clock, index = 0.0, 0
    free = list(range(processes))
    while len(ended) < count:
        clock += 1
        if index < count and free and (not running or draw.random() < 0.5):
            running.append((index, free.pop(draw.randrange(len(free))), clock))
            index += 1
        elif running:
            number, process, begin = running.pop(draw.randrange(len(running)))
            free.append(process)
            ended.append((number, process, index, draw.uniform(begin, clock)))
    return ended


def spoiled(draw: Random, operations: list[Operation]) -> list[Operation]:
    """The same history with some lies: lost appends, leaked aborts, and reads that are odd in some way."""
    result = list(operations)
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(result))
        result[at] = draw.choice((_wrong_outcome, _odd_read, _odd_read))(draw, result[at])
    if draw.random() < 0.1:
        result = _appended_twice(draw, result)
    return result


def _wrong_outcome(draw: Random, operation: Operation) -> Operation:
    """Reported otherwise than it went: an aborted append leaks, or a committed one is lost."""
    outcome = draw.choice((OK, FAIL, INFO))
    end = operation.after if operation.after != NEVER else operation.index + 1
    return replace(operation, outcome=outcome, after=end if outcome == OK else NEVER)


def _odd_read(draw: Random, operation: Operation) -> Operation:
    mops = list(operation.mops)
    places = [at for at, mop in enumerate(mops) if isinstance(mop, Read) and mop.elements is not None]
    if places:
        at = draw.choice(places)
        mop = mops[at]
        if isinstance(mop, Read):
            mops[at] = Read(mop.key, _odd_elements(draw, mop.elements or ()))
    return replace(operation, mops=tuple(mops))


def _odd_elements(draw: Random, elements: tuple[int, ...]) -> tuple[int, ...]:
    match draw.randrange(5):
        case 0:  # truncated
            return elements[: draw.randint(0, len(elements))]
        case 1 if len(elements) > 1:  # swapped
            one, other = draw.sample(range(len(elements)), 2)
            swapped = list(elements)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            return tuple(swapped)
        case 2 if elements:  # duplicated
            return (*elements, draw.choice(elements))
        case 3:  # a phantom
            return (*elements, 90 + draw.randrange(3))
        case _:  # an element of anybody
            return (*elements, draw.randint(1, 12))


def _appended_twice(draw: Random, operations: list[Operation]) -> list[Operation]:
    at = draw.randrange(len(operations))
    again = Append(draw.choice(KEYS), draw.randint(1, 6))
    return [
        replace(operation, mops=(*operation.mops, again)) if place == at else operation
        for place, operation in enumerate(operations)
    ]
