"""Cycles of operations, and the names of their classes (checkers/words/anomalies.py) by the kinds of their steps."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Final

from checkers.graph.edges import (
    PROCESS,
    REALTIME,
    RW,
    RW_BY_PROCESS,
    RW_BY_REALTIME,
    WR,
    WW,
    WW_BY_PROCESS,
    WW_BY_REALTIME,
)

TIMED: Final = WW_BY_PROCESS | WW_BY_REALTIME | RW_BY_PROCESS | RW_BY_REALTIME
# The kinds of dependencies, strongest first.
DEPENDENCIES: Final = (WW, WR, WW_BY_PROCESS, WW_BY_REALTIME, RW, RW_BY_PROCESS, RW_BY_REALTIME)
# The kinds that count as ww, and as rw: without an order of time, with process order, and with real time.
WRITES: Final[Mapping[int, int]] = MappingProxyType(
    {0: WW, PROCESS: WW | WW_BY_PROCESS, REALTIME: WW | WW_BY_PROCESS | WW_BY_REALTIME}
)
MISSES: Final[Mapping[int, int]] = MappingProxyType(
    {0: RW, PROCESS: RW | RW_BY_PROCESS, REALTIME: RW | RW_BY_PROCESS | RW_BY_REALTIME}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleClass:
    """A class of cycles as data: the kinds of its dependencies, and the order of time that may close it.

    Every cycle of the class has an edge of a kind in `required`, and no two neighbouring edges of kinds in `apart`.
    With `is_single` it has exactly one edge of a kind in `required`.
    """

    name: str
    order: int  # 0, PROCESS or REALTIME
    kinds: int
    required: int
    apart: int = 0
    is_single: bool = False


def _classes() -> Iterator[CycleClass]:
    """All classes, in the order in which they are sought."""
    for suffix, order in (("", 0), ("-process", PROCESS), ("-realtime", REALTIME)):
        rw, plain = MISSES[order], WRITES[order] | WR
        yield CycleClass(name="G0" + suffix, order=order, kinds=WW, required=WW)
        yield CycleClass(name="G1c" + suffix, order=order, kinds=WW | WR, required=WR)
        yield CycleClass(name="G-single" + suffix, order=order, kinds=plain, required=rw, apart=rw, is_single=True)
        # By registers.order, rule 6, a timed edge may stand in for the rw.
        yield CycleClass(name="G-single" + suffix, order=order, kinds=plain, required=WRITES[order] & TIMED)
        yield CycleClass(name="G-nonadjacent" + suffix, order=order, kinds=plain, required=rw, apart=rw)
        yield CycleClass(name="G2-item" + suffix, order=order, kinds=plain | rw, required=rw)


CLASSES: Final = tuple(_classes())
_WITH_PROCESS: Final = PROCESS | WW_BY_PROCESS | RW_BY_PROCESS
_WITH_REALTIME: Final = REALTIME | WW_BY_REALTIME | RW_BY_REALTIME


@dataclass(frozen=True, slots=True, order=True)
class Cycle:
    """Operations, each of which must precede the next and the last one the first; kinds[i] (WW, WR, ...) says why."""

    ops: tuple[int, ...]
    kinds: tuple[int, ...]


def kinds_of(names: Container[str]) -> tuple[int, bool]:
    """The kinds of dependencies that cycles of those classes consist of; and True if an order of time may close one."""
    chosen = [each for each in CLASSES if each.name in names]
    return reduce(or_, (each.kinds | each.required for each in chosen), 0), any(each.order for each in chosen)


def name(cycle: Cycle) -> str:
    """The class of a cycle, by its steps.

    By rule 6 of checkers/transactions/registers/order.py a cycle with a timed step is at least G-single.
    """
    kinds = cycle.kinds
    missed = [_is_miss(kind) for kind in kinds]
    whole = reduce(or_, kinds)
    suffix = "-realtime" if whole & _WITH_REALTIME else "-process" if whole & _WITH_PROCESS else ""
    if not any(missed) and whole & TIMED:
        return "G-single" + suffix
    if not any(missed):
        return ("G1c" if WR in kinds else "G0") + suffix
    if sum(missed) == 1:
        return "G-single" + suffix
    return ("G2-item" if _has_adjacent(missed) else "G-nonadjacent") + suffix


def _is_miss(kind: int) -> bool:
    return kind & MISSES[REALTIME] != 0


def _has_adjacent(missed: Sequence[bool]) -> bool:
    return any(one and other for one, other in zip(missed, [*missed[1:], missed[0]], strict=True))


def from_least(ops: list[int], kinds: list[int]) -> Cycle:
    """The cycle in its normal form: from its least operation on, with successive steps of order merged into one."""
    first = next(at for at, kind in enumerate(kinds) if kind in DEPENDENCIES)
    ops, kinds = ops[first:] + ops[:first], kinds[first:] + kinds[:first]
    kept, steps = list[int](), list[int]()
    for op, kind in zip(ops, kinds, strict=True):
        if steps and steps[-1] not in DEPENDENCIES and kind not in DEPENDENCIES:
            steps[-1] = max(steps[-1], kind)
        else:
            kept.append(op)
            steps.append(kind)
    at = kept.index(min(kept))
    return Cycle(tuple(kept[at:] + kept[:at]), tuple(steps[at:] + steps[:at]))


def strongest(kinds: int) -> int:
    """The strongest of those dependencies, 0 for none."""
    return next((kind for kind in DEPENDENCIES if kinds & kind), 0)
