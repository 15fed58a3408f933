"""The parts of plots: paths with the style of their class, and axis marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from harness.report.pictures.scale import WIDTH, Tick, amount

HEIGHT: Final = 84
LINES_MAX: Final = 4  # The most subscribers with a line style of their own; the others share one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A path, drawn in the style of its class."""

    kind: str
    name: str
    d: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One plot. `note` explains its smallest mark.

    `reach` has, for each of several columns of equal width, the highest and lowest point drawn there: zooming into such
    a plot stretches its height as well.
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
    """The SVG path that steps through heights between 0 and 1, one per column; NaN leaves a gap."""
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
    """Ticks at zero, half of `top`, and `top`, from below."""
    return tuple(Tick(HEIGHT * (1 - part / 2), amount(top * part / 2)) for part in range(3))
