"""The moments around a finding: all of the evidence, as much around it as can be drawn, and a number for each piece."""

import dataclasses
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from checkers.history.names import Forms
from harness.core.record import Fault, Invoke, Mark, Record, State
from harness.core.verdict import Finding, Step
from harness.report.evidence import (
    EVENTS_MAX,
    OPS_MAX,
    PAD_MAX_NS,
    SHARES,
    Slice,
    _stretch,
    choice,
    first_moment,
    slices,
)
from harness.report.pictures.cycle import cycle_drawing
from harness.report.pictures.plots import overview
from harness.report.pictures.timeline import CLIENTS_MAX, timeline
from harness.report.series import Series, read_series
from tests.unit.report.conftest import MS, Written, operation, row, watermark
from tests.worlds.run_files import run_file


def finding(*, ops: tuple[int, ...] = (), events: tuple[int, ...] = (), cycle: tuple[Step, ...] = ()) -> Finding:
    return Finding(fingerprint="f", anomaly="a", checker="c", sentence="s", ops=ops, events=events, cycle=cycle)


def around(folder: Path, found: Finding) -> tuple[Series, Slice]:
    series = read_series(folder, None)
    chosen = choice(series, found, "f1")
    assert chosen is not None
    (one,) = slices(folder, [chosen], is_order=series.is_order)
    return series, one


def busy(count: int, *, every_ms: int = 10) -> Iterator[Record]:
    """Operations and rows one after the other, a record in the journal each: 4 for an operation."""
    for index in range(count):
        at = index * every_ms
        yield from operation(index, at, at + 5, position=index + 1)
        yield row(at + 6, index % 3, index, index + 1, 2 * index)
        yield watermark(at + 7, index + 1, 2 * index + 1)


def test_the_evidence_is_numbered_in_order_of_time(written: Written) -> None:
    folder = written(busy(40))
    _, found = around(folder, finding(ops=(20,), events=(4 * 20 + 3, 4 * 20 + 2)))
    assert [row.name for row in found.rows] == ["op 20", "event 82", "event 83"]
    assert [row.number for row in found.rows] == [1, 2, 3]
    assert found.rows[0].what == "T20: append 20 to 2: ok, position 21"
    assert found.rows[1].what == "row 2: 20 at position 21"
    assert found.rows[2].what == "Watermark 21 was announced to s1"
    assert {raw.anchor for raw in found.raw if raw.anchor} == {row.anchor for row in found.rows}
    assert found.notes == ()
    assert ":append 2 20" in found.edn


def test_a_finding_without_records_has_no_slice(written: Written) -> None:
    series = read_series(written(busy(3)), None)
    assert choice(series, finding(), "f1") is None
    assert first_moment(series, finding()) is None
    assert choice(series, finding(ops=(99,), events=(99,)), "f1") is None  # What a history does not have.


def test_many_operations_around_are_left_out_by_taking_less_time(written: Written) -> None:
    series, found = around(written(busy(1000)), finding(ops=(500,)))
    assert len(found.operations) <= OPS_MAX
    assert len(found.events) <= EVENTS_MAX
    assert found.notes == ()
    assert found.low_ns > 0
    assert found.high_ns < series.end_ns


def test_the_stretch_is_the_longest_that_has_few_enough_records(written: Written) -> None:
    """Also if events are not in the order of their times, and clocks ran back."""
    draw = np.random.default_rng(5)
    plain, lengths = read_series(written(busy(3)), None), set[int]()
    for count in (5, 100, 1_000, 10_000):
        began, events = (draw.integers(0, 1_000_000, count) * MS for _ in range(2))
        ended = began + draw.integers(-10, 100, count) * MS
        many = dataclasses.replace(
            plain, invoke_ns=began, complete_ns=ended, event_ns=events, end_ns=1_000_000 * MS, index=np.arange(count)
        )
        first, last = (int(each) for each in np.sort(began[:2]))
        found = _stretch(many, first, last)
        pads = [min(int(many.end_ns * share), PAD_MAX_NS) for share in SHARES]
        fits = []
        for low, high in ((max(0, first - pad), last + pad) for pad in pads):
            ops = np.count_nonzero((began <= high) & (ended >= low))
            if ops <= OPS_MAX and np.count_nonzero((events >= low) & (events <= high)) <= EVENTS_MAX:
                fits.append((low, high))
        assert not fits or found == fits[0]
        lengths.add(len(fits))
    assert {0, len(SHARES)} <= lengths


def test_events_in_another_order_are_read_in_the_order_of_their_positions(written: Written) -> None:
    folder = written(busy(20))
    series = read_series(folder, None)
    path = folder / "events.parquet"
    table = pq.ParquetFile(path).read()
    pq.write_table(table.take(np.arange(len(table))[::-1]), path)
    again = read_series(folder, None)
    assert np.array_equal(again.event_seq, series.event_seq)
    assert np.array_equal(again.event_ns, series.event_ns)
    assert np.array_equal(again.event_position, series.event_position)


def test_evidence_that_spans_more_than_can_be_drawn_is_thinned_and_says_so(written: Written) -> None:
    _, found = around(written(busy(1000)), finding(ops=(3, 997)))
    assert len(found.operations) <= OPS_MAX + 2
    assert {invoke.index for invoke, _ in found.operations} >= {3, 997}
    assert any("operations of this stretch" in note for note in found.notes)
    assert any("events of this stretch" in note for note in found.notes)


def test_an_operation_that_never_completed_is_drawn_to_the_end(written: Written) -> None:
    folder = written([*busy(20), *operation(20, 100, None), *operation(21, 210, 220)])
    series, found = around(folder, finding(ops=(20,)))
    assert found.rows[0].what == "T20: append 20 to 2: never answered"
    drawn = timeline(found, series, ())
    (bar,) = [bar for bar in drawn.bars if "marked" in bar.kind]
    assert bar.kind == "bar unknown marked"
    assert bar.x + bar.width == pytest.approx(1000)


def test_lanes_are_clients_nodes_and_subscribers(written: Written) -> None:
    view = State(95 * MS, "n1", "view", 7, ["n1"])
    faults: list[Record] = [
        view,
        Fault(90 * MS, 0, "begin", "crash", ("n2",)),
        Fault(130 * MS, 0, "end", "crash", ("n2",)),
    ]
    series, found = around(written([*busy(10), *faults, *operation(10, 100, 140)]), finding(ops=(10,), events=(39,)))
    drawn = timeline(found, series, ("crash",))
    assert [(lane.kind, lane.name) for lane in drawn.lanes if lane.kind != "client"] == [
        ("node", "n1"), ("node", "n2"), ("subscriber", "s1"),
    ]  # fmt: skip
    assert [mark.kind for mark in drawn.bars if mark.kind == "down"] == ["down"]
    assert len(drawn.stairs) == 1
    assert {number.number for number in drawn.numbers} == {1, 2}
    assert len({(number.percent, number.y) for number in drawn.numbers}) == 2
    assert len(drawn.bands) == 1
    assert [text for _, text in drawn.views] == ["view 7"]


def test_clients_without_a_lane_are_counted(written: Written) -> None:
    records = list[Record]()
    for index in range(CLIENTS_MAX + 4):
        for each in operation(index, 100, 200 + index):
            records.append(replace(each, process=index) if isinstance(each, Invoke) else each)
    folder = written(records)
    series, found = around(folder, finding(ops=(CLIENTS_MAX + 3,)))
    drawn = timeline(found, series, ())
    assert len([lane for lane in drawn.lanes if lane.kind == "client"]) == CLIENTS_MAX
    assert str(CLIENTS_MAX + 3) in [lane.name for lane in drawn.lanes]  # Whoever is part of the evidence.
    assert f"4 of {CLIENTS_MAX + 4} clients have no lane here." in drawn.notes


def step(source: str, target: str) -> Step:
    return Step(source=source, target=target, relation="rw", sentence="so it is")


def test_a_cycle_is_drawn_with_one_arrow_back(written: Written) -> None:
    _, found = around(written(busy(10)), finding(ops=(1, 4)))
    operations = {invoke.index: (invoke, complete) for invoke, complete in found.operations}
    drawing = cycle_drawing((step("T1", "T4"), step("T4", "W s1/9"), step("W s1/9", "T1")), operations)
    assert drawing is not None
    assert [box.name for box in drawing.boxes] == ["T1", "T4", "s1 at position 9"]
    assert [box.is_watermark for box in drawing.boxes] == [False, False, True]
    assert [edge.is_back for edge in drawing.edges] == [False, False, True]
    assert drawing.boxes[0].lines == ("append 1 to 1",)
    heights = [(box.y, box.y + box.height) for box in drawing.boxes]
    assert all(above[1] < below[0] for above, below in pairwise(heights))
    assert drawing.height > heights[-1][1]


def test_what_is_not_known_of_a_cycle_is_drawn_by_its_name() -> None:
    drawing = cycle_drawing((step("T1", "T2"), step("T2", "T1")), {})
    assert drawing is not None
    assert [box.lines for box in drawing.boxes] == [(), ()]
    assert cycle_drawing((), {}) is None


def test_positions_are_called_as_the_checks_call_them(written: Written) -> None:
    folder = written([*operation(0, 100, 200, position=5), row(210, 0, 0, 5), watermark(220, 9, 1)])
    series = read_series(folder, None)
    chosen = choice(series, finding(ops=(0,), events=(2, 3)), "f1")
    assert chosen is not None
    forms = Forms(place_pattern="epoch {}", mark_pattern="epoch {}", notation="epoch", low_bits=2)
    (found,) = slices(folder, [chosen], is_order=series.is_order, forms=forms)
    assert [row.what for row in found.rows] == [
        "T0: append 0 to 0: ok, epoch 1/1",
        "row 0: 0 at epoch 1/1",
        "Epoch 2/1 was declared complete to s1",
    ]
    drawn = timeline(found, series, ())
    assert any("epoch 1/1" in bar.title for bar in drawn.bars)
    assert any("Epoch 2/1 was declared complete to s1" in dot.title for dot in drawn.dots)


def test_stairs_stand_at_the_ranks_of_positions_so_that_a_jump_flattens_nothing(written: Written) -> None:
    marks = [watermark(201 + place, position, place) for place, position in enumerate((1, 2, 3, 4 << 32))]
    series, found = around(written([*operation(0, 100, 200, position=1), *marks]), finding(ops=(0,), events=(2,)))
    (stairs,) = timeline(found, series, ()).stairs
    heights = [float(height) for height in re.findall(r"(?:V|M[\d.]+ )([\d.]+)", stairs.d)]
    steps = [one - other for one, other in pairwise(heights)]
    assert len(steps) == 3
    assert max(steps) - min(steps) < 0.2  # Each step is as high as the next.


def test_a_drawing_ends_with_the_load_though_final_reads_are_evidence(written: Written) -> None:
    load = [*operation(0, 100, 200), *operation(1, 300, 400), Mark(1_000 * MS, "healing"), Mark(1_100 * MS, "final")]
    folder = written([*load, *operation(2, 20_000, 20_100)])
    series, found = around(folder, finding(ops=(0, 2)))
    assert series.load_end_ns == 1_000 * MS
    assert found.high_ns == series.load_end_ns
    assert found.notes == (
        "The evidence is from 0.1000 s to 20.1000 s; events outside of the drawing are at its edge.",
    )
    assert [number.percent for number in timeline(found, series, ()).numbers][1] > 98
    assert dataclasses.replace(series, found_ns=20_100 * MS).drawn_end_ns == series.load_end_ns


def test_a_drawing_goes_on_to_a_finding_after_the_load_which_no_final_read_shows(written: Written) -> None:
    load = [
        *operation(0, 100, 200, position=1),
        row(210, 0, 0, 1),
        Mark(250 * MS, "healing"),
        Mark(1_990 * MS, "final"),
    ]
    folder = written([*load, watermark(970, 1, 1), *operation(1, 2_000, 2_100)])
    series, found = around(folder, finding(ops=(0,), events=(5,)))
    assert found.high_ns > 970 * MS
    assert found.notes == ()
    series = dataclasses.replace(series, found_ns=970 * MS)
    assert 970 * MS < series.drawn_end_ns < 1_100 * MS
    drawn = overview(series, is_closed=True, broken={"s1": [5]})
    assert drawn.phases[0][0] < 30, "the load's end is marked where it was"
    assert drawn.note.endswith(
        "The axis ends with the last finding; more of healing and 1 final read followed, until 2.1 s."
    )
    assert drawn.note.startswith("Each column is 42.4 ms wide; the one operation is shown.")


def test_the_moment_of_a_cycle_is_that_of_its_members_not_of_a_read_that_proves_an_order(written: Written) -> None:
    folder = written([*operation(0, 100, 200), *operation(1, 150, 300), *operation(2, 20_000, 20_100)])
    steps = tuple(
        Step(source=source, target=target, relation="rw", sentence="because (as T2 saw)")
        for source, target in (("T0", "T1"), ("T1", "T0"))
    )
    skew = finding(ops=(0, 1, 2), cycle=steps)
    series, found = around(folder, skew)
    assert first_moment(series, skew) == 300 * MS
    assert (found.first_ns, found.last_ns) == (100 * MS, 300 * MS)
    assert found.high_ns < 20_000 * MS
    assert [row.name for row in found.rows] == ["op 0", "op 1", "op 2"]
    assert [number.percent for number in timeline(found, series, ()).numbers][2] > 98
    near = [*operation(0, 100, 200), *operation(1, 150, 300), *operation(2, 310, 400)]
    _, found = around(written(near), skew)
    assert found.notes == ()  # What proves it is near: the drawing has room for it.


def test_of_a_cycle_whose_members_are_gone_what_is_left_is_drawn(written: Written) -> None:
    steps = (Step(source="T7", target="T8", relation="rw", sentence="because"),)
    _, found = around(written(operation(0, 300, 400)), finding(ops=(0, 7, 8), cycle=steps))
    assert (found.first_ns, found.last_ns) == (300 * MS, 400 * MS)


def test_drawings_of_a_run_begin_with_its_load(written: Written) -> None:
    folder = written([Mark(8_000 * MS, "load"), *operation(0, 8_100, 8_200, position=1), Mark(10_000 * MS, "healing")])
    series = read_series(folder, run_file())
    drawn = overview(series, is_closed=True)
    assert (drawn.axis.low_ns, drawn.axis.high_ns) == (8_000 * MS, 10_000 * MS)
    assert "The axis begins with the load; starting took 8.0 s." in drawn.note
    (dot,) = [curve.d for plot in drawn.plots for curve in plot.curves if curve.kind.startswith("dot")]
    assert 95 < float(dot[1:].split()[0]) < 105  # A tenth of the load had passed.


def test_of_a_finding_after_the_load_the_drawing_is_of_its_own_time(written: Written) -> None:
    folder = written([*operation(0, 100, 200), Mark(1_000 * MS, "healing"), *operation(1, 20_000, 20_100)])
    _, found = around(folder, finding(ops=(1,)))
    assert found.high_ns > 20_100 * MS
    assert found.notes == ()


@pytest.mark.parametrize("seen", [("s2", "s1"), ("s1", "s2", "s3")])
def test_a_subscriber_has_one_line_style_whoever_announced_first(written: Written, seen: tuple[str, ...]) -> None:
    marks = [watermark(201 + place, 1, place, name) for place, name in enumerate(seen)]
    folder = written([*operation(0, 100, 200, position=1), *marks])
    _, found = around(folder, finding(ops=(0,)))
    series = read_series(folder, run_file())
    styles = {mark.title.split()[-1]: mark.kind for mark in timeline(found, series, ()).stairs}
    assert (styles["s1"], styles["s2"]) == ("stairs s0", "stairs s1")
    drawn = overview(series, is_closed=True)
    (lag,) = [plot for plot in drawn.plots if plot.title.startswith("Lag")]
    assert {curve.name: curve.kind for curve in lag.curves}["s2"] == "line s1"
    (stairs,) = [plot for plot in drawn.plots if plot.title.startswith("Watermarks of s2")]
    assert "line watermark s1" in {curve.kind for curve in stairs.curves}


def test_the_axes_of_a_run_end_with_its_load(written: Written) -> None:
    folder = written(
        [*operation(0, 100, 200), Mark(1_000 * MS, "healing"), *operation(1, 9_000, 9_001), *operation(2, 9_000, 9_001)]
    )
    drawn = overview(read_series(folder, None), is_closed=True)
    assert drawn.axis.high_ns == 1_000 * MS
    assert drawn.note.endswith("The axis ends with the load; healing and 2 final reads followed, until 9.0 s.")
