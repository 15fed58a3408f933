import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from checkers.history.names import Forms
from harness.core.errors import HistoryError
from harness.core.trace import TraceRecord, What, Window
from harness.core.verdict import Verdict
from harness.report.pictures.diagram import ARROWS_MAX, MARKS_MAX, chosen_messages
from harness.report.pictures.moments import gather
from harness.report.trace import Traced, about, trace_page
from tests.unit.report.conftest import Written, operation, promise, report, watermark
from tests.unit.report.test_page import finding

MS = 1_000_000
WINDOW = Window(from_ns=0, to_ns=100 * MS)


def line(what: What, at_ms: float, node: str | None = "n1", **more: object) -> TraceRecord:
    fields = {"ns": int(at_ms * MS), "what": what, "node": node, **more}
    return msgspec.convert(fields, TraceRecord)


def message(
    number: int, sent_ms: float, arrived_ms: float | None = None, lost_ms: float | None = None
) -> list[TraceRecord]:
    lines = [line("send", sent_ms, "n1", peer="n2", number=number, type="Ping", fields={"type": "Ping"})]
    if arrived_ms is not None:
        lines.append(line("deliver", arrived_ms, "n2", peer="n1", number=number, type="Ping"))
    if lost_ms is not None:
        lines.append(line("lost", lost_ms, "n2", peer="n1", number=number, type="Ping"))
    return lines


def page_of(folder: Path, lines: Iterable[TraceRecord], window: Window = WINDOW, *, is_exact: bool = True) -> str:
    path = folder / "trace.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
    traced = Traced(run="store/x", cluster="c", seed=1, bugs=(), subscribers=("s1", "s2"), is_exact=is_exact)
    return trace_page(path, window, traced).html


def picture(html: str) -> ElementTree.Element:
    """The drawing, which must be well-formed."""
    start = html.index("<svg", html.index('class="scroll"'))
    return ElementTree.fromstring(html[start : html.index("</svg>", start) + 6])  # noqa: S314  Our own page.


def drawn(html: str, kind: str) -> list[tuple[str, str]]:
    """The shapes of a class: title and path data (or the x of a box)."""
    found = []
    for group in picture(html).iter("g"):
        shape = list(group)[-1] if group.find("rect") is None else group.find("rect")
        assert shape is not None
        if kind in (shape.get("class") or "").split():
            title = group.find("title")
            assert title is not None
            found.append((title.text or "", shape.get("d") or f"{shape.get('x')} {shape.get('width')}"))
    return found


def test_an_arrow_goes_from_lane_to_lane_in_its_time(tmp_path: Path) -> None:
    html = page_of(tmp_path, message(1, sent_ms=10, arrived_ms=20))
    ((title, d),) = drawn(html, "m")
    assert d.startswith("M100.0 58.0L200.0 122.0")  # A tenth and a fifth of 1,000 pixels.
    assert "Ping  n1 to n2" in title
    assert "arrived 10.000 ms later" in title
    assert '{"type":"Ping"}' in title


def test_a_lost_message_ends_in_a_cross_before_it_reaches_the_lane(tmp_path: Path) -> None:
    html = page_of(tmp_path, [*message(1, 10, lost_ms=30), *message(2, 40, arrived_ms=41)])
    ((title, d),) = drawn(html, "lost")
    assert d.startswith("M100.0 58.0L300.0 96.4m-5 -5")
    assert "lost 20.000 ms later" in title
    assert len(drawn(html, "m")) == 2


def test_a_message_that_waited_for_a_slow_node_shows_how_long(tmp_path: Path) -> None:
    lines = [*message(1, 10, arrived_ms=20), line("handle", 50, "n2", peer="n1", number=1, type="Ping")]
    ((title, d),) = drawn(page_of(tmp_path, lines), "m")
    assert "waited in the inbox for 30.000 ms" in title
    assert d.endswith("M200.0 122.0H500.0")


def test_a_message_without_an_end_is_under_way(tmp_path: Path) -> None:
    ((title, _),) = drawn(page_of(tmp_path, message(1, 10)), "open")
    assert "still under way" in title


def test_a_node_is_shaded_from_its_crash_to_its_start_and_where_it_is_paused(tmp_path: Path) -> None:
    lines = [
        line("pause", 5),
        line("crash", 10, note="3 unsynced writes lost"),
        line("start", 40),
        line("pause", 60),
        line("pause", 70, "n2"),
        line("resume", 75, "n2"),
    ]
    html = page_of(tmp_path, lines)
    assert [where for _, where in drawn(html, "down")] == ["100.0 300.0"]
    assert "3 unsynced writes lost" in drawn(html, "down")[0][0]
    assert [where for _, where in drawn(html, "paused")] == ["50.0 50.0", "600.0 400.0", "700.0 50.0"]
    assert "it went on" in drawn(html, "paused")[1][0]


def test_faults_are_bands_and_share_a_row_only_one_after_the_other(tmp_path: Path) -> None:
    def fault(number: int, phase: str, at_ms: float) -> TraceRecord:
        return line("fault", at_ms, None, number=number, type="partition", note=phase, fields={"targets": ["a>b"]})

    lines = [fault(0, "begin", 10), fault(1, "begin", 20), fault(0, "end", 30), fault(2, "begin", 40)]
    html = page_of(tmp_path, lines)
    boxes = [group.find("rect") for group in picture(html).iter("g")]
    assert [box.get("y") for box in boxes if box is not None] == ["28", "46", "28"]
    assert [where for _, where in drawn(html, "fault")] == ["100.0 200.0", "200.0 800.0", "400.0 600.0"]
    assert "partition: a&gt;b" in html


def test_a_watermark_is_linked_from_subscriber_to_subscriber_and_a_view_from_node_to_node(tmp_path: Path) -> None:
    def watermark(node: str, position: int, at_ms: float) -> TraceRecord:
        return line("event", at_ms, node, type="watermark", fields={"position": position, "session": 0})

    def view(node: str, number: int, at_ms: float) -> TraceRecord:
        return line("state", at_ms, node, type="view", fields={"key": number, "value": ["n1", "n2"]})

    lines = [
        watermark("s1", 7, 10),
        watermark("s2", 7, 20),
        watermark("s1", 8, 30),
        view("n1", 2, 40),
        view("n2", 2, 50),
    ]
    html = page_of(tmp_path, lines)
    links = drawn(html, "link")
    assert len(links) == 2
    assert "watermark 7" in links[0][0]
    assert "view 2" in links[1][0]
    assert len(drawn(html, "watermark")) == 4
    assert len(drawn(html, "view")) == 3


def test_everything_lost_is_drawn_before_anything_else_when_it_is_too_much() -> None:
    lines = [each for number in range(4000) for each in message(number, 1, arrived_ms=2)]
    lines += [each for number in range(4000, 4100) for each in message(number, 1, lost_ms=2)]
    chosen, said = chosen_messages(gather(iter(lines)))
    assert len(chosen) == ARROWS_MAX
    assert set(range(4000, 4100)) <= set(chosen)
    assert said.startswith(
        "Thinned: 1,500 of 4,100 messages are drawn (100 of the 100 that were lost, 1,400 of the 4,000"
    )
    evens = sum(number % 2 == 0 for number in chosen)
    assert 0.4 < evens / len(chosen) < 0.6  # Neither the questions only, nor the answers.
    assert list(chosen) == sorted(chosen)


def test_too_many_lost_messages_are_thinned_as_well() -> None:
    lines = [each for number in range(5000) for each in message(number, 1, lost_ms=2)]
    chosen, said = chosen_messages(gather(iter(lines)))
    assert len(chosen) == ARROWS_MAX
    assert "1,500 of the 5,000 that were lost, 0 of the 0 others" in said


def test_too_many_timers_are_left_out_and_the_page_says_so(tmp_path: Path) -> None:
    html = page_of(tmp_path, [line("timer", 1, type="beat") for _ in range(MARKS_MAX + 1)])
    assert drawn(html, "timer") == []
    assert "Left out: 1,501 timers" in html


def test_text_from_a_trace_is_escaped_and_control_characters_are_visible(tmp_path: Path) -> None:
    evil = "</title></svg><script>alert(1)</script>\x1b[31m\u202e"
    lines = [
        line("send", 1, evil, peer="n2", number=1, type=evil, fields={evil: evil}),
        line("crash", 2, evil, note=evil),
        line("event", 3, "s1", type="gap", fields={"session": evil, "position": evil}),
        line("fault", 4, None, number=0, type=evil, note="begin", fields={"targets": [evil], "note": evil}),
        line("timer", 5, "n1", type=evil),
    ]
    html = page_of(tmp_path, lines)
    picture(html)
    assert html.count("<script") == html.count("</script") == 2  # Our own.
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;" in html


def test_types_and_nodes_can_be_hidden_and_colours_are_roles(tmp_path: Path) -> None:
    def sent(number: int, source: str, target: str, name: str) -> TraceRecord:
        return line("send", number, source, peer=target, number=number, type=name)

    html = page_of(tmp_path, [sent(1, "client-1", "d1", "Call"), sent(2, "d1", "s1", "Row"), sent(3, "d2", "s1", "Ack"),
                              sent(4, "d1", "d2", "Row")])  # fmt: skip
    for name in ("client to d*", "d* to subscriber", "d* to d*"):
        assert f"</svg>{name}</span>" in html
    colours = {title.split()[0]: kind for title, kind in _kinds(html)}
    assert colours["Ack"] == "m t0 open"  # As the first Row, the most frequent role.
    hidden = {
        text: name for name, text in re.findall(r'<input type="checkbox" id="(\w+)" checked>.*?</svg> (\w+) ', html)
    }
    assert set(hidden) == {"Call", "Row", "Ack"}
    for name in hidden.values():
        assert f"body:has(#{name}:not(:checked)) .{name}" in html
    groups = [group.get("class") for group in picture(html).iter("g") if group.get("class")]
    assert sum(hidden["Row"] in (each or "").split() for each in groups) == 2
    lanes = [name.strip() for name in re.findall(r'id="a\d" checked>([^<]+)<', html)]
    assert lanes == ["clients", "d1", "d2", "s1"]


def _kinds(html: str) -> list[tuple[str, str]]:
    """The title and the class of each arrow."""
    found = []
    for group in picture(html).iter("g"):
        title, shape = group.find("title"), list(group)[-1]
        if title is not None and (shape.get("class") or "").startswith("m "):
            found.append((title.text or "", shape.get("class") or ""))
    return found


def test_heartbeats_are_hidden_at_first_and_the_page_says_so(tmp_path: Path) -> None:
    beat = line("send", 5, "n1", peer="n2", number=9, type="HeartBeat")
    html = page_of(tmp_path, [*message(1, 1, 2), beat])
    checked = dict(re.findall(r'<input type="checkbox" id="(y\d)"( checked)?>', html))
    names = {name: checked[hidden] for hidden, name in re.findall(r'id="(y\d)".*?</svg> (\w+) \d', html)}
    assert names == {"Ping": " checked", "HeartBeat": ""}
    assert "Heartbeats (HeartBeat) are hidden at first" in html


def test_a_trace_of_a_finding_opens_with_it_and_leads_on(written: Written, tmp_path: Path) -> None:
    folder = written([*operation(0, 10, 20, position=5), watermark(30, 9, 0)])
    known = {"runtime": "sim", "run": "store/c/1", "promises": (promise("missing-event", "violated"),)}
    found = report(Verdict.INVALID, findings=(finding("missing-event", ops=(0,), events=(2,)),), **known)
    path = tmp_path / "trace.jsonl"
    mark = line("event", 30, "s1", type="watermark", fields={"position": 9, "session": 0, "number": 0})
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in [*message(1, 1, 2), mark]))
    shown = about(found, folder, WINDOW, Forms())
    assert shown is not None
    traced = Traced(
        run="store/c/1", cluster="c", seed=1, bugs=(), subscribers=("s1",), is_exact=True, report=found, about=shown
    )
    html = trace_page(path, WINDOW, traced).html
    card = html[html.index('<section class="card verdict') : html.index("</section>")]
    for needed in ("ANOMALY", "missing-event It keeps its word.", "Watermark 9 was announced to s1",
                   "seamark shrink store/c/1",
                   "seamark replay store/c/1 --trace 0..0.25", 'href="report.html#f1"', "data-copy"):  # fmt: skip
        assert needed in card, needed
    assert 'class="watermark decisive"' in html
    assert 'class="found"' in html
    assert about(found, folder, Window(from_ns=0, to_ns=10 * MS), Forms()) is None


def test_an_empty_window_is_a_page_too(tmp_path: Path) -> None:
    html = page_of(tmp_path, [])
    assert "All 0 messages are drawn" in html
    assert "No fault, crash, view, or stream" in html
    picture(html)


def test_a_trace_of_a_repetition_that_differs_says_so(tmp_path: Path) -> None:
    assert "was not exact" in page_of(tmp_path, [], is_exact=False)
    assert "was not exact" not in page_of(tmp_path, [])


@pytest.mark.parametrize("window", [Window(from_ns=0, to_ns=1), Window(from_ns=5, to_ns=86_400 * 10**9)])
def test_windows_of_any_length_have_ticks(tmp_path: Path, window: Window) -> None:
    html = page_of(tmp_path, message(1, 0, arrived_ms=0), window)
    assert 2 <= html.count('<text class="tick"') <= 12


def test_a_line_that_is_no_trace_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"ns":1,"what":"start"}\nnothing\n', encoding="utf-8")
    traced = Traced(run="x", cluster="c", seed=1, bugs=(), subscribers=(), is_exact=True)
    with pytest.raises(HistoryError, match=r"trace\.jsonl, line 2"):
        trace_page(path, WINDOW, traced)
