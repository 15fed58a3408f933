"""Steps of a graph with watermarks, and the names of its cycles.

A *step* leads from one node to another: a client's dependency, an order of time, into a watermark, out of one, or along
a chain. Steps along chains are passed and not counted. An out edge counts as an rw where two in a row are forbidden,
and not in the number of rw. The classes, least first, are CLASSES; those of n rw edges of clients also exist with the
order of processes and of real time. A cycle of one class shows a weaker stream than the later classes do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final

from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import UNORDERED, Rule
from harness.core.columns import Int64s

READS: Final = -2  # Chains of reads that share a node with watermarks are numbered from here down.
THROUGH: Final = IN | OUT | CHAIN
ORDER, INTERMEDIATE, TORN, SPLIT, FORK = ("order", "intermediate", "torn", "split", "fork")
G0, G1C, SINGLE, NONADJACENT, G2 = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")
ALONE: Final = (ORDER, INTERMEDIATE, TORN, SPLIT, FORK)
CLASSES: Final = (*ALONE, G0, G1C, SINGLE, NONADJACENT, G2)
SUFFIXES: Final = ("", "-process", "-realtime")
NAMES: Final = tuple(
    f"{name}-watermark{suffix}" for suffix in SUFFIXES for name in CLASSES if not suffix or name not in ALONE
)


@dataclass(frozen=True, slots=True)
class Step:
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


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed path of steps, with its class."""

    anomaly: str
    steps: tuple[Step, ...]

    def chains(self) -> int:
        """The number of chains that the path uses."""
        return len({step.chain for step in self.steps if step.kind & THROUGH})

    def places(self) -> list[tuple[int, int, int]]:
        """A sort key that distinguishes cycles of the same length."""
        return [(step.source, step.target, step.kind) for step in self.steps]


@dataclass(frozen=True, slots=True)
class Component:
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


@dataclass(frozen=True, slots=True)
class CycleClass:
    """A class of cycles as data: the kinds of its steps without those of time, the required kinds, and a rule."""

    kinds: int
    required: int
    rule: Rule


_APART: Final = RW | OUT
_ENTERS: Final = (IN, 1)
# The classes of cycles of several transactions, or of none.
SEARCHED: Final = {
    ORDER: CycleClass(CHAIN, CHAIN, Rule()),
    FORK: CycleClass(THROUGH, IN, Rule(least=((IN, 2),))),
    G0: CycleClass(THROUGH | WW, IN | WW, Rule(least=(_ENTERS,))),
    G1C: CycleClass(THROUGH | WW | WR, IN | WW | WR, Rule(least=(_ENTERS,))),
    SINGLE: CycleClass(THROUGH | WW | WR | RW, RW, Rule(apart=_APART, least=(_ENTERS, (RW, 1)), once=RW)),
    NONADJACENT: CycleClass(THROUGH | WW | WR | RW, RW, Rule(apart=_APART, least=(_ENTERS, (RW, 2)))),
    G2: CycleClass(THROUGH | WW | WR | RW, RW, Rule(least=(_ENTERS, (RW, 1)))),
}


def kinds_of(names: Iterable[str]) -> int:
    """The kinds of dependencies between operations that cycles of those classes may have."""
    bases = (name.partition("-watermark")[0] for name in names)
    return reduce(or_, (SEARCHED[base].kinds for base in bases if base in SEARCHED), 0) & (WW | WR | RW)


def needed_by(name: str) -> int:
    """The kinds of which every cycle of a class of many transactions has a step."""
    base, _, suffix = name.partition("-watermark")
    times = {"-process": PROCESS, "-realtime": REALTIME}
    return times.get(suffix) or {ORDER: CHAIN, FORK: IN, G0: WW, G1C: WR}.get(base, RW)


def level_of(name: str) -> tuple[int, int]:
    """The rank of a class among CLASSES, and of its order of time among SUFFIXES."""
    base, _, suffix = name.partition("-watermark")
    return CLASSES.index(base), SUFFIXES.index(suffix)


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
    clients = [step for step in steps if not step.kind & THROUGH]
    kinds = [step.kind for step in clients]
    suffix = "-realtime" if REALTIME in kinds else "-process" if PROCESS in kinds else ""
    entries = [step for step in steps if step.kind == IN]
    if not entries and not clients:
        return ORDER + "-watermark"
    if not clients:
        return _alone(steps, entries) + "-watermark"
    if RW not in kinds:
        return (G1C if WR in kinds else G0) + "-watermark" + suffix
    is_adjacent = any(one.kind in (RW, OUT) and two.kind in (RW, OUT) for one, two in pairwise([*steps, steps[0]]))
    if is_adjacent:
        return G2 + "-watermark" + suffix
    return (SINGLE if kinds.count(RW) == 1 else NONADJACENT) + "-watermark" + suffix


def _alone(steps: Sequence[Step], entries: Sequence[Step]) -> str:
    if len(entries) > 1:
        return FORK
    last = next(step for step in steps if step.kind == OUT)
    if len({step.chain for step in steps}) > 1:
        return SPLIT
    return INTERMEDIATE if entries[0].key == last.key else TORN
