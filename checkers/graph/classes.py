"""Classes of cycles as data, and the names of cycles by the kinds of their steps (checkers/words/anomalies.py)."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from checkers.graph.edges import (
    OUT,
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
from checkers.graph.paths import ANY, Rule
from checkers.words.transactional import ORDERS

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
G0, G1C, SINGLE, NONADJACENT, G2 = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")
SUFFIXES: Final = ORDERS


class CycleClass(Struct, frozen=True, kw_only=True):
    """A class of cycles as data: their kinds of steps, the order of time that may close them, and a rule.

    Every cycle of the class has a step of a kind in `required`, and one of a kind in `needed`: if none of these lies on
    a closed path under the rule, the class is absent.
    """

    name: str
    order: int  # Kinds of steps of time: PROCESS, REALTIME, or 0.
    kinds: int
    required: int
    rule: Rule = ANY
    needed: int = 0


def only_one(kinds: int) -> Rule:
    """The rule of closed paths with exactly one step of those kinds."""
    return Rule(apart=kinds, least=((kinds, 1),), once=kinds)


def _classes() -> Iterator[CycleClass]:
    """All classes, in the order in which they are sought."""
    for suffix, order in zip(SUFFIXES, (0, PROCESS, REALTIME), strict=True):
        rw, plain = MISSES[order], WRITES[order] | WR
        yield CycleClass(name=G0 + suffix, order=order, kinds=WW, required=WW)
        yield CycleClass(name=G1C + suffix, order=order, kinds=WW | WR, required=WR)
        yield CycleClass(name=SINGLE + suffix, order=order, kinds=plain | rw, required=rw, rule=only_one(rw))
        # By registers.order, rule 6, a timed edge may stand in for the rw.
        yield CycleClass(name=SINGLE + suffix, order=order, kinds=plain, required=WRITES[order] & TIMED)
        yield CycleClass(name=NONADJACENT + suffix, order=order, kinds=plain | rw, required=rw, rule=Rule(apart=rw))
        yield CycleClass(name=G2 + suffix, order=order, kinds=plain | rw, required=rw)


CLASSES: Final = tuple(_classes())
_WITH_PROCESS: Final = PROCESS | WW_BY_PROCESS | RW_BY_PROCESS
_WITH_REALTIME: Final = REALTIME | WW_BY_REALTIME | RW_BY_REALTIME


class Cycle(Struct, frozen=True, order=True):
    """Operations, each of which must precede the next and the last one the first; kinds[i] (WW, WR, ...) says why."""

    ops: tuple[int, ...]
    kinds: tuple[int, ...]


def kinds_of(names: Container[str], classes: Sequence[CycleClass] = CLASSES) -> tuple[int, bool]:
    """The kinds of steps that cycles of those classes consist of; and True if an order of time may close one."""
    chosen = [each for each in classes if each.name in names]
    return reduce(or_, (each.kinds for each in chosen), 0), any(each.order for each in chosen)


def name(kinds: Sequence[int]) -> tuple[str, str]:
    """The class of a cycle with operations, by the kinds of its steps, and its suffix for the order of time.

    A step out of a watermark counts as an rw if it is next to one. By rule 6 of
    checkers/transactions/registers/order.py a cycle with a timed step is at least G-single.
    """
    whole, count = reduce(or_, kinds), sum(kind & MISSES[REALTIME] != 0 for kind in kinds)
    suffix = "-realtime" if whole & _WITH_REALTIME else "-process" if whole & _WITH_PROCESS else ""
    if not count:
        return SINGLE if whole & TIMED else G1C if WR in kinds else G0, suffix
    missed = [kind & (MISSES[REALTIME] | OUT) != 0 for kind in kinds]
    if any(one and other for one, other in pairwise([*missed, missed[0]])):
        return G2, suffix
    return SINGLE if count == 1 else NONADJACENT, suffix


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
