"""S13 by hand: what a resume owes; and the holes behind snapshots of S25."""

import pytest

from checkers.streams.rules.sessions.holes import holes
from checkers.streams.view import Ruling
from tests.worlds.streams.cases import accused, shown, view

HOLE = ["resume-hole"]
THREE = "ok@2 x=1; ok@4 x=2; ok@6 x=3"
SUBSCRIBER: dict[str, object] = {"wm_scope": "subscriber"}


def resumes(log: str, source: str = THREE, **changes: object) -> Ruling:
    return holes(view(log, source, **changes)).resumes


@pytest.mark.parametrize(("start", "after", "at"), [(3, HOLE, HOLE), (4, [], HOLE), (5, [], [])])
def test_a_resume_owes_what_lies_behind_its_position(start: int, after: list[str], at: list[str]) -> None:
    log = f"s1/1 open@0 x=1@2 s1/2 open@{start} x=3@6"
    assert accused(log, THREE, resume="after") == after
    assert accused(log, THREE, resume="at") == at


@pytest.mark.parametrize(("position", "anomalies"), [(3, []), (4, []), (5, HOLE)])
def test_only_a_newer_event_of_the_key_shows_what_was_left_out(position: int, anomalies: list[str]) -> None:
    source = "ok@2 x=1; ok@4 x=2; ok x=3"
    assert accused(f"s1/1 open@0 x=1@2 s1/2 open@2 x=3@{position}", source) == anomalies
    passed = accused(f"s1/1 open@0 x=1@2 s1/2 open@2 y=3@{position}", "ok@2 x=1; ok@4 x=2; ok y=3")
    assert passed == (["missing-event"] if position == 5 else [])


@pytest.mark.parametrize(("start", "after", "at"), [(3, [], []), (4, HOLE, []), (5, HOLE, HOLE)])
def test_sessions_that_join_leave_no_write_between_them(start: int, after: list[str], at: list[str]) -> None:
    log = f"s1/1 open@0 x=1@2 s1/2 open@{start}"
    for resume, anomalies in (("after", after), ("at", at)):
        assert accused(log, THREE, resume=resume, sessions="joined") == anomalies
        assert accused(log, THREE, resume=resume) == []


def test_what_comes_in_a_closed_session_does_not_join_it_with_the_next() -> None:
    log = "s1/1 open@0 x=1@2 close s1/2 open@5 s1/1 x=2@4 s1/2 x=3@6"
    assert accused(log, THREE, sessions="joined", wm_scope="subscriber") == HOLE


@pytest.mark.parametrize(
    "log",
    [
        "s1/1 open@0 x=1@2 x=2@4 s1/2 open@5 x=3@6",
        "s1/1 open@0 x=1@2 s1/2 open@5 s1/3 open@2 x=2@4 x=3@6",  # It comes in the end.
        "s1/1 open@0 x=1@2 s2 open@5 x=3@6",  # Another subscriber begins.
        "s1/1 open@0 x=1@2 s1/2 open@5 ~x=2@5 x=3@6",  # A snapshot has it.
        "s1/1 open@0 x=1@2 gap@3 s1/2 open@5 x=3@6",  # The stream reported its loss.
        "s1/1 open@0 x=1@2 end s1/2 open@5 x=3@6",  # The log ended, and another one begins.
        "s1/1 open@5 s1/2 open@5 x=3@6",  # Neither covers it.
        "s1/1 open:y@0 s1/2 open@5 x=3@6",
        "s1/1 open@0 x=1@2 s1/2 open@5 s1/1 x=2@4 s1/2 x=3@6",  # The first is still connected.
    ],
)
def test_what_joined_sessions_do_not_owe_is_no_hole(log: str) -> None:
    assert accused(log, THREE, sessions="joined") == []


@pytest.mark.parametrize(("watermark", "inclusive", "exclusive"), [(3, [], []), (4, HOLE, []), (5, HOLE, HOLE)])
def test_a_watermark_shows_that_what_had_come_before_was_not_sent_again(
    watermark: int, inclusive: list[str], exclusive: list[str]
) -> None:
    log = f"s1/1 open@0 x=1@2 x=2@4 s1/2 open@2 w@{watermark}"
    assert accused(log, THREE, closed="<=", **SUBSCRIBER) == inclusive
    assert accused(log, THREE, closed="<", **SUBSCRIBER) == exclusive


FOUR = "ok@2 x=1; ok@4 x=2; ok@6 x=3; ok@8 x=4"
REPLAYING: dict[str, object] = {"replay": "session", "order_key": "key", "delivery": "at-least-once"}


@pytest.mark.parametrize(
    "again",
    [
        "x=2@4 x=4@8",  # Two nodes of a changefeed, which both send again: the first had sent x=2, the other x=4.
        "x=1@2 x=3@6 x=4@8",
        "x=2@4 x=1@2 x=4@8",
    ],
)
def test_what_comes_again_inside_a_session_need_not_be_contiguous(again: str) -> None:
    """Each row that is sent again may be a run of its own: no reader can tell whether two of them are one."""
    assert accused(f"s1/1 open@0 x=1@2 x=2@4 x=3@6 x=4@8 {again}", FOUR, **REPLAYING) == []


def test_what_comes_again_does_not_hide_what_never_came() -> None:
    for again in ("", "x=2@4 x=4@8"):
        assert accused(f"s1/1 open@0 x=1@2 x=2@4 x=4@8 {again}", FOUR, **REPLAYING) == HOLE
    resumed = "s1/1 open@0 x=1@2 x=2@4 x=3@6 x=4@8 s1/2 open@2 x=2@4 x=4@8"
    assert accused(resumed, FOUR, order_key="key") == HOLE  # After a resume the runs are known: it owes x=3.


def test_what_never_came_at_all_is_missing_and_no_hole_as_well() -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=3@6 w@5"
    assert accused(log, THREE) == ["missing-event"]
    assert accused(log, THREE, **SUBSCRIBER) == ["missing-event"]


@pytest.mark.parametrize(
    "log",
    [
        "s1/1 open@0 x=1@2 x=2@4 w@4 s1/2 open@2 x=2@4 x=3@6 w@6",  # It came again.
        "s1/1 open@0 x=1@2 s1/2 open@0 x=1@2 x=2@4 x=3@6",
        "open@0 x=1@2 x=3@6",  # The first session, of which the other rules speak.
        "s1/1 open@0 x=1@2 s1/2 open x=3@6",  # From where on, nobody said.
        "s1/1 open@0 x=1@2 s1/2 open@2 gap@4 open@4 x=3@6",
        "s1/1 open@0 x=1@2 s1/2 open@2 x=3@6 gap@4 close",  # It says so, before a watermark speaks of it.
        "s1/1 open@0 x=1@2 s1/2 open@2 ~x=2@5 x=3@6",  # A snapshot shows what became of it.
        "s1 open@0 x=1@2 s2 open@2 x=3@6",  # Another subscriber begins.
        "s1/1 open@0 x=1@2 s1/2 open:y@2 x=3@6",
    ],
)
def test_what_a_resume_does_not_owe(log: str) -> None:
    assert "resume-hole" not in accused(log, THREE, **SUBSCRIBER)


def test_lower_events_are_repetitions_and_later_ones_are_in_the_wrong_order() -> None:
    assert accused("s1/1 open@0 x=1@2 x=2@4 s1/2 open@2 x=1@2 x=2@4 x=3@6", THREE, **SUBSCRIBER) == []
    assert accused("s1/1 open@0 x=1@2 s1/2 open@2 x=3@6 x=2@4", THREE) == ["order-inversion"]


def test_where_events_come_at_most_once_or_in_no_order_nothing_is_owed_before_a_watermark() -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=3@6"
    assert accused(log, THREE, delivery="exactly-once") == HOLE
    assert accused(log, THREE, delivery="at-most-once") == []
    assert accused(log, THREE, order_key="none") == []


@pytest.mark.parametrize(
    ("versions", "source", "anomalies"),
    [
        ("latest", THREE, []),
        ("latest-per-epoch", "ok@2e1 x=1; ok@4e2 x=2; ok@6e2 x=3", []),
        ("latest-per-epoch", "ok@2e1 x=1; ok@4e1 x=2; ok@6e2 x=3", HOLE),
    ],
)
def test_a_version_that_a_newer_one_may_replace_is_no_hole(versions: str, source: str, anomalies: list[str]) -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=3@6 e2"
    assert accused(log, source, versions=versions) == anomalies


def test_partitions_with_positions_of_their_own_are_not_compared() -> None:
    log, source = "s1/1 open@0 x[1]=1@2 s1/2 open@2 x[2]=3@6", "ok@2 x=1; ok@4 x[1]=2; ok@6 x=3"
    assert "resume-hole" not in accused(log, source, order_key="partition", is_position_global=False)


def test_what_another_reader_of_the_group_received_is_not_owed_again() -> None:
    log = "s1/1 open@0 x=1@2 s2 open@0 x=2@4 s1/2 open@2 x=3@6"
    assert accused(log, THREE, wm_scope="global") == []
    assert accused(log, THREE, wm_scope="subscriber") == ["missing-event", *HOLE]  # s2 never received x=1.


def test_each_hole_is_reported_once_with_the_first_event_that_shows_it() -> None:
    log = "s1/1 open@0 x=1@2 x=2@4 s1/2 open@2 x=3@6 w@6 w@7"
    ruling = resumes(log, THREE, **SUBSCRIBER)
    assert shown(log, ruling) == [("x=3@6", "open@2")]
    assert ruling.write.tolist() == [1]


def test_another_row_of_the_unit_is_not_the_newer_event_that_shows_a_hole() -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=5@4.1 x=3@6"
    assert shown(log, resumes(log, "ok@2 x=1; ok@4 x=2 x=5; ok@6 x=3")) == [("x=3@6", "open@2")]


def test_witnesses_are_resumes_of_which_something_tells() -> None:
    assert resumes("s1/1 open@0 x=1@2 s1/2 open@2 x=2@4").witnesses == 0  # Nothing behind it tells of the next one.
    assert resumes("s1/1 open@0 x=1@2 s1/2 open@2 x=2@4 x=3@6").witnesses == 1
    assert resumes("s1/1 open@0 x=1@2 s1/2 open@2 x=2@4 w@4").witnesses == 1
    assert resumes("s1/1 open@0 s1/2 open@0 x=1@2 w@2").witnesses == 0  # No write before it.
    assert resumes("s1/1 open@0 s1/2 open@1 x=1@2 w@2").witnesses == 0  # The first one is just behind it.
    assert resumes("open@0 x=1@2 w@2 x=2@4 x=3@6 w@6").witnesses == 0
    assert resumes("s1/1 open@0 s1/2 open@0 x=1@2 x=2@4").witnesses == 0  # Nor before that, which tells of the first.


def test_witnesses_of_resumes_and_of_snapshots_are_counted_apart() -> None:
    def counts(log: str) -> tuple[int, int]:
        found = holes(view(log, THREE))
        return found.resumes.witnesses, found.backfills.witnesses

    assert counts("s1/1 open@0 x=1@2 s1/2 open@2 x=2@4 x=3@6") == (1, 0)
    assert counts("open ~x=1@3 x=2@4 x=3@6") == (0, 1)
    assert counts("open ~x=9@1 x=1@2 x=2@4") == (0, 1)  # Before it nothing was written: what it shows, it shows.


def test_one_unit_has_no_newer_event_of_a_key() -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=5@4.1"
    assert not len(resumes(log, "ok@2 x=1; ok@4 x=2 x=5").write)


def test_where_versions_may_be_skipped_a_replay_in_a_session_owes_nothing() -> None:
    log = "s1/1 open@0 x=1@2 s1/2 open@2 x=3@6"
    assert resumes(log, replay="session").write.tolist() == [1]
    assert not len(resumes(log, replay="session", versions="latest-per-epoch").write)


def test_only_where_partitions_are_apart_a_row_must_name_its_own() -> None:
    log = "s1/1 open@0 x[1]=1@2 s1/2 open@2 x=3@6"
    assert resumes(log).write.tolist() == [1]
    assert not len(resumes(log, order_key="partition").write)
    assert not len(resumes(log, is_position_global=False).write)


# S25


@pytest.mark.parametrize(("position", "anomalies"), [(3, ["hand-over-hole"]), (4, []), (5, [])])
def test_behind_a_snapshot_every_version_comes(position: int, anomalies: list[str]) -> None:
    value = 1 if position < 4 else 2
    assert accused(f"open ~x={value}@{position} x=3@6", THREE) == anomalies


def test_a_hole_behind_a_snapshot_that_a_watermark_closes_is_missing() -> None:
    assert accused("open ~x=1@3 x=3@6 w@6", THREE) == ["missing-event"]
    assert accused("s1/1 open@2 x=2@4 s1/2 open ~x=1@3 w@6", THREE, **SUBSCRIBER) == ["missing-event", "hand-over-hole"]


def test_behind_a_snapshot_of_unknown_position_nothing_is_owed() -> None:
    assert accused("open ~x=1 x=3@6", THREE) == []
