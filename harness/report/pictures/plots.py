"""The plots of a whole run on one axis of time: faults, rate, latency, watermarks. As shapes, from arrays.

No operation is left out: each counts in a column of the rate and in a dot of the latency, however many there are. The
page explains columns and dots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from markupsafe import Markup

from harness.core.columns import FAIL, INFO, NEVER, OK, Bools, Int64s
from harness.core.record import Json
from harness.core.wording import counted
from harness.record.exposure import FOREVER, Window
from harness.report.pictures.curves import HEIGHT, LINES_MAX, Curve, Plot, line, linear_ticks
from harness.report.pictures.scale import SECOND, WIDTH, Tick, TimeAxis, amount, duration, moment, nice_ceiling
from harness.report.pictures.stairs import Broken, lag_quantiles, staircases
from harness.report.planned import Planned
from harness.report.series import Series, lag_ns
from nemesis.registry import PACKAGES

OUTCOMES: Final = (("ok", OK), ("fail", FAIL), ("unknown", INFO))
STRIP_ROW: Final = 26  # Heights in the strip of faults: a name, and the bars below it.
COLUMNS: Final = (24, 240)  # The least and the greatest number of columns of the rate.
CELLS: Final = (500, 48)  # The numbers of dots of the latency: across, and upwards.
SINGLE_MAX: Final = 60  # Of so few operations each has a large dot.
LONG_START_S: Final = 1.0  # A start that took longer is mentioned.
GREY: Final = "#8d96a0"
NOTHING_BROKEN: Final[Broken] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A fault in the drawing: its position, and its title."""

    kind: int  # Index into the colours.
    x: float
    width: float
    title: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All plots of a run. `hover` holds the numbers that the script shows for a moment."""

    axis: TimeAxis
    kinds: tuple[str, ...]
    bands: tuple[Band, ...]
    planned: tuple[Band, ...]
    plots: tuple[Plot, ...]
    ticks: tuple[Tick, ...]
    phases: tuple[tuple[float, str], ...]
    views: tuple[tuple[float, str], ...]
    note: str
    hover: dict[str, Json] = field(default_factory=dict)


def overview(
    series: Series, *, is_closed: bool, planned: Sequence[Planned] = (), broken: Broken = NOTHING_BROKEN
) -> Overview:
    """The plots of a run. Planned faults are drawn behind actual ones, and events that show findings are marked."""
    axis = TimeAxis(
        low_ns=series.load_begin_ns,
        high_ns=series.drawn_end_ns,
        is_order=series.is_order,
    )
    kinds = tuple(dict.fromkeys([*fault_kinds(series.windows), *(step.kind for step in planned)]))
    size = len(series.outcome)
    columns = int(np.clip(size // 15, *COLUMNS))
    edges = np.linspace(axis.low_ns, axis.high_ns, columns + 1).astype(np.int64)
    plots, hover = [], dict[str, Json]()
    if size and not axis.is_order:
        plots += [_rate(series, edges, hover), *_latency(series, axis, edges, hover)]
    lagging = {name: marks for name, marks in series.announced.items() if marks}
    if lagging and len(series.commit_position) and not axis.is_order:
        plots.append(_lag(series, edges, hover, is_closed=is_closed))
        if len(lagging) > LINES_MAX:
            plots.append(lag_quantiles(series, edges, hover, is_closed=is_closed))
    if lagging and not axis.is_order:
        plots += staircases(series, broken, hover, edges)
    return Overview(
        axis=axis,
        kinds=kinds,
        bands=tuple(band(each, axis, kinds) for each in series.windows),
        planned=tuple(_planned_band(each, axis, kinds) for each in planned),
        plots=tuple(plots),
        ticks=tuple(axis.ticks()),
        phases=tuple((axis.percent(ns), name) for name, ns in series.phases.items() if name in ("healing", "final")),
        views=_views(series, axis),
        note=_note(series, duration(axis.span_ns / columns), sum(step.begin_ns > axis.high_ns for step in planned)),
        hover={"columns": columns, "span_s": axis.span_ns / SECOND, "values": hover},
    )


def _note(series: Series, column: str, later: int) -> str:
    """The note under a plot: what a column is, what is not drawn, and the number of faults planned after the end."""
    drawn = int(np.count_nonzero(series.invoke_ns <= series.drawn_end_ns))
    before_s = series.load_begin_ns / SECOND
    rest = len(series.invoke_ns) - drawn
    every = {1: "the one operation is", 2: "both operations are"}.get(drawn, f"all {drawn:,} operations are")
    notes = [f"Each column is {column} wide; {every} shown."] if drawn else []
    if before_s >= LONG_START_S:
        notes.append(f"The axis begins with the load; starting took {before_s:.1f} s.")
    if series.drawn_end_ns < series.end_ns:
        end = "the load; healing" if series.drawn_end_ns <= series.load_end_ns else "the last finding; more of healing"
        what = f" and {counted(rest, 'final read')}" if rest else ""
        notes.append(f"The axis ends with {end}{what} followed, until {series.end_ns / SECOND:.1f} s.")
    if later:
        notes.append(f"{later} fault{'s were' if later > 1 else ' was'} planned for later than the run lasted.")
    return " ".join(notes)


def _views(series: Series, axis: TimeAxis) -> tuple[tuple[float, str], ...]:
    """Lines for the changes of membership. Changes at the same place share a line, whose title names all."""
    places: dict[float, list[str]] = {}
    for ns, text in series.views:
        if axis.low_ns <= ns <= axis.high_ns:
            places.setdefault(round(axis.percent(ns), 1), []).append(f"{text} at {moment(ns)}")
    return tuple((percent, "; ".join(texts)) for percent, texts in places.items())


def fault_kinds(windows: Iterable[Window]) -> tuple[str, ...]:
    """The kinds of fault, in order of first appearance."""
    return tuple(dict.fromkeys(window.kind for window in windows))


def fault_colours(kinds: Iterable[str]) -> list[tuple[str, str]]:
    """The colours of the kinds, on light and on dark background."""
    colours = [PACKAGES[kind].colour if kind in PACKAGES else GREY for kind in kinds]
    return [(colour, _lighter(colour)) for colour in colours]


def _lighter(colour: str) -> str:
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{part + (255 - part) * 2 // 5:02x}" for part in parts)


def band(window: Window, axis: TimeAxis, kinds: Sequence[str]) -> Band:
    """The band of a fault in a drawing."""
    end_ns = min(window.end_ns, axis.high_ns)
    until = "the end, for it was never healed" if window.end_ns == FOREVER else moment(window.end_ns)
    effect = "effect not measured" if window.effect is None else window.note or f"effect {window.effect}"
    x = axis.x(window.begin_ns)
    return Band(
        kind=kinds.index(window.kind),
        x=x,
        width=max(0.5, round(axis.x(end_ns) - x, 2)),
        title=f"{window.kind} of {window.targets}: {moment(window.begin_ns)} to {until}; {effect}",
        begin_ns=window.begin_ns,
        end_ns=end_ns,
    )


def _planned_band(step: Planned, axis: TimeAxis, kinds: Sequence[str]) -> Band:
    x = axis.x(step.begin_ns)
    return Band(
        kind=kinds.index(step.kind),
        x=x,
        width=max(0.5, round(axis.x(step.end_ns) - x, 2)),
        title=step.title,
        begin_ns=step.begin_ns,
        end_ns=step.end_ns,
    )


def _rate(series: Series, edges: Int64s, hover: dict[str, Json]) -> Plot:
    ended_ns = series.ended_ns
    seconds = float(edges[-1] - edges[0]) / SECOND / (len(edges) - 1)
    rates = {name: np.histogram(ended_ns[series.outcome == code], edges)[0] / seconds for name, code in OUTCOMES}
    top = nice_ceiling(max(float(rate.max()) for rate in rates.values()))
    hover |= {f"{name}/s": [round(float(each), 1) for each in rate] for name, rate in rates.items()}
    curves = [Curve(kind=f"line {name}", name=name, d=line(rate / top)) for name, rate in rates.items() if rate.any()]
    return Plot(
        title="Operations a second",
        height=HEIGHT,
        curves=tuple(curves),
        ticks=linear_ticks(top),
        note="by the time of their answer",
        legend=tuple((curve.kind, curve.name) for curve in curves),
    )


def _latency(series: Series, axis: TimeAxis, edges: Int64s, hover: dict[str, Json]) -> list[Plot]:
    is_done = between(series.complete_ns, axis.low_ns, axis.high_ns)
    if not is_done.any():
        return []
    ended_ns, outcome = series.complete_ns[is_done], series.outcome[is_done]
    took_ms = np.maximum(ended_ns - series.invoke_ns[is_done], 1_000) / 1e6
    low, high = int(np.floor(np.log10(took_ms.min()))), int(np.ceil(np.log10(took_ms.max())))
    high = max(high, low + 1)
    height = (np.log10(took_ms) - low) / (high - low)
    curves = list[Curve]()
    for name, code in OUTCOMES:
        curves += _dots((ended_ns[outcome == code] - axis.low_ns) / axis.span_ns, height[outcome == code], name)
    hover["median ms"], hover["slowest ms"] = _by_column(ended_ns, took_ms, edges)
    return [
        Plot(
            title="Latency, ms",
            height=HEIGHT,
            curves=tuple(curves),
            ticks=tuple(
                Tick(HEIGHT * (1 - (power - low) / (high - low)), amount(10.0**power)) for power in range(low, high + 1)
            ),
            note=f"one dot: operations within {duration(axis.span_ns / CELLS[0])} of similar latency, stronger for 5 "
            "and for 50 of them",
            legend=tuple((f"dot {name}", name) for name, code in OUTCOMES if (outcome == code).any()),
        )
    ]


def _dots(across: np.ndarray, height: np.ndarray, name: str) -> Iterable[Curve]:
    """The non-empty cells, as dots of three strengths."""
    wide, high = CELLS
    cells = np.minimum((across * wide).astype(np.int64), wide - 1) * high
    cells += np.clip((height * high).astype(np.int64), 0, high - 1)
    found, counts = np.unique(cells, return_counts=True)
    few = "single" if len(across) <= SINGLE_MAX else "few"
    for strength, low, above in ((few, 1, 5), ("some", 5, 50), ("many", 50, NEVER)):
        chosen = found[(counts >= low) & (counts < above)]
        x = (chosen // high + 0.5) * WIDTH / wide
        y = HEIGHT - (chosen % high + 0.5) * HEIGHT / high
        if len(chosen):
            d = "".join(f"M{a:g} {b:g}h0" for a, b in zip(x.tolist(), y.tolist(), strict=True))
            yield Curve(kind=f"dot {name} {strength}", name=name, d=Markup(d))  # noqa: S704  Numbers only.


def _by_column(ended_ns: Int64s, took_ms: np.ndarray, edges: Int64s) -> tuple[list[Json], list[Json]]:
    """The median and the greatest latency of each column; None if nothing ended there."""
    place = np.clip(np.searchsorted(edges, ended_ns, "right") - 1, 0, len(edges) - 2)
    order = np.lexsort((took_ms, place))
    starts = np.searchsorted(place[order], np.arange(len(edges)))
    median, slowest = list[Json](), list[Json]()
    for first, after in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        median.append(round(float(took_ms[order[(first + after) // 2]]), 2) if after > first else None)
        slowest.append(round(float(took_ms[order[after - 1]]), 2) if after > first else None)
    return median, slowest


def _lag(series: Series, edges: Int64s, hover: dict[str, Json], *, is_closed: bool) -> Plot:
    lags = {
        name: lag_ns(marks, series, edges, is_closed=is_closed) / SECOND
        for name, marks in series.announced.items()
        if marks
    }
    top = nice_ceiling(max(float(lag.max()) for lag in lags.values()))
    hover |= {
        f"lag {name}, s": [round(float(each), 3) for each in lag] for name, lag in sorted(lags.items())[:LINES_MAX]
    }
    curves = [
        Curve(kind=f"line s{min(series.style_of(name), LINES_MAX)}", name=name, d=line(lag / top))
        for name, lag in sorted(lags.items())
    ]
    named = [(curve.kind, curve.name) for curve in curves[:LINES_MAX]]
    rest = [(curves[-1].kind, f"{len(curves) - LINES_MAX} others")] if len(curves) > LINES_MAX else []
    return Plot(
        title="Lag of watermarks, s",
        height=HEIGHT,
        curves=tuple(curves),
        ticks=linear_ticks(top),
        note="age of the oldest acknowledged write above the subscriber's watermark, the worst in each column",
        legend=(*named, *rest),
    )


def in_force(windows: Iterable[Window], low_ns: int, high_ns: int) -> list[Window]:
    """The faults in force at some moment of a stretch of time."""
    return [window for window in windows if window.begin_ns <= high_ns and window.end_ns >= low_ns]


def between(values: Int64s, low: int, high: int) -> Bools:
    """True for values between two numbers, both included."""
    return (values >= low) & (values <= high)
