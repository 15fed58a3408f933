"""Small histories in which something is unclear: resets, values twice, failed or intermediate writes, mixed keys.

They obey no model in particular. Their transactions overlap, or not.
"""

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK

TROUBLES: Final = ("reset", "twice", "failed", "intermediate", "unwritten", "mixed", "none")
_OUTSIDE: Final = 90  # A value that nobody writes.


class _Part(NamedTuple):
    """A read, or the write of a value, of a key."""

    key: int
    value: int
    is_write: bool


def troubled(draw: Random, *, lists: bool, most: int = 4) -> list[Operation]:
    """Up to `most` transactions of up to four reads and writes on three keys, in up to three processes."""
    trouble, keys = draw.choice(TROUBLES), draw.randint(1, 3)
    counts: dict[int, int] = {}
    shapes = [list(_shape(draw, trouble, keys, counts, lists=lists)) for _ in range(draw.randint(2, most))]
    versions: dict[int, set[int]] = {}
    for part in (part for shape in shapes for part in shape if part.is_write and part.value != NOTHING):
        versions.setdefault(part.key, set()).add(part.value)
    order = {key: draw.sample(sorted(values), len(values)) for key, values in sorted(versions.items())}
    for key in range(keys) if trouble == "unwritten" else ():
        if draw.random() < 0.6:
            values = order.setdefault(key, [])
            values.insert(0 if draw.random() < 0.7 else draw.randint(0, len(values)), _OUTSIDE)
    return list(_operations(draw, trouble, shapes, order, lists=lists))


def _shape(draw: Random, trouble: str, keys: int, counts: dict[int, int], *, lists: bool) -> Iterator[_Part]:
    own = set[int]()
    for _ in range(draw.randint(1, 4)):
        key = draw.randrange(keys)
        if trouble != "intermediate" and key in own:
            continue
        if draw.random() < 0.5:
            yield _Part(key, NOTHING, is_write=False)
            continue
        own.add(key)
        counts[key] = value = counts.get(key, 0) + 1
        if trouble == "twice" and value > 1 and draw.random() < 0.4:
            value = draw.randint(1, value - 1)
        if trouble == "reset" and not lists and draw.random() < 0.4:
            value = NOTHING
        yield _Part(key, value, is_write=True)


def _operations(
    draw: Random, trouble: str, shapes: list[list[_Part]], order: dict[int, list[int]], *, lists: bool
) -> Iterator[Operation]:
    processes, overlaps = draw.randint(1, 3), draw.random() < 0.4
    busy: dict[int, int] = {}
    for number, shape in enumerate(shapes):
        failed = trouble == "failed" and draw.random() < 0.3
        outcome = INFO if draw.random() < 0.12 else FAIL if failed else OK
        firsts = [] if trouble == "mixed" else [NOTHING]
        mops = tuple(
            _mop(draw, part, order.get(part.key, []), is_list=_is_list(draw, trouble, lists=lists), firsts=firsts)
            if outcome == OK or part.is_write
            else Read(part.key, None)
            for part in shape
        )
        end = 2 * number + 1 + (2 * draw.choice([0, 0, 1, 2, 3]) if overlaps else 0)
        free = [process for process in range(processes) if busy.get(process, 0) <= 2 * number]
        process = draw.choice(free) if free and outcome != INFO else 10 + number
        busy[process] = end
        yield Operation(2 * number, process, outcome, NEVER if outcome == INFO else end, mops)


def _is_list(draw: Random, trouble: str, *, lists: bool) -> bool:
    return lists if trouble != "mixed" else draw.random() < (0.9 if lists else 0.1)


def _mop(draw: Random, part: _Part, versions: list[int], *, is_list: bool, firsts: list[int]) -> Mop:
    if part.is_write:
        return Append(part.key, part.value) if is_list else Store(part.key, part.value)
    if is_list:
        return Read(part.key, tuple(versions[: draw.randint(0, len(versions))]))
    values = [*firsts, *versions, *versions]
    return Load(part.key, draw.choice(values)) if values else Read(part.key, None)
