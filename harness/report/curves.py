"""What plots consist of: paths with the style of their class, and the marks beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from harness.report.scale import WIDTH, Tick

HEIGHT: Final = 96
LINES_MAX: Final = 4  # Subscribers with a line of their own; the others share one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A path with the style of its class."""

    kind: str
    name: str
    d: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One plot. `note` says what its smallest mark stands for.

    `reach` is, for each of so many columns of one width, the highest and the lowest place that is drawn there: a plot
    that has it is stretched in height as well when a part of the time is looked at.
    """

    title: str
    height: int
    curves: tuple[Curve, ...]
    ticks: tuple[Tick, ...]
    note: str
    legend: tuple[tuple[str, str], ...] = ()
    reach: tuple[Sequence[float], Sequence[float]] | None = None
    top: int = 0  # The number at the top of such a plot.


def line(heights: np.ndarray, height: int = HEIGHT) -> Markup:
    """Steps through heights between 0 and 1, one for each column; what is not a number is left out."""
    wide = WIDTH / len(heights)
    parts, is_down = list[str](), False
    for place, y in enumerate((height * (1 - heights)).tolist()):
        if y != y:  # noqa: PLR0124  Not a number.
            is_down = False
            continue
        parts.append(f"V{y:.1f}" if is_down else f"M{place * wide:.1f} {y:.1f}")
        parts.append(f"H{(place + 1) * wide:.1f}")
        is_down = True
    return Markup("".join(parts))  # noqa: S704  Numbers only.


def linear_ticks(top: float) -> tuple[Tick, ...]:
    """Nothing, half of it and all of it, from below."""
    return tuple(Tick(HEIGHT * (1 - part / 2), f"{top * part / 2:g}") for part in range(3))
