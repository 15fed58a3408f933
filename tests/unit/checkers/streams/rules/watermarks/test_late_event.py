"""S05, S06 and S07 by hand: below, at and above each watermark; where they bind, and what is legal."""

import pytest

from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.watermark_regress import regressions
from tests.worlds.streams.cases import found, outcome, shown, view


@pytest.mark.parametrize(
    ("position", "closed", "anomalies"),
    [
        (4, "<=", ["late-event"]),
        (5, "<=", ["late-event-boundary"]),
        (6, "<=", []),
        (4, "<", ["late-event"]),
        (5, "<", []),
        (6, "<", []),
    ],
)
def test_an_event_after_a_watermark_is_late_below_it_and_perhaps_at_it(
    position: int, closed: str, anomalies: list[str]
) -> None:
    assert found(f"open@0 w@5 x=1@{position}", closed=closed) == anomalies


def test_an_event_at_an_exclusive_watermark_is_counted_as_legal() -> None:
    late, boundary = late_events(view("open@0 w@5 x=1@5 y=2@5 z=3@6", closed="<"))
    assert (len(late.row), len(boundary.row), boundary.legal) == (0, 0, 2)


def test_the_first_watermark_that_passed_an_event_is_its_evidence() -> None:
    log = "open@0 w@3 w@5 w@9 x=1@4"
    late, _ = late_events(view(log))
    assert shown(log, late) == [("w@5", "x=1@4")]


def test_an_event_is_late_or_at_the_boundary_never_both() -> None:
    log = "open@0 w@4 w@5 x=1@4"
    late, boundary = late_events(view(log))
    assert shown(log, late) == [("w@5", "x=1@4")]
    assert shown(log, boundary) == []


def test_a_repetition_is_not_late() -> None:
    assert found("open@0 x=1@4 w@5 x=1@4") == []
    assert found("open@0 x=1@4.0 w@5 x=1@4.1") == ["late-event"]


@pytest.mark.parametrize(("start", "anomalies"), [(3, ["late-event"]), (4, []), (5, [])])
def test_what_a_session_began_with_is_not_late(start: int, anomalies: list[str]) -> None:
    assert found(f"open@{start} w@5 x=1@4") == anomalies


def test_a_session_that_begins_at_its_position_owes_it() -> None:
    assert found("open@4 w@5 x=1@4", resume="at") == ["late-event"]
    assert found("open@5 w@6 x=1@4", resume="at") == []


def test_a_backfill_row_is_never_late_and_its_repetition_neither() -> None:
    assert found("open@0 w@5 ~x=1@4 x=1@4") == []


@pytest.mark.parametrize(
    ("scope", "other_session", "other_subscriber"),
    [("session", [], []), ("subscriber", ["late-event"], []), ("global", ["late-event"], ["late-event"])],
)
def test_a_watermark_binds_its_scope(scope: str, other_session: list[str], other_subscriber: list[str]) -> None:
    assert found("s1/1 open@0 w@5 s1/2 open@0 x=1@4", wm_scope=scope) == other_session
    assert found("s1 open@0 w@5 s2 open@0 x=1@4", wm_scope=scope) == other_subscriber


def test_a_watermark_of_a_partition_binds_that_partition() -> None:
    for scope in ("session", "partition"):
        assert found("open@0 w[1]@5 x[2]=1@4", wm_scope=scope) == []
        assert found("open@0 w[1]@5 x[1]=1@4", wm_scope=scope) == ["late-event"]
    assert found("s1 open@0 w[1]@5 s2 open@0 x[1]=1@4", wm_scope="partition") == ["late-event"]
    assert found("open@0 w@5 x[1]=1@4", wm_scope="session") == ["late-event"]


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open[0]@0 w@5 x[1]=1@4", []),  # The session follows partition 0 only.
        ("open[0]@0 w@5 x[0]=1@4", ["late-event"]),
        ("open:x@0 w@5 y=1@4", []),
        ("open:x@0 w@5 x=1@4", ["late-event"]),
        ("open@0 gap w@5 x=1@4", []),  # Not covered when the watermark came.
        ("open@0 gap x=1@2 w@5 x=2@4", ["late-event"]),  # Covered again since its row at 2,
        ("open@0 gap x=1@4 w@5 x=2@4.1", []),  # but from that row on, and not before.
        ("open@0 gap:y w@5 x=1@4", ["late-event"]),
        ("open@0 gap:x w@5 x=1@4", []),
        ("open@0 gap[0] w@5 x[0]=1@4", []),
        ("open@0 gap[0] w@5 x[1]=1@4", ["late-event"]),
        ("open@0 x=1@1 gap x=1@1 w@5 x=2@4", []),  # A repetition does not cover anew.
        ("open@0 close w@5 x=1@4", []),
        ("open@0 error w@5 x=1@4", []),
        ("open@0 end w@5 x=1@4", []),
        ("open@0 close open@0 w@5 x=1@4", ["late-event"]),
        ("w@5 x=1@4", []),  # Who began nowhere promised nothing for a key that it had not shown.
        ("open w@5 x=1@4", []),
        ("open x=1@2 w@5 x=2@4", ["late-event"]),
        ("x=1@2 w@5 x=2@4", ["late-event"]),
        ("open@0 w@5 gap x=1@4", ["late-event"]),  # It was covered when the watermark came.
    ],
)
def test_a_watermark_speaks_of_what_its_session_covers(log: str, anomalies: list[str]) -> None:
    assert found(log) == anomalies


def test_a_watermark_that_went_back_makes_nothing_late() -> None:
    log = "open@0 w@3 w@5 w@4 x=1@4"
    late, _ = late_events(view(log))
    assert shown(log, late) == [("w@5", "x=1@4")]
    assert found("s1/1 open@0 w@5 s1/2 open@3 w@4 x=1@4", wm_scope="subscriber") == ["late-event", "watermark-regress"]
    assert found("s1/1 open@4 w@5 s1/2 open@3 w@4 x=1@4", wm_scope="subscriber") == ["watermark-regress"]


@pytest.mark.parametrize(("second", "anomalies"), [(4, ["watermark-regress"]), (5, []), (6, [])])
def test_a_watermark_may_rest_and_not_go_back(second: int, anomalies: list[str]) -> None:
    assert found(f"open@0 w@5 w@{second}") == anomalies


def test_a_watermark_goes_back_within_its_scope_and_partition() -> None:
    assert found("s1/1 w@5 s1/2 w@4") == []
    assert found("s1/1 w@5 s1/2 w@4", wm_scope="subscriber") == ["watermark-regress"]
    assert found("s1 w@5 s2 w@4", wm_scope="subscriber") == []
    assert found("s1 w@5 s2 w@4", wm_scope="global") == ["watermark-regress"]
    assert found("w[1]@5 w[2]@4") == []
    assert found("s1 w[1]@5 close s2 w[1]@4", wm_scope="partition") == ["watermark-regress"]
    assert found("s1 w[1]@5 s2 w[1]@4 w[1]@5", wm_scope="partition") == []  # The second reader lags.
    assert found("s1 w[1]@5 s2 w[1]@4 w[1]@3", wm_scope="partition") == ["watermark-regress"]


def test_the_evidence_of_a_regress_is_the_highest_before_it() -> None:
    log = "w@1 w@5 w@5 w@2 w@3"
    assert shown(log, regressions(view(log))) == [("w@2", "w@5"), ("w@3", "w@5")]
    assert regressions(view(log)).watermark.tolist() == [3, 4]
    assert regressions(view(log)).row.tolist() == [1, 1]


def test_a_phantom_has_no_position_and_so_is_not_late() -> None:
    assert found("open@0 w@5 x=1@4", "ok@4 x=2") == ["late-event"]  # Its value is wrong, its position is its own.
    assert found("open@0 w@5 x=1@3", "ok@9 x=2") == []
    assert found("open@0 w@5 x=1@3", "fail x=1") == []
    assert found("open@0 w@5 x=1@3", "info x=1") == ["late-event"]
    assert found("open@0 w@5 x=1@3", "ok@9 x=2", system_events=("expiry",)) == ["late-event"]


def test_a_version_that_may_be_skipped_may_come_later_in_a_replay() -> None:
    log = "s1/1 open@0 x=2@3 w@4 s1/2 open@0 x=1@1 x=2@3"
    assert found(log, wm_scope="subscriber", versions="latest") == []
    assert found(log, wm_scope="subscriber", versions="every") == ["late-event"]
    assert found(log.replace("w@4 s1/2", "w@2 s1/2"), wm_scope="subscriber", versions="latest") == ["late-event"]


def test_witnesses_are_counted_by_their_definitions() -> None:
    witnesses = outcome("open@0 x=1@1 w@1 x=2@2 y=3@2.1 w@2 w@3 x=4@4 x=4@4").witnesses
    assert witnesses["late-event"] == 3  # x=2, y=3 and x=4 came after a watermark; the repetition is none.
    assert witnesses["late-event-boundary"] == 2  # x=2 and y=3 are at the watermark 2.
    assert witnesses["watermark-regress"] == 2
    assert outcome("open@0 w@1 x=1@2 w@2", closed="<").witnesses["late-event-boundary"] == 0
    assert outcome("").witnesses == dict.fromkeys(witnesses, 0)
    assert outcome("w@1 x=1@2 s1/2 w@3").witnesses["watermark-regress"] == 0
    assert outcome("w@1 x=1@2 s1/2 w@3").witnesses["late-event"] == 0


@pytest.mark.parametrize("wide", [1, 10**6])
def test_what_is_asked_of_a_row_does_not_depend_on_how_far_positions_lie_apart(wide: int) -> None:
    late, boundary = late_events(
        view(f"open@0 w@1 x=1@{2 * wide} w@{2 * wide} y=2@{2 * wide} z=3@{3 * wide} w@{9 * wide}")
    )
    assert (late.witnesses, boundary.witnesses, len(boundary.row)) == (3, 2, 1)
