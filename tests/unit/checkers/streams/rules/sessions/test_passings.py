"""S09 where no watermark follows, by hand: what a later row closes, and for each condition a stream that is legal."""

import pytest

from tests.worlds.streams.cases import accused, outcome

MISSING = ["missing-event"]
FOUR = "ok@1 x=1; ok@2 y=2; ok@3 x=3; ok@4 z=4"


@pytest.mark.parametrize(("passing", "anomalies"), [(1, []), (2, []), (3, MISSING)])
def test_a_row_above_a_write_closes_it_and_one_at_its_position_does_not(passing: int, anomalies: list[str]) -> None:
    source = f"ok@2 y=2; ok@{passing} x=1"
    assert accused(f"open@0 x=1@{passing}", source) == anomalies


def test_the_first_row_that_closes_a_write_is_named() -> None:
    log = "open@0 x=1@1 x=3@3 z=4@4"
    [example] = outcome(log, FOUR).examples
    assert (example.anomaly, example.watermark.position, example.missed and example.missed.position) == (*MISSING, 3, 2)


def test_a_key_that_never_had_an_event_is_missed_where_the_session_covers_everything() -> None:
    assert accused("open@0 x=1@1 x=3@3", FOUR) == MISSING
    assert accused("open x=1@1 x=3@3", FOUR) == []  # Nobody knows that y was to be shown (e).


# (a) The order includes the write.


@pytest.mark.parametrize(
    ("order", "anomalies"), [("global", MISSING), ("partition", MISSING), ("key", []), ("none", [])]
)
def test_only_a_row_in_one_order_with_the_write_closes_it(order: str, anomalies: list[str]) -> None:
    assert accused("open@0 x=1@1 x=3@3", FOUR, order_key=order) == anomalies


@pytest.mark.parametrize(("span", "anomalies"), [(0, MISSING), (1, [])])
def test_a_row_of_another_partition_closes_nothing(span: int, anomalies: list[str]) -> None:
    source = f"ok@1 y[0]=1; ok@2 y[0]=2; ok@3 x[{span}]=3"
    log = f"open@0 y[0]=1@1 x[{span}]=3@3"
    assert accused(log, source, order_key="partition") == anomalies


def test_of_a_key_on_an_unknown_partition_nothing_is_closed() -> None:
    assert accused("open@0 x[0]=1@1 x[0]=3@3", "ok@1 x=1; ok@2 y=2; ok@3 x=3", order_key="partition") == []


# (b), (c) Positions of units.


def test_inside_a_unit_of_several_positions_a_row_closes_earlier_units_only() -> None:
    changes = {"atomic_unit": "epoch", "position": "offset"}
    source = "ok@1e1 x=1; ok@2e2 y=2; ok@3e2 x=3; ok@4e3 z=4"
    assert accused("open@0 x=1@1 e1 x=3@3 e2", source, **changes) == []
    assert accused("open@0 x=1@1 e1 x=3@3 e2 z=4@4 e3", source, **changes) == MISSING


# (d) The row is a first delivery of a placed write.


@pytest.mark.parametrize("row", ["~x=3@3", "x=8@9", "x=1@1"])
def test_a_snapshot_a_phantom_and_a_repetition_close_nothing(row: str) -> None:
    assert "missing-event" not in accused(f"open@0 x=1@1 {row}", FOUR, replay="session", delivery="exactly-once")


def test_a_row_that_comes_in_the_wrong_order_closes_nothing() -> None:
    source = "ok@1 y=1; ok@2 y=2; ok@3 x=3; ok@5 z=5"
    assert accused("open z=5@5 y=1@1 x=3@3", source) == ["order-inversion"]


def test_a_row_of_a_former_owner_closes_nothing() -> None:
    source = "ok@1 x=1; ok@2 y=2; ok@3 x=3"
    assert accused("open@0 x=1@1 e2 x=3@3 e1", source, epochs="owners") == ["zombie"]
    assert accused("open@0 x=1@1 e2 x=3@3 e2", source, epochs="owners") == MISSING


# (e) The write is certain, has a position, and its key is covered.


@pytest.mark.parametrize("write", ["info@2 y=2", "info y=2", "ok y=2", "fail@2 y=2"])
def test_a_write_that_is_unclear_or_without_a_position_is_not_owed(write: str) -> None:
    assert accused("open@0 x=1@1 x=3@3", f"ok@1 x=1; {write}; ok@3 x=3") == []


@pytest.mark.parametrize(("start", "anomalies"), [(1, MISSING), (2, [])])
def test_a_write_at_the_start_or_below_is_not_owed(start: int, anomalies: list[str]) -> None:
    assert accused(f"open@{start} x=3@3", FOUR) == anomalies


def test_a_filter_and_a_gap_marker_end_what_is_owed() -> None:
    assert accused("open:x@0 x=1@1 x=3@3", FOUR) == []
    assert accused("open@0 x=1@1 gap x=3@3", FOUR) == []
    assert accused("open@0 x=1@1 x=3@3 gap", FOUR) == []  # The marker may name what came before it.


def test_a_snapshot_shows_what_came_before_it() -> None:
    assert accused("open@0 ~x=1@2 x=3@3", FOUR) == []
    assert accused("open@0 ~x=1@1 x=3@3", FOUR) == MISSING


# (f) Versions that need not be sent.


@pytest.mark.parametrize(
    ("versions", "source", "anomalies"),
    [
        ("every", "ok@1e1 x=1; ok@2e1 x=2; ok@3e1 y=3; ok@4e2 x=4", MISSING),
        ("latest-per-epoch", "ok@1e1 x=1; ok@2e1 y=2; ok@3e1 y=3; ok@4e2 x=4", []),
        ("latest-per-epoch", "ok@1e1 x=1; ok@2e1 y=2; ok@3e2 y=3; ok@4e2 x=4", MISSING),
        ("latest", "ok@1e1 x=1; ok@2e1 y=2; ok@3e2 y=9; ok@4e2 x=4", MISSING),  # Of y=9.
        ("latest", "ok@1e1 x=1; ok@2e1 y=2; ok@4e2 x=4; ok@9e2 y=3", []),  # y=2 is replaced by what has yet to come.
    ],
)
def test_a_version_that_is_replaced_is_not_owed(versions: str, source: str, anomalies: list[str]) -> None:
    middle = "y=3@3 e1" if "ok@3e1 y=3" in source else "y=3@3 e2" if "ok@3e2 y=3" in source else ""
    kept = accused(f"open@0 x=1@1 e1 {middle} x=4@4 e2", source, versions=versions)
    assert kept == anomalies


def test_a_write_that_changes_nothing_is_not_owed_where_it_has_no_event() -> None:
    source = "ok@1 x=1; ok@2 y=2; ok@3 x=3; ok@4 y=2; ok@5 x=5"
    log = "open@0 x=1@1 y=2@2 x=3@3 x=5@5"
    assert accused(log, source) == MISSING
    assert accused(log, source, has_noop_events=False) == []


# (g) What may still come.


@pytest.mark.parametrize(
    ("delivery", "replay", "anomalies"),
    [
        ("at-most-once", "resume", []),
        ("at-least-once", "session", []),
        ("at-least-once", "resume", MISSING),
        ("exactly-once", "resume", MISSING),
    ],
)
def test_a_stream_that_may_drop_or_repeat_events_owes_nothing_yet(
    delivery: str, replay: str, anomalies: list[str]
) -> None:
    assert accused("open@0 x=1@1 x=3@3", FOUR, delivery=delivery, replay=replay) == anomalies


def test_what_comes_later_came_in_the_wrong_order() -> None:
    assert accused("open@0 x=1@1 x=3@3 y=2@2", FOUR) == ["order-inversion"]


# (h) Numbers.


def test_a_hole_in_the_numbers_shows_nothing() -> None:
    assert accused("open@0 x=1@1 z=4@9", "ok@1 x=1; fail y=2; ok@9 z=4") == []


# Starts.


def test_a_hole_behind_a_first_opening_is_one_of_its_snapshot_if_there_is_one() -> None:
    source = "ok@1 x=1; ok@2 x=2; ok@3 x=3"
    assert accused("open@1 ~x=1@1 x=3@3", source, order_key="key") == ["hand-over-hole"]
    assert accused("open@1 x=3@3", source, order_key="key") == MISSING
    assert accused("open@1 x=3@3", source, order_key="key", replay="session") == ["resume-hole"]
