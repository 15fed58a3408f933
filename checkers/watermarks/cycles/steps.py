"""Steps of a graph with watermarks, and the names of its cycles.

A *step* leads from one node to another: a client's dependency, an order of time, into a watermark, out of one, or along
a chain. Steps along chains are passed and not counted. An out edge counts as an rw where two in a row are forbidden,
and not in the number of rw. The classes, least first, are CLASSES; those of n rw edges of clients also exist with the
order of processes and of real time. A cycle of one class shows a weaker stream than the later classes do.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from checkers.graph.classes import G0, G1C, G2, NONADJACENT, SINGLE, SUFFIXES, CycleClass, name
from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import UNORDERED, Rule
from harness.core.columns import Int64s

READS: Final = -2  # Chains of reads that share a node with watermarks are numbered from here down.
THROUGH: Final = IN | OUT | CHAIN
ORDER, INTERMEDIATE, TORN, SPLIT, FORK = ("order", "intermediate", "torn", "split", "fork")
OF_ONE: Final = (INTERMEDIATE, TORN, SPLIT)  # Classes of cycles of one transaction.
_BASES: Final = (ORDER, *OF_ONE, FORK, G0, G1C, SINGLE, NONADJACENT, G2)
_MARK: Final = "-watermark"


class Step(Struct, frozen=True):
    """One edge. `chain` is set for a step through watermarks, `key` and `version` for one into or out of one; else -1.

    `marks` are the watermarks that it passes, as members of their nodes: an out step begins where an in step leads.
    """

    source: int
    target: int
    kind: int
    chain: int = -1
    key: int = -1
    version: int = -1
    row: int = -1
    marks: tuple[int, ...] = ()
    place: int = -1  # of the watermark, in its chain


class Loop(Struct, frozen=True):
    """A closed path of steps, with its class."""

    anomaly: str
    steps: tuple[Step, ...]

    def chains(self) -> int:
        """The number of chains that the path uses."""
        return len({step.chain for step in self.steps if step.kind & THROUGH})

    def places(self) -> list[tuple[int, int, int]]:
        """A sort key that distinguishes cycles of the same length."""
        return [(step.source, step.target, step.kind) for step in self.steps]


class Component(Struct, frozen=True):
    """A strongly connected component: nodes 0 to n - 1 in the order of their numbers, and the steps between them.

    `number` and `end` are those of checkers/watermarks/numbering.py; `process` is UNORDERED for nodes outside every
    process order.
    """

    number: Int64s
    end: Int64s
    process: Int64s
    is_mark: Sequence[bool]
    steps: tuple[Step, ...]

    def is_ordered(self, node: int) -> bool:
        """True for a node that a process orders."""
        return bool(self.process[node] != UNORDERED)


def _classes() -> Iterator[CycleClass]:
    """All classes, least first, those without an order of time before all others."""
    yield CycleClass(name=ORDER + _MARK, order=0, kinds=CHAIN, required=CHAIN, needed=CHAIN)
    for base in OF_ONE:
        yield CycleClass(name=base + _MARK, order=0, kinds=THROUGH, required=IN)
    yield CycleClass(name=FORK + _MARK, order=0, kinds=THROUGH, required=IN, rule=Rule(least=((IN, 2),)), needed=IN)
    enters, apart = (IN, 1), RW | OUT
    of_rw = {
        SINGLE: Rule(apart=apart, least=(enters, (RW, 1)), once=RW),
        NONADJACENT: Rule(apart=apart, least=(enters, (RW, 2))),
        G2: Rule(least=(enters, (RW, 1))),
    }
    for suffix, order, time in zip(SUFFIXES, (0, PROCESS, PROCESS | REALTIME), (0, PROCESS, REALTIME), strict=True):
        for base, kinds in ((G0, WW), (G1C, WW | WR)):
            yield CycleClass(
                name=base + _MARK + suffix,
                order=order,
                kinds=THROUGH | kinds,
                required=IN | kinds,
                rule=Rule(least=(enters,)),
                needed=time or (WW if base == G0 else WR),
            )
        for base, rule in of_rw.items():
            yield CycleClass(
                name=base + _MARK + suffix,
                order=order,
                kinds=THROUGH | WW | WR | RW,
                required=RW,
                rule=rule,
                needed=time or RW,
            )


CLASSES: Final = tuple(_classes())
NAMES: Final = tuple(each.name for each in CLASSES)


def base_of(name: str) -> str:
    """The name of a class without what all its classes share, and without the order of time."""
    return name.partition(_MARK)[0]


def level_of(name: str) -> tuple[int, int]:
    """The rank of a class without its order of time, and of that order among SUFFIXES."""
    base, _, suffix = name.partition(_MARK)
    return _BASES.index(base), SUFFIXES.index(suffix)


def is_wider(name: str, other: str) -> bool:
    """True if `name` is `other` or a later class, and needs as much of the order of time.

    A later class shows less of a fault, but is not always present beside an earlier one: see checkers/words/models.py.
    """
    (rank, order), (other_rank, other_order) = level_of(name), level_of(other)
    return rank >= other_rank and order >= other_order


def name_of(steps: Sequence[Step]) -> str | None:
    """The class of a cycle; None for a cycle without a watermark, such as one of reads alone."""
    if not any(step.kind & THROUGH and step.chain > READS for step in steps):
        return None
    entries = [step for step in steps if step.kind == IN]
    if any(not step.kind & THROUGH for step in steps):
        base, suffix = name([step.kind for step in steps])
        return base + _MARK + suffix
    return (_alone(steps, entries) if entries else ORDER) + _MARK


def _alone(steps: Sequence[Step], entries: Sequence[Step]) -> str:
    if len(entries) > 1:
        return FORK
    last = next(step for step in steps if step.kind == OUT)
    if len({step.chain for step in steps}) > 1:
        return SPLIT
    return INTERMEDIATE if entries[0].key == last.key else TORN
