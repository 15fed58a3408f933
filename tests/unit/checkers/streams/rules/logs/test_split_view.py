"""S20 by hand: two sessions that completed a position saw the same there, or did not."""

import pytest

from checkers.streams.rules.logs.split_view import splits, views_of
from tests.worlds.streams.cases import EPOCHS, accused, view

SPLIT = ["split-view"]
BOTH = "s1 open@0 x=1@4 y=2@4 w@4 s2 open@0 {} w@4"


@pytest.mark.parametrize(
    ("rows", "anomalies"),
    [
        ("x=1@4 y=2@4", []),
        ("y=2@4 x=1@4", []),  # Keys have no order among each other.
        ("x=1@4", SPLIT),
        ("", SPLIT),
        ("x=1@4 y=3@4", SPLIT),
        ("x=1@4 y=2@4 z=3@4", SPLIT),
        ("x=1@4 y=2@3", SPLIT),
    ],
)
def test_sessions_agree_on_what_is_at_a_position(rows: str, anomalies: list[str]) -> None:
    assert accused(BOTH.format(rows), "", **EPOCHS) == anomalies


def test_sessions_agree_on_the_order_of_one_key() -> None:
    log = "s1 open@0 x=1@4 x=2@4 w@4 s2 open@0 x=2@4 x=1@4 w@4"
    assert accused(log, "", **EPOCHS) == SPLIT
    assert accused(log, "", **(EPOCHS | {"order_key": "none"})) == []


@pytest.mark.parametrize(("watermark", "closed", "count"), [(3, "<=", 0), (4, "<=", 1), (4, "<", 0), (5, "<", 1)])
def test_only_what_both_completed_is_compared(watermark: int, closed: str, count: int) -> None:
    found, witnesses = splits([views_of(view(f"s1 open@0 x=1@4 w@5 s2 open@0 w@{watermark}", closed=closed))])
    assert (len(found), witnesses) == (count, count)


@pytest.mark.parametrize(("start", "after", "at"), [(3, 1, 1), (4, 0, 1), (5, 0, 0)])
def test_what_a_session_began_behind_it_did_not_complete(start: int, after: int, at: int) -> None:
    log = f"s1 open@0 x=1@4 w@5 s2 open@{start} w@9"
    assert splits([views_of(view(log, resume="after"))])[1] == after
    assert splits([views_of(view(log, resume="at"))])[1] == at


@pytest.mark.parametrize(
    ("session", "is_split"),
    [
        ("open@0 w@3 gap@4 open@4 w@9", False),  # The marker covers 4.
        ("open@0 w@3 gap@5 open@5 w@9", False),  # Nobody ever closed 4: that is no split, but a silent gap.
        ("open@0 w@3 gap open@4 w@9", False),
        ("open@0 w@3 gap w@9", False),
        ("open@0 w@4 gap@4 open@4 w@9", False),  # Announced before, but named in the end.
        ("open@0 w@4 gap@5 open@5 w@9", True),
        ("open@0 w@4 open@3 close", True),  # A new beginning takes nothing back.
        ("open@0 w@3 gap@4 close", False),
        ("open w@9", False),  # From where on, nobody said.
        ("open:x@0 w@9", False),
        ("open[0]@0 w@9", False),
        ("open@0 w[0]@9", False),
        ("open@0 ~x=1@4 w@9", False),  # A snapshot shows a state, not what was at a position.
        ("open@0 w@9", True),
    ],
)
def test_only_the_whole_stream_without_a_gap_is_compared(session: str, is_split: bool) -> None:
    log = f"s1 open@0 x=1@4 w@9 s2 {session}"
    assert bool(splits([views_of(view(log, "", **EPOCHS))])[0]) is is_split


def test_streams_that_may_skip_versions_or_number_their_partitions_may_differ() -> None:
    for changes in ({"versions": "latest"}, {"is_position_global": False}):
        assert splits([views_of(view(BOTH.format(""), "", **changes))]) == ([], 0)


def test_repetitions_and_phantoms_make_no_difference() -> None:
    source = "ok@4 x=1 y=2; fail z=9"
    assert "split-view" not in accused(BOTH.format("x=1@4 y=2@4 x=1@4 z=9@4"), source, **EPOCHS)


def test_each_pair_of_subscribers_is_reported_once_with_its_first_position() -> None:
    log = "s1 open@0 x=1@2 x=2@4 w@9 s2 open@0 w@9 s3 open@0 x=1@2 w@9"
    found, witnesses = splits([views_of(view(log))])
    assert [(s.one.subscriber, s.other.subscriber, s.one.position, s.count) for s in found] == [
        (1, 2, 2, 2),
        (1, 3, 4, 1),
    ]
    assert witnesses == 2


def test_two_sessions_of_one_subscriber_are_compared_too() -> None:
    assert accused("s1/1 open@0 x=1@4 w@4 s1/2 open@0 w@4", "", **EPOCHS) == SPLIT
    assert accused("s1/1 open@0 x=1@4 w@4 s1/2 open@4 w@9", "", **EPOCHS) == []
