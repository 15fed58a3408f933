"""Staircases show what was announced, delivered and committed at each moment, and quantiles how far behind that was."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.record import Evidence, Footer, Header, Json, Mark, StreamEvent
from harness.record.formats.parquet.parquet import write_history
from harness.report.pictures.curves import LINES_MAX, Plot
from harness.report.pictures.plots import overview
from harness.report.pictures.stairs import COLUMNS, QUANTILES, SAMPLES, STAIRS_HEIGHT, lag_quantiles, staircases
from harness.report.series import Announced, Series, lag_at, read_series
from tests.unit.report.conftest import MS, operation
from tests.worlds.run_files import run_file
from tests.worlds.series import lag_at as lag_by_definition
from tests.worlds.series import series as series_of

END = COLUMNS * MS  # Then a column is a millisecond.


def event(at_ms: float, kind: str, position: int, subscriber: str = "s1", session: int = 1) -> StreamEvent:
    is_row = kind == "row"
    at = int(at_ms * MS)
    return StreamEvent(at, subscriber, session, at, kind, None, 1 if is_row else None, at if is_row else None, position)


def written(folder: Path, *records: Evidence) -> Series:
    """The series of a run of ten commits, acknowledged after 10, 20, ... ms, that lasted END."""
    commits = [each for n in range(10) for each in operation(n, n * 10, (n + 1) * 10, position=100 * (n + 1))]
    whole = (*commits, *records, Mark(END, "end"))
    everything: list[Evidence] = [each for each in whole if not isinstance(each, Header | Footer)]
    everything.sort(key=lambda record: record.time_ns)
    write_history(everything, folder / "history")
    return read_series(folder / "history", run_file())


def drawn(series: Series, broken: dict[str, list[int]] | None = None) -> list[Plot]:
    edges = np.linspace(0, series.end_ns, 11).astype(np.int64)
    return staircases(series, broken or {}, {}, edges)


def share_at(plot: Plot, kind: str, at_ms: float) -> float | None:
    """How high that curve stands in the column of a moment, as a share of all positions; None where it is not drawn."""
    (curve,) = [each for each in plot.curves if f"{each.kind} ".startswith(f"line {kind} ")]
    x, y, found = 0.0, 0.0, None
    for letter, numbers in re.findall(r"([MHV])([\d. ]+)", curve.d):
        values = [float(number) for number in numbers.split()]
        if letter == "M":
            x, y = values
        elif letter == "V":
            (y,) = values
        else:
            if x <= at_ms * 1000 / COLUMNS < values[0]:
                found = round(1 - y / STAIRS_HEIGHT, 2)
            (x,) = values
    return found


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return written(
        tmp_path,
        event(10.5, "row", 100),
        event(21.5, "row", 200),
        event(25.5, "watermark", 200),
        event(40.5, "row", 400),
        event(50.5, "row", 300, session=2),
        event(60.5, "watermark", 500),
        event(70.5, "watermark", 400),
        event(80.5, "watermark", 900, subscriber="s2"),
    )


@pytest.mark.parametrize(
    ("at_ms", "frontier", "delivered", "watermark"),
    [(5, None, None, None), (15, 0.1, 0.1, None), (24, 0.2, 0.2, None), (30.5, 0.3, 0.2, 0.2), (45, 0.4, 0.4, 0.2),
     (55, 0.5, 0.3, 0.2), (65, 0.6, 0.3, 0.5), (75, 0.7, 0.3, 0.4), (400, 1.0, 0.3, 0.4)],
)  # fmt: skip
def test_each_stair_stands_where_it_stood(
    series: Series, at_ms: float, frontier: float | None, delivered: float | None, watermark: float | None
) -> None:
    plot = drawn(series)[0]
    assert plot.title == "Watermarks of s1, by position"
    found = tuple(share_at(plot, kind, at_ms) for kind in ("frontier", "delivered", "watermark"))
    assert found == (frontier, delivered, watermark)


def test_a_subscriber_without_rows_has_the_other_stairs(series: Series) -> None:
    plot = drawn(series)[1]
    assert [curve.kind for curve in plot.curves] == ["line frontier", "line watermark s1"]
    assert share_at(plot, "watermark", 90) == 0.9
    assert plot.top == 10
    assert [tick.text for tick in plot.ticks] == ["0", "5", "10"]


def test_what_shows_a_finding_is_marked_at_its_time_and_position(series: Series) -> None:
    seq = int(series.event_seq[series.event_position == 300][0])
    one, other = drawn(series, {"s1": [seq]})
    (mark,) = [curve for curve in one.curves if curve.kind == "dot broken"]
    assert mark.d == f"M{50.5 * 1000 / COLUMNS:.2f} {STAIRS_HEIGHT * 0.7:.1f}h0"
    assert all(curve.kind != "dot broken" for curve in other.curves)


def test_a_plot_is_stretched_between_its_stairs(series: Series) -> None:
    plot = drawn(series)[0]
    assert plot.reach is not None
    tops, bottoms = plot.reach
    assert len(tops) == len(bottoms) == COLUMNS
    assert (tops[0], bottoms[0]) == (0, STAIRS_HEIGHT)  # Nothing is drawn there.
    assert (tops[65], bottoms[65]) == (round(STAIRS_HEIGHT * 0.4, 1), round(STAIRS_HEIGHT * 0.7, 1))


def test_of_many_subscribers_those_with_findings_are_drawn(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(LINES_MAX + 2)]
    series = written(tmp_path, *(event(n + 1, "watermark", 100, subscriber=name) for n, name in enumerate(names)))
    plots = drawn(series, {"s5": [0]})
    assert [plot.title for plot in plots] == [f"Watermarks of {name}, by position" for name in ("s0", "s1", "s2", "s5")]
    assert plots[-1].note.endswith("; 2 more subscribers are not drawn")


def test_a_run_without_watermarks_has_no_stairs(tmp_path: Path) -> None:
    series = written(tmp_path, event(5, "row", 100))
    assert not any(
        "Watermarks of" in plot.title or "quantiles" in plot.title for plot in overview(series, is_closed=True).plots
    )


def test_without_a_source_positions_are_those_that_came(tmp_path: Path) -> None:
    write_history([event(10, "row", 7), event(20, "watermark", 9), Mark(END, "end")], tmp_path / "history")
    (plot,) = drawn(read_series(tmp_path / "history", None))
    assert plot.top == 2
    assert (share_at(plot, "delivered", 30), share_at(plot, "watermark", 30)) == (0.5, 1.0)


pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=6)


@given(pairs, pairs, st.booleans())
def test_the_lag_at_a_moment_is_what_its_definition_says(
    marks: list[tuple[int, int]], commits: list[tuple[int, int]], is_closed: bool
) -> None:
    marks.sort(key=lambda each: each[0])
    announced = Announced(
        ns=np.array([ns for ns, _ in marks], np.int64), position=np.array([p for _, p in marks], np.int64)
    )
    moments = np.arange(70)
    found = lag_at((announced,), series_of(commits), moments, is_closed=is_closed)
    assert found.tolist() == [lag_by_definition(ns, marks, commits, is_closed=is_closed) for ns in moments.tolist()]


def test_quantiles_are_over_all_subscribers_and_moments(tmp_path: Path) -> None:
    series = written(
        tmp_path,
        event(15, "watermark", 100),
        event(15, "watermark", 1000, subscriber="s2"),
        event(300, "watermark", 1000),
    )
    hover: dict[str, Json] = {}
    edges = np.array([0, 100 * MS, 200 * MS, 400 * MS])
    plot = lag_quantiles(series, edges, hover, is_closed=True)
    assert plot.note == f"over {SAMPLES} moments of each column and all 2 subscribers"
    # In the second column s1 is 80 to 180 ms behind its second commit, and s2 not at all.
    (median, ninety, most) = (hover[f"lag {name}, s"] for name, _ in QUANTILES)
    assert [each[1] for each in (median, ninety, most) if isinstance(each, list)] == [0, 0.158, 0.177]
