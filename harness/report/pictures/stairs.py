"""The watermarks of each subscriber against the positions of the source, as staircases; and the lag of all.

Positions are drawn by their rank among those that the source acknowledged: for offsets, clocks and epochs alike, the
distance between two lines is the number of acknowledged positions between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from markupsafe import Markup

from checkers.columns.index import max_so_far
from harness.core.columns import NEVER, Bools, Int64s
from harness.core.record import Json
from harness.report.pictures.curves import HEIGHT, LINES_MAX, Curve, Plot, line, linear_ticks
from harness.report.pictures.scale import SECOND, WIDTH, Tick, nice_ceiling
from harness.report.series import Series, lag_at

COLUMNS: Final = 500
STAIRS_HEIGHT: Final = 100
DOT: Final = 4.5  # Half of the width of a dot that shows a finding.
SAMPLES: Final = 16  # The number of moments of each column at which the lag is computed.
QUANTILES: Final = (("median", 0.5), ("90 %", 0.9), ("99 %", 0.99))
NOTHING: Final = -1
Broken = Mapping[str, Sequence[int]]  # The journal positions of the events that show a finding, by subscriber.


def staircases(series: Series, broken: Broken, hover: dict[str, Json], edges: Int64s) -> list[Plot]:
    """A plot for each of a few subscribers, those with findings first; empty if there were no watermarks."""
    announcing = [name for name, marks in series.announced.items() if marks]
    chosen = sorted(announcing, key=lambda name: name not in broken)[:LINES_MAX]
    ranks = _Ranks.of(series)
    left = f"; {len(announcing) - len(chosen)} more subscribers are not drawn" if len(announcing) > len(chosen) else ""
    for name in chosen:
        announced = series.announced[name][0]
        hover[f"watermark of {name}"] = _at(announced.ns, announced.position, edges[1:])
    plots = [_staircase(series, ranks, name, broken.get(name, ()), left) for name in sorted(chosen)]
    return [*(replace(plot, note="", legend=()) for plot in plots[:-1]), *plots[-1:]]  # One legend for all.


class _Ranks:
    """Positions as shares of all that the source acknowledged; without a source, of all that were delivered."""

    def __init__(self, positions: Int64s) -> None:
        self._known = np.unique(positions)

    @classmethod
    def of(cls, series: Series) -> "_Ranks":
        """The ranks of a run."""
        known = series.commit_position
        return cls(known if len(known) else series.event_position[series.event_position < NEVER])

    @property
    def count(self) -> int:
        """The number of known positions."""
        return len(self._known)

    def share(self, position: Int64s) -> np.ndarray:
        """The share of known positions at or below each position; NaN for NOTHING."""
        rank = np.searchsorted(self._known, position, "right") / max(1, self.count)
        return np.where(position == NOTHING, np.nan, rank)

    def ticks(self) -> tuple[Tick, ...]:
        """Ticks at zero, half and all positions, with their numbers."""
        shown = [0, self.count // 2, self.count] if self.count > 1 else [0, self.count]
        top = max(1, self.count)
        return tuple(Tick(round(STAIRS_HEIGHT * (1 - each / top), 1), f"{each:,}") for each in shown)


def _staircase(series: Series, ranks: _Ranks, name: str, broken: Sequence[int], left: str) -> Plot:
    edges = np.linspace(series.load_begin_ns, series.drawn_end_ns, COLUMNS + 1).astype(np.int64)[1:]
    mine = series.event_subscriber == series.subscribers.index(name)
    heights = {"frontier": ranks.share(_last(series.commit_ns, series.commit_position, edges, is_highest=True))}
    rows = mine & series.is_row & (series.event_position < NEVER)
    heights["delivered"] = ranks.share(_delivered(series, rows, edges))
    steps = [ranks.share(_last(each.ns, each.position, edges)) for each in series.announced[name]]
    curves = [
        Curve(
            kind="line frontier",
            name="the source's last acknowledged write",
            d=line(heights["frontier"], STAIRS_HEIGHT),
        ),
        Curve(kind="line delivered", name="highest row received", d=line(heights["delivered"], STAIRS_HEIGHT)),
        *(
            Curve(
                kind=f"line watermark s{min(series.style_of(name), LINES_MAX)}",
                name="watermark",
                d=line(each, STAIRS_HEIGHT),
            )
            for each in steps
        ),
    ]
    marks = _marks(series, ranks, mine & np.isin(series.event_seq, np.array(broken, np.int64)))
    if marks:
        curves.append(Curve(kind="dot broken", name="shows a finding", d=marks))
    drawn = np.stack([*heights.values(), *steps])
    return Plot(
        title=f"Watermarks of {name}, by position",
        height=STAIRS_HEIGHT,
        curves=tuple(curve for curve in curves if curve.d),
        ticks=ranks.ticks(),
        note=f"what stands at the end of each of {COLUMNS} parts of the time{left}",
        legend=tuple(dict.fromkeys((curve.kind, curve.name) for curve in curves if curve.d)),
        reach=_reach(drawn),
        top=max(1, ranks.count),
    )


def _delivered(series: Series, rows: Bools, edges: Int64s) -> Int64s:
    """The highest position delivered so far in the current session: a subscriber that resumes may begin lower."""
    ns, position, session = (each[rows] for each in (series.event_ns, series.event_position, series.event_session))
    return _last(ns, max_so_far(session, position) if len(ns) else position, edges)


def _last(ns: Int64s, value: Int64s, edges: Int64s, *, is_highest: bool = False) -> Int64s:
    """The last value before each moment, or the highest of those before; NOTHING before the first one."""
    order = np.argsort(ns, kind="stable")
    ns, value = ns[order], value[order]
    if is_highest:
        value = np.maximum.accumulate(value)
    return np.append(NOTHING, value)[np.searchsorted(ns, edges, "right")]


def _at(ns: Int64s, value: Int64s, edges: Int64s) -> list[Json]:
    return [None if each == NOTHING else int(each) for each in _last(ns, value, edges).tolist()]


def _marks(series: Series, ranks: _Ranks, chosen: Bools) -> Markup:
    """The events that show findings, as dots."""
    has_place = chosen & (series.event_position < NEVER)
    span_ns = series.drawn_end_ns - series.load_begin_ns
    x = np.clip((series.event_ns[has_place] - series.load_begin_ns) / span_ns, 0, 1) * WIDTH
    y = STAIRS_HEIGHT * (1 - ranks.share(series.event_position[has_place]))
    x, y = np.clip(x, DOT, WIDTH - DOT), np.clip(y, DOT, STAIRS_HEIGHT - DOT)  # Whole, also at the edge.
    return Markup("".join(f"M{a:.2f} {b:.1f}h0" for a, b in zip(x.tolist(), y.tolist(), strict=True)))  # noqa: S704


def _reach(drawn: np.ndarray) -> tuple[list[float], list[float]]:
    """For each column the highest and the lowest drawn point, from above."""
    high = np.where(np.isnan(drawn), -1.0, drawn).max(axis=0)
    low = np.where(np.isnan(drawn), 2.0, drawn).min(axis=0)
    is_empty = high < 0
    top = np.where(is_empty, 0.0, STAIRS_HEIGHT * (1 - high))
    bottom = np.where(is_empty, STAIRS_HEIGHT, STAIRS_HEIGHT * (1 - low))
    return np.round(top, 1).tolist(), np.round(bottom, 1).tolist()


def lag_quantiles(series: Series, edges: Int64s, hover: dict[str, Json], *, is_closed: bool) -> Plot:
    """A plot of the subscribers' lag: in each column, quantiles over its moments and all subscribers."""
    inside = (np.arange(SAMPLES) + 0.5) / SAMPLES
    moments = (edges[:-1, None] + np.diff(edges)[:, None] * inside).astype(np.int64)
    lags = [
        lag_at(marks, series, moments.ravel(), is_closed=is_closed).reshape(moments.shape)
        for marks in series.announced.values()
        if marks
    ]
    lag = np.concatenate(lags, axis=1) / SECOND
    found = {name: np.quantile(lag, share, axis=1, method="inverted_cdf") for name, share in QUANTILES}
    top = nice_ceiling(max(float(each.max()) for each in found.values()))
    hover |= {f"lag {name}, s": [round(float(each), 3) for each in values] for name, values in found.items()}
    curves = [Curve(kind=f"line q{n}", name=name, d=line(each / top)) for n, (name, each) in enumerate(found.items())]
    return Plot(
        title="Lag of watermarks, quantiles, s",
        height=HEIGHT,
        curves=tuple(reversed(curves)),
        ticks=linear_ticks(top),
        note=f"over {SAMPLES} moments of each column and all {len(lags)} subscribers",
        legend=tuple((curve.kind, curve.name) for curve in curves),
    )
