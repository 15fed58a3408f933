"""Cycles of operations, and the names of their classes (checkers/words/anomalies.py) by the kinds of their steps."""

from collections.abc import Mapping, Sequence
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
_WITH_PROCESS: Final = PROCESS | WW_BY_PROCESS | RW_BY_PROCESS
_WITH_REALTIME: Final = REALTIME | WW_BY_REALTIME | RW_BY_REALTIME


@dataclass(frozen=True, slots=True, order=True)
class Cycle:
    """Operations, each of which must precede the next and the last the first, and the reasons (WW, WR, RW, ...)."""

    ops: tuple[int, ...]
    kinds: tuple[int, ...]


def name(cycle: Cycle) -> str:
    """The class of a cycle, by its steps. By register_order, rule 6, a cycle with a timed step is at least G-single."""
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


def simple(places: list[int], kinds: list[int]) -> tuple[list[int], list[int]]:
    """A cycle without repeated places, cut out of a closed walk; of two, the one without two rw in a row.

    An alternating walk may visit an operation twice, once by rw and once not. It then splits into two cycles there, and
    one of the two begins and ends there without rw.
    """
    while len(set(places)) < len(places):
        last = {place: at for at, place in enumerate(places)}
        at = next(at for at, place in enumerate(places) if last[place] > at)
        again = last[places[at]]
        inner = places[at:again], kinds[at:again]
        outer = places[again:] + places[:at], kinds[again:] + kinds[:at]
        places, kinds = outer if _has_adjacent(list(map(_is_miss, inner[1]))) else inner
    return places, kinds


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
