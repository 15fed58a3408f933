"""The messages of a finding's moment, from a trace in the run's folder: a few, the right ones, of this very run."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from harness.core.record import MicroOp
from harness.core.trace import TraceRecord, Window
from harness.report.evidence import Slice, choice, slices
from harness.report.findings.messages import SHOWN_MAX, TRACE_FILE, moment_messages
from harness.report.pictures.diagram import Diagram
from harness.report.series import read_series
from tests.unit.report.conftest import MS, Written, operation, row, watermark
from tests.unit.report.test_page import finding

AROUND = Window(from_ns=100 * MS, to_ns=300 * MS)


def line(what: str, at_ms: float, node: str | None, **more: object) -> TraceRecord:
    return msgspec.convert({"ns": int(at_ms * MS), "what": what, "node": node, **more}, TraceRecord)


def message(number: int, source: str, target: str, at_ms: float, **fields: object) -> list[TraceRecord]:
    sent = line("send", at_ms, source, peer=target, number=number, type="Row", fields=fields)
    return [sent, line("deliver", at_ms + 1, target, peer=source, number=number, type="Row")]


def found_in(written: Written) -> Slice:
    """Operation 0, of transaction 0, and the watermark of s1 after it."""
    folder = written([*operation(0, 110, 200, position=5), row(210, 0, 0, 5), watermark(220, 9, 1)])
    series = read_series(folder, None)
    chosen = choice(series, finding("late-event", ops=(0,), events=(3,)), "f1")
    assert chosen is not None
    (found,) = slices(folder, [chosen], is_order=False)
    return found


def drawn(folder: Path, found: Slice, lines: Iterable[TraceRecord], subscriber: str = "s1") -> Diagram | None:
    mark = next(event.number for _, event in found.events if event.kind == "watermark")
    of_run = [
        line("complete", 200, "client-0"),
        line("event", 220, subscriber, type="watermark", fields={"position": 9, "session": 0, "number": mark}),
    ]
    every = sorted([line("mark", 90, None), *of_run, *lines, line("mark", 310, None)], key=lambda each: each.ns)
    (folder / TRACE_FILE).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in every))
    return moment_messages(folder, found, ("s1", "s2"), AROUND)


def test_messages_with_the_subscriber_and_of_the_transaction_are_drawn(written: Written, tmp_path: Path) -> None:
    lines = [
        *message(1, "d1", "s1", 215),
        *message(2, "d1", "d2", 150, transid=[0, {"x": 0}]),
        *message(3, "d1", "d2", 150, transid=77),
        *message(4, "d1", "s2", 215, other=1),
        *message(5, "d1", "s1", 99),  # Before the window.
    ]
    picture = drawn(tmp_path, found_in(written), lines)
    assert picture is not None
    assert len(picture.arrows) == 2
    assert [lane.text for lane in picture.lanes] == ["d1", "d2", "s1"]
    assert {name for _, name in picture.roles} == {"d* to subscriber", "d* to d*"}


def test_of_many_messages_the_nearest_are_drawn(written: Written, tmp_path: Path) -> None:
    lines = [each for number in range(200) for each in message(number, "d1", "s1", 101 + number / 2)]
    picture = drawn(tmp_path, found_in(written), lines)
    assert picture is not None
    assert len(picture.arrows) == SHOWN_MAX
    assert sum("arrived" in arrow.title for arrow in picture.arrows) == SHOWN_MAX


def test_the_drawing_is_no_wider_than_the_messages_and_the_moment(written: Written, tmp_path: Path) -> None:
    picture = drawn(tmp_path, found_in(written), [*message(1, "d1", "s1", 210), *message(2, "d1", "s1", 212)])
    assert picture is not None
    starts = [float(arrow.d[1:].split()[0]) for arrow in picture.arrows]
    assert starts[0] < 0.06 * picture.width  # The messages and the watermark take 10 of the window's 200 ms.
    assert 0.1 * picture.width < starts[1] - starts[0] < 0.2 * picture.width


def test_the_trace_of_another_run_is_not_drawn(written: Written, tmp_path: Path) -> None:
    found = found_in(written)
    assert drawn(tmp_path, found, message(1, "d1", "s1", 215)) is not None
    assert drawn(tmp_path, found, message(1, "d1", "s1", 215), subscriber="s2") is None


def transaction(written: Written) -> Slice:
    """Operation 0 appends 10 to key 3 in transaction 700, and s1 gets watermark 9 without that row."""
    invoke, complete = operation(0, 110, 200, position=705)
    mops = (MicroOp("append", 3, 10),)
    records = [replace(invoke, mops=mops), replace(complete, mops=mops, txn=700), watermark(220, 9, 0)]
    folder = written(records)
    series = read_series(folder, None)
    chosen = choice(series, finding("missing-event", ops=(0,), events=(2,)), "f1")
    assert chosen is not None
    (found,) = slices(folder, [chosen], is_order=False)
    return found


def row_message(number: int, sent_ms: float, arrived_ms: float | None, **fields: object) -> list[TraceRecord]:
    sent = line("send", sent_ms, "d1", peer="s1", number=number, type="Row", fields={"key": 3, "value": 10} | fields)
    at = arrived_ms if arrived_ms is not None else sent_ms + 1
    return [sent, line("deliver" if arrived_ms is not None else "lost", at, "s1", number=number, type="Row")]


@pytest.mark.parametrize(
    ("arrived_ms", "text"),
    [
        (224, "row 3 = 10: arrived 4 ms after the watermark, not delivered"),
        (219, "row 3 = 10: arrived 1 ms before the watermark, not delivered"),
        (None, "row 3 = 10: lost"),
    ],
)
def test_the_row_that_was_missed_is_marked_with_its_time_from_the_watermark(
    written: Written, tmp_path: Path, arrived_ms: float | None, text: str
) -> None:
    lines = [*row_message(1, 210, arrived_ms, position=705), *message(2, "d1", "s1", 212)]
    lines += row_message(3, 213, 214, value=99, position=705)
    picture = drawn(tmp_path, transaction(written), lines)
    assert picture is not None
    assert [label.text for label in picture.labels] == ["watermark: Watermark 9 was announced to s1", text]
    marked = [arrow for arrow in picture.arrows if "decisive" in arrow.kind]
    assert len(marked) == 1
    assert "sent at 0.210000 s" in marked[0].title


def test_a_row_of_another_transaction_with_the_same_numbers_is_not_marked(written: Written, tmp_path: Path) -> None:
    picture = drawn(tmp_path, transaction(written), row_message(1, 210, 224, position=77))
    assert picture is not None
    assert not any("decisive" in arrow.kind for arrow in picture.arrows)


def test_a_row_that_was_delivered_in_time_is_not_marked(written: Written, tmp_path: Path) -> None:
    delivered = line("event", 214, "s1", type="row", fields={"key": 3, "value": 10})
    picture = drawn(tmp_path, transaction(written), [*row_message(1, 210, 214, position=705), delivered])
    assert picture is not None
    assert not any("decisive" in arrow.kind for arrow in picture.arrows)


def test_heartbeats_are_left_out(written: Written, tmp_path: Path) -> None:
    beat = [msgspec.structs.replace(each, type="HeartBeat") for each in message(1, "d1", "s1", 212)]
    picture = drawn(tmp_path, found_in(written), [*beat, *message(2, "d1", "s1", 213)])
    assert picture is not None
    assert len(picture.arrows) == 1


@pytest.mark.parametrize("content", [None, b"", b"nothing\n", b'{"ns":1,"what":"start"}\n'])
def test_without_a_trace_of_the_moment_nothing_is_drawn(
    written: Written, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / TRACE_FILE).write_bytes(content)
    assert moment_messages(tmp_path, found_in(written), ("s1",), AROUND) is None
