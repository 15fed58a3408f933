"""S03 by hand: what may not come again, and what may."""

import pytest

from checkers.streams.rules.events.duplicate_event import confirmed_again, duplicate_events
from tests.worlds.streams.cases import EPOCHS, accused, in_blocks_of, shown, view

DUPLICATE = ["duplicate-event"]
EXACT: dict[str, object] = {"delivery": "exactly-once", "wm_scope": "subscriber"}
TWICE = "open@0 x=1@4 w@4 x=1@4"
TWO_SESSIONS = "s1/1 open@0 x=1@4 s1/2 open x=1@4"


@pytest.mark.parametrize(
    ("delivery", "replay", "anomalies"),
    [
        ("exactly-once", "resume", DUPLICATE),
        ("exactly-once", "session", DUPLICATE),
        ("at-most-once", "resume", DUPLICATE),
        ("at-least-once", "resume", DUPLICATE),
        ("at-least-once", "session", []),
    ],
)
def test_a_session_repeats_only_what_it_may(delivery: str, replay: str, anomalies: list[str]) -> None:
    assert accused(TWICE, delivery=delivery, replay=replay) == anomalies


@pytest.mark.parametrize(
    ("delivery", "scope", "anomalies"),
    [
        ("exactly-once", "session", []),  # Sessions have nothing to do with each other.
        ("exactly-once", "subscriber", DUPLICATE),
        ("at-most-once", "global", DUPLICATE),
        ("at-least-once", "subscriber", []),
    ],
)
def test_a_later_session_repeats_nothing_where_sessions_belong_together(
    delivery: str, scope: str, anomalies: list[str]
) -> None:
    assert accused(TWO_SESSIONS, delivery=delivery, wm_scope=scope) == anomalies
    assert accused(TWO_SESSIONS.replace("s1/2", "s2"), delivery=delivery, wm_scope=scope) == []


@pytest.mark.parametrize(("start", "anomalies"), [(3, []), (4, DUPLICATE), (5, DUPLICATE)])
def test_a_session_may_ask_for_what_came_before(start: int, anomalies: list[str]) -> None:
    assert accused(f"s1/1 open@0 x=1@4 s1/2 open@{start} x=1@4", "", **EXACT) == anomalies
    assert accused(f"open@0 x=1@4 open@{start} x=1@4", "", **EXACT) == anomalies
    assert accused(f"open@0 x=1@4 open@{start} gap x=1@4", "", **EXACT) == anomalies


def test_the_end_of_one_partition_takes_back_only_what_was_asked_of_it() -> None:
    def repeated(row: str, end: str) -> int:
        log = f"s1/1 open@0 {row} s1/2 open@0 {end} {row}"
        return len(duplicate_events(view(log, "", **EXACT)).watermark)

    assert repeated("x=1@4", "close[1]") == 0  # Of which partition the row is, nobody knows.
    assert repeated("x[0]=1@4", "close[1]") == 0
    assert repeated("x[1]=1@4", "close[1]") == 1
    assert repeated("x=1@4", "close") == 1


def test_what_was_asked_for_comes_once() -> None:
    assert accused("open@0 x=1@4 open@0 x=1@4 x=1@4", "", **EPOCHS) == DUPLICATE


@pytest.mark.parametrize(
    "log",
    [
        "open@0 x=1@4 x=2@4",  # Two transactions of one epoch.
        "open@0 x=1@4 y=1@4",
        "open@0 x=1@4 x=1@5",  # Another rule's affair: one transaction in two epochs.
        "open@0 ~x=1@4 x=1@4",  # A snapshot, and the stream behind it.
        "s1 open@0 x=1@4 s2 open@0 x=1@4",
    ],
)
def test_what_only_looks_alike_is_no_repetition(log: str) -> None:
    assert accused(log, "", **EPOCHS) == []


def test_one_identity_with_two_values_is_no_repetition() -> None:
    assert accused("open@0 x=1@4.0 x=2@4.0") == ["divergent-duplicate"]
    # Unless they may be of two units at one position, which only the source can tell.
    assert accused("open@0 x=1@4.0 x=2@4.0", is_position_unique=False) == []


def test_each_repetition_is_shown_with_the_delivery_before() -> None:
    log = "open@0 x=1@4 y=2@5 x=1@4 y=2@5"
    ruling = duplicate_events(view(log, "", **EPOCHS))
    assert ruling.row.tolist() == [1, 2]
    assert ruling.watermark.tolist() == [3, 4]
    nearest = duplicate_events(view("s1/1 open@0 x=1@4 s1/2 open@4 x=1@4 x=1@4", "", **EXACT))
    assert list(zip(nearest.watermark.tolist(), nearest.row.tolist(), strict=True)) == [(3, 1), (4, 3)]
    assert shown("open@0 x=1@4 x=1@4 w@4", duplicate_events(view("open@0 x=1@4 x=1@4 w@4")))[0] == ("x=1@4", "x=1@4")


def test_witnesses_are_rows_that_could_have_come_again() -> None:
    def witnesses(log: str, **changes: object) -> int:
        return duplicate_events(view(log, "", **changes)).witnesses

    assert witnesses("open@0 x=1@4") == 0
    assert witnesses("open@0 x=1@4 y=1@4") == 1
    assert witnesses("open@0 x=1@4 y=1@4 w@4") == 2
    assert witnesses("open@0 x=1@4 w@4", replay="session") == 0
    assert witnesses("s1/1 open@0 x=1@4 s1/2 open@0 w@9") == 0
    assert witnesses("s1/1 open@0 x=1@4 s1/2 open@0 w@9", delivery="exactly-once", wm_scope="subscriber") == 1


# What was confirmed

ANSWERED: dict[str, object] = {"delivery": "at-least-once", "resumes_behind_checkpoint": True}


def again(log: str, **changes: object) -> list[str]:
    return accused(log, "", **{**ANSWERED, **changes})


@pytest.mark.parametrize(
    ("checkpoint", "resume", "anomalies"),
    [(3, "after", []), (4, "after", DUPLICATE), (5, "after", DUPLICATE), (4, "at", []), (5, "at", DUPLICATE)],
)
def test_what_a_checkpoint_holds_does_not_come_again(checkpoint: int, resume: str, anomalies: list[str]) -> None:
    log = f"s1/1 open@0 x=1@4 checkpoint@{checkpoint} s1/2 open x=1@4"
    assert again(log, resume=resume) == anomalies
    assert again(log, resume=resume, replay="session") == anomalies
    assert again(log, resume=resume, resumes_behind_checkpoint=False) == []


@pytest.mark.parametrize(
    "log",
    [
        "s1/1 open@0 x=1@4 checkpoint@4 s1/2 open@3 x=1@4",  # It asked for that.
        "s1/1 open@0 x=1@4 checkpoint@4 s1/2 x=1@4",  # What it asked for is not known.
        "s1/1 open@0 x=1@4 s1/2 open checkpoint@4 x=1@4",  # Confirmed too late for this session.
        "s1/1 open@0 x=1@4 checkpoint s1/2 open x=1@4",  # Of no known position.
        "s1/1 open@0 x=1@4 checkpoint@4 s1/2 open ~x=1@4",  # A snapshot, not the stream.
        "s1/1 open@0 checkpoint@4 s1/2 open x=1@4",  # It comes for the first time.
        "s1/1 open@0 x=1@4 s2/1 open@0 x=1@4 checkpoint@4 s1/2 open x=1@4",  # Another subscriber confirmed.
        "s1/1 open@0 x[1]=1@4 checkpoint[2]@4 s1/2 open x[1]=1@4",  # Of another partition.
    ],
)
def test_what_may_come_again_beside_checkpoints(log: str) -> None:
    assert again(log) == []


def test_a_checkpoint_of_a_whole_stream_holds_a_row_of_a_partition_where_positions_are_global() -> None:
    log = "s1/1 open@0 x[1]=1@4 checkpoint@4 s1/2 open x[1]=1@4"
    assert again(log) == DUPLICATE
    assert again(log, is_position_global=False) == []
    assert again(log.replace("checkpoint@4", "checkpoint[1]@4"), is_position_global=False) == DUPLICATE
    # An equal position of another partition is another event, of a key that moved.
    moved = "s1/1 open@0 x[2]=1@4 checkpoint[1]@4 s1/2 open x[1]=1@4"
    assert again(moved, is_position_global=False) == []


def test_witnesses_are_confirmed_rows_behind_which_a_session_began_that_received_something() -> None:
    def witnesses(log: str) -> int:
        return confirmed_again(view(log, "", **ANSWERED)).witnesses

    assert witnesses("s1/1 open@0 x=1@4 y=2@5 checkpoint@4 s1/2 open z=3@6") == 1
    assert witnesses("s1/1 open@0 x=1@4 y=2@5 checkpoint@5 s1/2 open w@6") == 2
    assert witnesses("s1/1 open@0 x=1@4 checkpoint@4 s1/2 open") == 0
    assert witnesses("s1/1 open@0 x=1@4 s1/2 open w@6 checkpoint@4") == 0
    assert witnesses("s1/1 open@0 x=1@4 checkpoint@4 s1/2 w@6") == 0


@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_repetitions_and_their_witnesses_do_not_depend_on_how_the_log_is_parted(block_rows: int) -> None:
    with in_blocks_of(block_rows):
        ruling = duplicate_events(view("open@0 x=1@1 y=2@2 y=2@2 z=3@3", "", **EXACT))
    assert (ruling.watermark.tolist(), ruling.witnesses) == ([3], 2)  # Behind the last row nothing came.


OF_PARTITIONS: dict[str, object] = {"delivery": "exactly-once", "is_position_global": False, "order_key": "partition"}
MADE_AGAIN = "open[1]@0 x[1]=1@4 w[1]@4 end[1] s1/2 open[1] x[1]={}@4 w[1]@4"


def test_a_log_that_ended_and_is_read_again_has_other_events_at_its_positions() -> None:
    same, changed = (MADE_AGAIN.format(value) for value in (1, 2))
    exact = {**OF_PARTITIONS, "wm_scope": "subscriber"}
    assert accused(same, "", **exact) == []
    assert accused(changed, "", **exact) == []
    assert accused(same.replace("end[1]", "close[1]"), "", **exact) == DUPLICATE
    assert accused(changed.replace("end[1]", "close[1]"), "", **exact) == ["divergent-duplicate"]


def test_where_positions_are_global_a_partition_that_ends_ends_no_order() -> None:
    assert accused(MADE_AGAIN.format(1), "", **EXACT) == DUPLICATE
    assert accused(MADE_AGAIN.format(2), "", **EXACT) == ["divergent-duplicate"]
    assert accused(MADE_AGAIN.format(1).replace("[1]", ""), "", **EXACT) == []  # The whole log ended.


def test_a_reader_that_lags_may_be_on_either_side_of_a_logs_end() -> None:
    late = "s1/1 open[1]@0 x[1]=1@4 end[1] s1/2 open[1] x[1]=2@4 s2/1 open[1]@0 x[1]=2@4 s3/1 open[1]@0 x[1]=1@4"
    assert accused(late, "", **OF_PARTITIONS) == []
