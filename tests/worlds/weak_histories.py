"""Small histories of lists or registers that obey no model in particular: each read shows what somebody wrote."""

from random import Random

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import INFO, NEVER, NOTHING, OK


def drawn(draw: Random, *, lists: bool, most: int = 5) -> list[Operation]:
    """Up to `most` transactions of up to four reads and writes on three keys, in up to three processes.

    In some histories transactions overlap. A list read after an own append mostly ends with it.
    """
    keys, writes = draw.randint(1, 3), dict[int, int]()
    shapes: list[list[tuple[str, int, int]]] = []
    for _ in range(draw.randint(2, most)):
        shape, own = [], dict[int, int]()
        for _ in range(draw.randint(1, 4)):
            key = draw.randrange(keys)
            if draw.random() < 0.5 and key not in own:
                shape.append(("read", key, 0))
            elif key not in own:
                own[key] = writes[key] = writes.get(key, 0) + 1
                shape.append(("write", key, own[key]))
            elif lists:
                shape.append(("again", key, own[key]))
        shapes.append(shape)
    order = {key: draw.sample(range(1, count + 1), count) for key, count in writes.items()}
    processes, overlaps = draw.randint(1, 3), draw.random() < 0.4
    busy: dict[int, int] = {}
    result = []
    for number, shape in enumerate(shapes):
        outcome = INFO if draw.random() < 0.15 else OK
        mops = tuple(_mop(draw, one, order, is_known=outcome == OK, lists=lists) for one in shape)
        end = 2 * number + 1 + (2 * draw.choice([0, 0, 1, 2, 3]) if overlaps else 0)
        free = [process for process in range(processes) if busy.get(process, 0) <= 2 * number]
        process = draw.choice(free) if free and outcome == OK else number + 10
        busy[process] = end
        result.append(Operation(2 * number, process, outcome, end if outcome == OK else NEVER, mops))
    return result


def _mop(draw: Random, shape: tuple[str, int, int], order: dict[int, list[int]], *, is_known: bool, lists: bool) -> Mop:
    kind, key, value = shape
    if kind == "write":
        return Append(key, value) if lists else Store(key, value)
    versions = order.get(key, [])
    if not is_known:
        return Read(key, None)
    if kind == "again" and draw.random() < 0.9:
        return Read(key, tuple(versions[: versions.index(value) + 1]))
    if lists:
        return Read(key, tuple(versions[: draw.randint(0, len(versions))]))
    return Load(key, draw.choice([NOTHING, *versions, *versions]))
