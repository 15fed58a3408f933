"""A cycle as a drawing: transactions one below the other, an arrow down for each edge, and the last one back up."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.history.names import Forms
from harness.core.record import Complete, Invoke, MicroOp
from harness.core.verdict import Step
from harness.report.evidence import mop_text
from harness.report.pictures.members import PLAIN, member

LINES_MAX: Final = 3
LINE: Final = 16
GAP: Final = 46
TEXT_MAX: Final = 36
NAME_MAX: Final = 30
MEANING: Final = {
    "ww": "overwrote, or appended after",
    "wr": "was read by",
    "rw": "was not seen by the read: it came later",
    "process": "same client, one after the other",
    "realtime": "had ended before the other began",
    "watermark": "rows that a watermark contains come before it, rows that it lacks come after it",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A transaction or a watermark."""

    name: str
    lines: tuple[str, ...]
    y: int
    height: int
    is_watermark: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from one box to the next; `is_back` for the one that closes the cycle."""

    relation: str
    sentence: str
    y1: int
    y2: int
    is_back: bool

    @property
    def middle(self) -> float:
        """The height of its label."""
        return (self.y1 + self.y2) / 2


@dataclass(frozen=True, slots=True)
class Drawing:
    """The whole drawing; `legend` explains the relations."""

    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    legend: tuple[tuple[str, str], ...]


def cycle_drawing(
    cycle: Sequence[Step], operations: Mapping[int, tuple[Invoke, Complete | None]], forms: Forms = PLAIN
) -> Drawing | None:
    """The drawing of a finding's cycle; None if it has none. `operations` holds the known ones, by index."""
    if not cycle:
        return None
    boxes: dict[str, Box] = {}
    y = 8
    names = list(dict.fromkeys(name for step in cycle for name in (step.source, step.target)))
    steps = {name: _mops(name, operations) for name in names}
    shared = Counter(key for mops in steps.values() for key in {str(mop.key) for mop in mops})
    for name in names:
        telling = [mop for mop in steps[name] if shared[str(mop.key)] > 1 or len(names) == 1]
        lines = _lines(name, telling, steps[name], forms)
        height = 28 + LINE * len(lines)
        boxes[name] = Box(_short(member(name, forms), NAME_MAX), lines, y, height, not _is_operation(name))
        y += height + GAP
    edges = []
    for step in cycle:
        source, target = boxes[step.source], boxes[step.target]
        is_back = target.y <= source.y
        y1 = source.y + source.height // 2 if is_back else source.y + source.height
        y2 = target.y + target.height // 2 if is_back else target.y
        edges.append(Edge(step.relation, step.sentence, y1, y2, is_back))
    relations = dict.fromkeys(step.relation for step in cycle)
    legend = tuple((each, MEANING.get(each, "comes before")) for each in relations)
    return Drawing(y - GAP + 8, tuple(boxes.values()), tuple(edges), legend)


def _mops(name: str, operations: Mapping[int, tuple[Invoke, Complete | None]]) -> Sequence[MicroOp]:
    """The micro-operations of a transaction of the cycle."""
    known = operations.get(int(name[1:])) if _is_operation(name) else None
    if known is None:
        return ()
    invoke, complete = known
    return (complete.mops if complete is not None else None) or invoke.mops or ()


def _lines(name: str, telling: Sequence[MicroOp], every: Sequence[MicroOp], forms: Forms) -> tuple[str, ...]:
    """The lines of a box. `telling` are the steps on keys that other transactions of the cycle use too."""
    if not _is_operation(name):
        return ("announced as complete",)
    most = LINES_MAX + (len(every) == LINES_MAX + 1)  # "And 1 more" would take as much room as that one.
    shown = [_short(mop_text(mop, forms)) for mop in (every if len(every) <= most else telling or every)[:most]]
    left = len(every) - len(shown)
    return (*shown, f"and {left} more") if left else tuple(shown)


def _is_operation(name: str) -> bool:
    """True for a transaction, named by its index.

    All other members are watermarks, which read what they declare complete.
    """
    return name.startswith("T") and name[1:].isdecimal()


def _short(text: str, most: int = TEXT_MAX) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
