"""Logs of declared views beside a change stream: the stream is judged as if they were absent."""

from pathlib import Path

from checkers.engine.protocol import Context
from checkers.state import views
from checkers.streams.check import check
from checkers.watermarks.check import check as watermarks
from harness.core.promises import Bounds, View
from harness.core.record import Complete, Invoke, Json, Record
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.unit.checkers.streams.test_check import Subscriber, operation
from tests.worlds.epoch_cases import ENGINE
from tests.worlds.streams.cases import contract

SUMS = View(name="sums", operator="sum", inputs=("a",))
CONTRACT = contract(cut="position", identity="position+key+value")
BESIDE = Context(engine=ENGINE, contract=CONTRACT, bounds=Bounds(views=(SUMS,)))


def records(*, has_views: bool, shown: int = 5, is_late: bool = False) -> list[Record]:
    """Two appends, one without an outcome, and a change; s1 follows lists and the view, and s2 the view alone."""
    lists, of_view = Subscriber("s1"), Subscriber("s1")
    alone = Subscriber("s2")
    a: Json = [["a", 1, 5, 1]]
    found: list[Record] = [
        *operation(0, [("x", 1)], "ok", 3),
        *operation(1, [("x", 5)], "info", None),
        Invoke(2, 9, 9, 2, "change", a),
        Complete(2, 10, "ok", a, commit_ts=2),
        lists(0, "open", position=0),
        *([] if is_late else [lists.row(1, "x", 1, 3)]),
        lists(2, "watermark", position=3),
        *([lists.row(3, "x", 1, 3)] if is_late else []),
    ]
    if not has_views:
        return found
    for each in (of_view, alone):
        # A row of the view that looks like the append without an outcome: it does not show that this has happened.
        found[5:5] = [
            each(0, "open", position=0, span="sums"),
            each(0, "row", key="x", value=5, position=1, span="sums"),
        ]
        found += [
            each(4, "row", key="x", value=5, position=2, ordinal=-1, span="sums"),
            each(4, "row", key="x", value=7, position=2, span="sums"),
            each(4, "row", key=1, value=shown, position=2, span="sums"),
            each(5, "watermark", position=9, span="sums"),
        ]
    return found


def judged(folder: Path, context: Context, story: list[Record]) -> tuple[Judgement, Judgement]:
    """The judgements of the stream rules and of the watermark graph."""
    write_history(story, folder)
    return check(folder, context), watermarks(folder, context)


def summary(judgement: Judgement) -> tuple[object, ...]:
    """All but the places of events in the journal."""
    sentences = [(one.anomaly, one.sentence) for one in judgement.findings]
    return sentences, judgement.witnesses, judgement.facts, judgement.unknown


def test_a_stream_is_judged_as_if_no_view_was_followed_beside_it(tmp_path: Path) -> None:
    for is_late, expected in ((False, []), (True, ["late-event-boundary"])):
        alone = judged(tmp_path / f"{is_late} alone", BESIDE, records(has_views=False, is_late=is_late))
        beside = judged(tmp_path / f"{is_late} beside", BESIDE, records(has_views=True, is_late=is_late))
        assert list(map(summary, beside)) == list(map(summary, alone))
        assert [one.anomaly for one in beside[0].findings] == expected


def test_the_same_events_are_part_of_the_stream_if_their_span_is_no_view(tmp_path: Path) -> None:
    streams, _ = judged(tmp_path / "undeclared", Context(engine=ENGINE, contract=CONTRACT), records(has_views=True))
    assert "phantom-event" in {finding.anomaly for finding in streams.findings}


def test_the_log_of_the_view_is_judged_by_itself(tmp_path: Path) -> None:
    for shown, wrong in ((5, []), (6, ["wrong-view-row"])):
        story = [one for one in records(has_views=True, shown=shown) if getattr(one, "key", None) != "x"]
        write_history(story, tmp_path / str(shown))
        findings = views.check(tmp_path / str(shown), BESIDE).findings
        assert [one.anomaly for one in findings[:1]] == wrong
