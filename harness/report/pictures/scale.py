"""Scales of drawings, and the format of times and numbers on them.

Drawings are SVG whose width is that of the page: time runs from 0 to WIDTH inside a nested viewBox that is stretched,
while texts are placed outside it at a percentage, so that they keep their size on a narrow screen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import msgspec

from harness.core.record import Json
from harness.report.screen import visible

WIDTH: Final = 1000
SECOND: Final = 1_000_000_000
STEPS_MAX_NS: Final = 100_000  # A shorter history has no times: "nanoseconds" are the order of its records.
SHORT: Final = 60


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its position (a percentage, or a height), and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """A stretch of a run's time. `is_order`: the history has no times, only an order."""

    low_ns: int
    high_ns: int
    is_order: bool = False

    @property
    def span_ns(self) -> int:
        """The length of the stretch in ns; never 0."""
        return max(1, self.high_ns - self.low_ns)

    def x(self, ns: float) -> float:
        """The position of a time between 0 and WIDTH; times outside are put at the edge."""
        return round(min(max((ns - self.low_ns) / self.span_ns, 0.0), 1.0) * WIDTH, 2)

    def percent(self, ns: float) -> float:
        """The position of a time in percent."""
        return round(self.x(ns) * 100 / WIDTH, 3)

    def ticks(self, most: int = 7) -> list[Tick]:
        """Round times along the axis."""
        step = next(step for step in _round_steps() if self.span_ns / step <= most)
        first = -(-self.low_ns // step) * step
        return [Tick(self.percent(ns), self._text(ns, step)) for ns in range(first, self.high_ns + 1, step)]

    def _text(self, ns: int, step: int) -> str:
        if self.is_order:
            return str(ns)
        decimals = max(0, 9 - (len(str(step)) - 1))
        return f"{ns / SECOND:.{decimals}f}"


def _round_steps() -> Iterator[int]:
    for power in count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


def moment(ns: int, *, is_order: bool = False) -> str:
    """A time since the start of the run, as text."""
    return f"step {ns}" if is_order else f"{ns / SECOND:.4f} s"


def duration(ns: float) -> str:
    """A duration as text, in a suitable unit."""
    for unit, size in (("s", SECOND), ("ms", 1_000_000), ("µs", 1_000)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def amount(value: float) -> str:
    """A number at an axis as text, in millions from a million on."""
    return f"{value / 1e6:,.10g} M" if value >= 1e6 else f"{value:,.10g}"


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... at or above a number; 1 for zero."""
    if value <= 0:
        return 1.0
    power = 1e-9
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= value * (1 - 1e-9):
                return step
        power *= 10


def short(value: Json, most: int = SHORT) -> str:
    """A value in a few characters: the end of a list, the beginning of a text."""
    if isinstance(value, list) and len(value) > 4:
        return f"[… {', '.join(short(each, 12) for each in value[-3:])}]"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return visible(text) if len(text) <= most else f"{visible(text[:most])}… ({len(text):,} characters)"
