"""S19 by hand: what a subscriber has built at a watermark, beside what the source had there."""

import pytest

from checkers.streams.rules.watermarks.state_mismatch import state_mismatches
from tests.worlds.streams.cases import EPOCHS, accused, shown, view

MISMATCH = "state-mismatch"
EPOCH = "ok@4 x=1#0; ok@4 x=2#1"
ACROSS = "ok@4 x=1#0; ok@5 x=2#1"


def test_the_last_row_of_a_key_in_an_epoch_is_its_newest_version() -> None:
    assert accused("open@0 x=1@4 x=2@4 w@4", EPOCH, **EPOCHS) == []
    assert accused("open@0 x=2@4 x=1@4 w@4", EPOCH, **EPOCHS) == ["order-inversion", MISMATCH]


def test_rows_that_came_with_a_wrong_epoch_build_a_wrong_state() -> None:
    # Nobody but the stream knows where the second transaction is: it says 3, behind which the source had no version.
    source = "ok@4 x=1#0; info x=2#1"
    assert accused("open@0 x=2@3 x=1@4 w@4", source, **EPOCHS) == [MISMATCH]
    assert accused("open@0 x=1@4 x=2@5 w@5", source, **EPOCHS) == []


@pytest.mark.parametrize(("watermark", "anomalies"), [(3, []), (4, [MISMATCH]), (5, [MISMATCH])])
def test_only_what_a_watermark_closes_is_built_at_it(watermark: int, anomalies: list[str]) -> None:
    assert accused(f"open@0 x=2@3 x=1@4 w@{watermark}", "ok@4 x=1#0; ok@3 x=2#1", **EPOCHS) == anomalies


@pytest.mark.parametrize("source", ["ok@4 x=1#0; ok@4 x=2", "ok@4 x=1; ok@4 x=2#0", "ok@4 x=1; ok@4 x=2"])
def test_of_versions_whose_order_nobody_knows_none_is_stale(source: str) -> None:
    assert MISMATCH not in accused("open@0 x=2@4 x=1@4 w@4", source, **EPOCHS)


@pytest.mark.parametrize(
    ("log", "source", "explained_by"),
    [
        ("open@0 x=1@4 w@5", ACROSS, ["missing-event", "silent-gap"]),
        ("open@0 x=1@4 w@5 x=2@5", ACROSS, ["late-event-boundary"]),
        ("open@0 x=2@5 w@5 x=1@4", ACROSS, ["late-event", "order-inversion"]),
        ("open@0 x=2@4 w@4", EPOCH, ["missing-event", "silent-gap"]),
        ("open@0 x=2@4 w@4 x=1@4", EPOCH, ["late-event-boundary", "order-inversion"]),
    ],
)
def test_what_was_missing_or_late_is_not_blamed_twice(log: str, source: str, explained_by: list[str]) -> None:
    assert accused(log, source, **EPOCHS) == explained_by


def test_only_what_came_last_before_a_watermark_counts_at_it() -> None:
    source = "ok@4 x=1#0; ok@4 x=2#1; ok@4 x=3#2"
    assert accused("open@0 x=2@4 x=1@4 x=3@4 w@4", source, **EPOCHS) == ["order-inversion"]
    later = view("open@0 x=2@4 x=1@4 w@4 x=3@5 w@5", "ok@4 x=1#0; ok@4 x=2#1; ok@5 x=3#2", **EPOCHS)
    assert state_mismatches(later).watermark.tolist() == [3]


def test_a_version_from_before_the_session_is_not_compared() -> None:
    assert accused("open@3 x=1@4 w@4", "ok@4 x=1#0; ok@3 x=2#1", **EPOCHS) == []
    # A gap begins anew.
    assert accused("open@0 x=2@3 w@3 gap@4 open@4 x=1@5 w@5", "ok@5 x=1#0; ok@3 x=2#1", **EPOCHS) == []


def test_each_key_is_reported_once_a_session_at_the_first_watermark_that_shows_it() -> None:
    log = "open@0 x=2@4 x=1@4 w@4 w@5"
    ruling = state_mismatches(view(log, EPOCH, **EPOCHS))
    assert shown(log, ruling) == [("w@4", "x=1@4")]
    assert ruling.write.tolist() == [1]


def test_a_repetition_builds_nothing() -> None:
    log = "open@0 x=1@4 x=2@5 x=1@4 w@5"
    assert accused(log, ACROSS, delivery="at-least-once", replay="session") == []


def test_rows_of_one_position_that_came_in_two_sessions_have_no_order() -> None:
    """The first session lost the older version in a gap; the second one shows both, in their order."""
    log = "s1/1 open@0 gap@4 x=2@4 s1/2 open@0 x=1@4 x=2@4 w@4"
    changes = EPOCHS | {"delivery": "at-least-once", "wm_scope": "subscriber"}
    assert accused(log, EPOCH, **changes) == []
    assert MISMATCH in accused("s1/1 open@0 x=2@4 x=1@4 s1/2 open@0 x=2@4 x=1@4 w@4", EPOCH, **changes)


def test_witnesses_are_watermarks_that_close_a_version_behind_another() -> None:
    def witnesses(log: str, source: str) -> int:
        return state_mismatches(view(log, source, **EPOCHS)).witnesses

    assert witnesses("open@0 x=1@4 w@4 x=2@5 w@5 w@6", ACROSS) == 1
    assert witnesses("open@0 x=1@4 x=2@4 w@4", EPOCH) == 1
    assert witnesses("open@0 x=1@4 x=2@4 w@4", "ok@4 x=1#0; ok@4 x=2") == 0
    assert witnesses("open@0 x=1@4 y=2@4 w@4", "ok@4 x=1#0 y=2#0") == 0
