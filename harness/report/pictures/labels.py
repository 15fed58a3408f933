"""The texts beside the messages and events that decide a finding."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from harness.report.pictures.moments import Message, Moment

LABELS_MAX: Final = 6  # The most labels of a drawing; other decisive arrows are thick all the same.
LINE: Final = 15  # The height of a line of text in pixels.
TURN: Final = 0.55  # Right of this share of the width a text ends at its place, as it would leave the picture.


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a position; `is_end`: it ends there."""

    x: float
    y: float
    text: str
    is_end: bool = False


class Canvas(Protocol):
    """The coordinates of a drawing."""

    width: float

    def x(self, ns: int) -> float:
        """The horizontal position of a moment."""
        ...

    def y(self, name: str) -> float:
        """The height of a node's lane."""
        ...


def labels(canvas: Canvas, messages: Mapping[int, Message], moments: Iterable[Moment]) -> list[Label]:
    """The labels of a drawing: those of events above their lane, those of messages below, one below the other."""
    above, below = Counter[str](), Counter[str]()
    found = list[Label]()
    texts = dict.fromkeys((each.label, str(each.node), each.ns) for each in moments if each.label)
    for text, node, ns in texts:
        found.append(_label(canvas, ns, canvas.y(node) - LINE * (above[node] + 1) - 2, text))
        above[node] += 1
    known = {text for text, _, _ in texts}
    for message in messages.values():
        if message.label and message.label not in known:
            ends = [*message.handled_ns, *message.arrivals_ns]
            node, ns = (message.target, ends[0]) if ends else (message.source, message.sent_ns)
            found.append(_label(canvas, ns, canvas.y(node) + LINE * (below[node] + 1) + 2, message.label))
            below[node] += 1
    return found[:LABELS_MAX]


def _label(canvas: Canvas, ns: int, y: float, text: str) -> Label:
    x, is_end = canvas.x(ns), canvas.x(ns) > TURN * canvas.width
    return Label(x - 6 if is_end else x + 6, y, text, is_end)
