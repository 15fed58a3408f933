"""S25 by hand: what a snapshot lacks, shows too old, or brings back."""

from dataclasses import replace

import pytest

from checkers.columns.index import is_kind
from checkers.streams.rules.sessions import hand_over_hole
from checkers.streams.rules.sessions.hand_over_hole import hand_over_holes
from checkers.streams.view import Ruling, stream_view
from harness.core.columns import NEVER, Bools, Int8s
from tests.worlds.streams.cases import accused, contract, shown, view
from tests.worlds.streams.language import deliveries_of, events, source_of, writes

HOLE = ["hand-over-hole"]
TWO = "ok@2 x=1; ok@4 x=2"


def ruling(log: str, source: str = TWO, **changes: object) -> Ruling:
    return hand_over_holes(view(log, source, **changes))


@pytest.mark.parametrize(("position", "inclusive", "exclusive"), [(3, [], []), (4, HOLE, []), (5, HOLE, HOLE)])
def test_a_snapshot_shows_the_newest_version_at_its_position(
    position: int, inclusive: list[str], exclusive: list[str]
) -> None:
    assert accused(f"open ~x=1@{position}", TWO, closed="<=") == inclusive
    assert accused(f"open ~x=1@{position}", TWO, closed="<") == exclusive
    assert accused(f"open ~x=2@{position + 1}", TWO) == []


@pytest.mark.parametrize(
    "source",
    [
        "ok@2 x=1; ok x=2",  # Where the newer one is, nobody knows.
        "ok@2 x=1; fail@4 x=2",
        "ok@2 x=1; info@4 x=2",
        "ok@2 x=1; ok@4 x=2; ok@5 x=1",  # It was written again.
        "",
    ],
)
def test_an_older_value_may_be_right(source: str) -> None:
    assert accused("open ~x=1@5", source) == []


def test_an_operation_that_only_a_snapshot_shows_has_no_position() -> None:
    """The snapshot at 7 shows y of the first operation, which was long before the second."""
    assert accused("open ~y=3@7 ~x=2@7", "ok x=1 y=3; ok@5 x=2") == []


@pytest.mark.parametrize(("position", "anomalies"), [(3, HOLE), (4, []), (5, [])])
def test_a_row_of_a_snapshot_does_not_come_behind_a_newer_event(position: int, anomalies: list[str]) -> None:
    source = "ok@3 x=1; ok@4 x=2" if position == 3 else TWO
    value = 1 if position == 3 else 2
    assert accused(f"open@0 x=2@4 ~x={value}@{position}", f"{source}; ok@7 y=9") == anomalies


@pytest.mark.parametrize(
    "log",
    [
        "open@0 x=2@4 ~x=2@3",  # It shows what the event shows.
        "open@0 x=2@4 open ~x=1@3",  # A new beginning.
        "open@0 x=2@4 gap ~x=1@3",
        "open@0 ~x=1@3 x=2@4 ~x=1@3",  # A repetition.
        "open@0 y=7@4 ~x=1@3",
        "s1/1 open@0 x=2@4 s1/2 open ~x=1@3",
    ],
)
def test_what_only_looks_like_an_old_row_behind_a_new_event(log: str) -> None:
    assert accused(log, "", replay="session") == []


def test_where_events_have_no_order_an_old_row_does_no_harm() -> None:
    log = "open@0 x=2@4 ~x=1@3"
    assert accused(log, "") == HOLE
    assert accused(log, "", order_key="none") == []


WHOLE: dict[str, object] = {"backfill": "whole"}
KEYS = "ok@2 x=1; ok@4 y=2; ok@6 z=3"


@pytest.mark.parametrize(("position", "anomalies"), [(3, []), (4, HOLE), (5, HOLE)])
def test_a_whole_snapshot_holds_every_key_that_was_there(position: int, anomalies: list[str]) -> None:
    log = f"open ~x=1@{position} w@{position}"
    assert accused(log, KEYS, **WHOLE) == anomalies
    assert accused(log, KEYS) == []


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("open ~x=1@5 ~y=2@5 w@5", KEYS),
        ("open ~x=1@5 w@4", KEYS),  # It may still go on.
        ("open ~x=1@5 w@5 ~y=2@5", KEYS),
        ("open:x ~x=1@5 w@5", KEYS),  # Of the others nothing was asked.
        ("open ~x=1@3 ~z=3@6 w@6", KEYS),  # Pieces of several positions.
        ("open ~x=1@5 w@5", "ok@2 x=1; ok@4 y=2; ok y=3"),  # The last write of y may have been anywhere.
        ("open ~x=1@5 w@5", "ok@2 x=1; fail@4 y=2"),
        ("s1/1 ~x=1@5 w@5", KEYS),  # Nobody knows what this session asked for.
    ],
)
def test_of_what_may_be_absent_nothing_is_said(log: str, source: str) -> None:
    assert accused(log, source, **WHOLE) == []


def test_each_key_is_reported_once_a_session() -> None:
    log = "open ~x=1@5 ~x=1@5 w@5 w@6"
    found = ruling(log, "ok@2 x=1; ok@4 x=2; ok@4 y=3", **WHOLE)
    assert shown(log, found)[0] == ("~x=1@5", "~x=1@5")
    assert (found.watermark.tolist(), found.write.tolist()) == ([1, 3], [1, 2])


def test_rows_of_a_whole_snapshot_are_not_sought_among_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(kind: Int8s, kinds: tuple[int, ...]) -> Bools:
        looked.append(len(kind))
        return is_kind(kind, kinds)

    monkeypatch.setattr(hand_over_hole, "is_kind", counted)

    def cost(snapshots: int) -> int:
        looked.clear()
        assert ruling("open ~x=1@5 w@5 " * snapshots, KEYS, **WHOLE).write.tolist() == [1]
        return sum(looked)

    assert cost(40) <= 5 * cost(10)


def test_every_key_that_a_whole_snapshot_lacks_is_reported() -> None:
    assert ruling("open ~x=1@7 w@7", KEYS, **WHOLE).write.tolist() == [1, 2]


def test_a_row_of_a_snapshot_at_the_position_of_an_event_is_not_behind_it() -> None:
    assert not len(ruling("open@0 x=2@4 ~x=1@4", "").watermark)
    assert len(ruling("open@0 x=2@5 ~x=1@4", "").watermark) == 1


def test_a_key_that_two_snapshots_of_a_session_lack_is_reported_once() -> None:
    log, source = "open ~x=5@3 w@3 open ~x=5@7 w@7", "ok@2 y=1; ok@1 x=5; ok@6 y=3"
    assert ruling(log, source, **WHOLE).write.tolist() == [0]


def test_the_first_write_of_all_may_be_the_newest() -> None:
    assert accused("open ~x=1@5", "ok@4 x=2; ok@2 x=1") == HOLE


@pytest.mark.parametrize(
    "log",
    [
        "s1/1 open@0 y=2@4 s1/2 open ~x=1@5 w@5",  # Another session had it.
        "open ~x=1@5 w@5 y=2@4",  # It comes too late.
        "open@0 y=2@4 open ~x=1@5 w@5",  # It came before all was opened anew.
    ],
)
def test_what_came_elsewhere_is_not_in_a_whole_snapshot(log: str) -> None:
    assert ruling(log, KEYS, **WHOLE).write.tolist() == [1]


def deleting(log: str, source: str, value: int, **changes: object) -> Ruling:
    """Where the write of that value was a delete."""
    written = [replace(w, value=NEVER) if w.value == value else w for w in writes(source)]
    return hand_over_holes(stream_view(deliveries_of(events(log)), source_of(written), contract(**changes)))


def test_a_key_that_was_deleted_is_not_lacking_and_one_that_is_shown_as_deleted_not_stale() -> None:
    assert not len(deleting("open ~x=1@5 w@5", KEYS, 2, **WHOLE).watermark)
    assert len(deleting("open ~x=1@5 w@5", KEYS, 3, **WHOLE).watermark) == 1
    assert not len(deleting("open ~x[1]@5", "ok@2 x[1]=1; ok@4 x[1]=2", 1).watermark)


def test_only_a_watermark_of_the_whole_that_closes_its_position_ends_a_snapshot() -> None:
    assert not len(ruling("open ~x=1@5 w[0]@5", KEYS, **WHOLE).watermark)
    assert not len(ruling("open ~x=1@5 w@5", KEYS, closed="<", **WHOLE).watermark)
    assert len(ruling("open ~x=1@5 w@6", KEYS, closed="<", **WHOLE).watermark) == 1


def test_the_first_event_of_all_may_be_newer_than_a_row_of_a_snapshot() -> None:
    assert len(ruling("x=2@4 ~x=1@3", "").watermark) == 1


def test_behind_a_snapshot_of_what_nobody_wrote_a_hole_is_one_as_well() -> None:
    assert ruling("open ~x=7@4 x=3@7", "ok@5 x=9; ok@7 x=3").write.tolist() == [0]


def test_witnesses_are_keys_that_were_written_behind_a_snapshot_or_asked_for() -> None:
    assert ruling("open ~x=1@3 x=2@4").witnesses == 1
    assert ruling("open ~x=2@4").witnesses == 0
    assert ruling("open ~x=1@3", "ok@4 x=2; ok@2 x=1").witnesses == 1
    assert ruling("open@0 x=1@2 x=2@4 w@4").witnesses == 0
    assert ruling("open ~x=2@5 w@5", "ok@2 x=1; ok@4 x=2; ok@1 y=1", **WHOLE).witnesses == 2
