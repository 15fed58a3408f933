"""The arrays behind the plots: every operation counts, and the lag of a watermark is what its definition says."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.core.columns import NEVER
from harness.core.record import Fault, Mark
from harness.record.formats.parquet.parquet import write_history
from harness.report.pictures.plots import CELLS, OUTCOMES, overview
from harness.report.series import Announced, lag_ns, read_series
from tests.unit.report.conftest import MS, Written, operation, row, watermark
from tests.worlds.series import lag_at, series


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=6),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=6),
    st.booleans(),
)
def test_the_worst_lag_of_each_column_agrees_with_looking_at_every_moment(
    marks: list[tuple[int, int]], commits: list[tuple[int, int]], is_closed: bool
) -> None:
    marks.sort(key=lambda mark: mark[0])
    edges = np.arange(0, 71, 10)
    announced = Announced(
        ns=np.array([ns for ns, _ in marks], np.int64), position=np.array([p for _, p in marks], np.int64)
    )
    got = lag_ns((announced,), series(commits), edges, is_closed=is_closed)
    for column, worst in enumerate(got.tolist()):
        moments = range(10 * column, 10 * column + 10)
        at_moments = max(lag_at(ns, marks, commits, is_closed=is_closed) for ns in moments)
        # Just before a watermark, and at the end of the column, the lag is up to a nanosecond more than at a whole one.
        assert at_moments <= worst <= at_moments + 1


def test_a_history_is_read_with_what_never_completed(written: Written) -> None:
    folder = written(
        [
            Mark(0, "load"),
            *operation(0, 10, 20, position=7),
            row(25, 0, 0, 7),
            watermark(30, 7, 1),
            *operation(1, 40, None),
            *operation(2, 50, 60, outcome="fail"),
            Fault(45 * MS, 0, "begin", "pause", ("n1",)),
        ]
    )
    found = read_series(folder, None)
    assert found.complete_ns.tolist() == [20 * MS, NEVER, 60 * MS]
    assert found.commit_position.tolist() == [7]
    assert found.is_watermark.tolist() == [False, True]
    assert found.subscribers == ("s1",)
    assert found.windows[0].kind == "pause"
    assert not found.is_order
    assert found.end_ns == 60 * MS


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=60), st.integers(0, 2))
def test_no_operation_is_left_out_of_the_plots(ends: list[int], outcome: int) -> None:
    ends.append(10**10)
    drawn = overview(series([(ns, n) for n, ns in enumerate(ends)], outcomes=[outcome] * len(ends)), is_closed=True)
    rate, latency = drawn.plots
    values = drawn.hover["values"]
    assert isinstance(values, dict)
    rates = values[f"{OUTCOMES[outcome][0]}/s"]
    assert isinstance(rates, list)
    seconds = 10 / len(rates)
    assert abs(sum(float(str(each)) for each in rates) * seconds - len(ends)) < 0.1 * len(rates)
    cells = {min(int(ns / 10**10 * CELLS[0]), CELLS[0] - 1) for ns in ends}
    dots = "".join(str(curve.d) for curve in latency.curves).split("M")[1:]
    assert {int(float(dot.split(" ")[0]) / 1000 * CELLS[0]) for dot in dots} == cells
    assert len(rate.curves) == 1


def test_a_history_without_times_has_no_plots_over_time(tmp_path: Path) -> None:
    records = [each for index in range(3) for each in operation(index, 0, 0)]
    write_history(records, tmp_path / "history")
    found = read_series(tmp_path / "history", None)
    assert found.is_order
    assert overview(found, is_closed=False).plots == ()


def test_an_empty_history_can_be_drawn(written: Written) -> None:
    drawn = overview(read_series(written([]), None), is_closed=False)
    assert drawn.plots == ()
    assert drawn.bands == ()
