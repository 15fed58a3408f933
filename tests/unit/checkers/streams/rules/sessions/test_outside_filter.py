"""S01, S26 and S04 by hand: what was asked for, where a key belongs, and what a repetition must show."""

import pytest

from checkers.streams.rules.events.divergent_duplicate import divergent_duplicates
from checkers.streams.rules.sessions.moved_key import moved_keys
from checkers.streams.rules.sessions.outside_filter import outside_events
from tests.worlds.streams.cases import EPOCHS, accused, view

OUTSIDE, MOVED, DIVERGENT = ["outside-filter"], ["moved-key"], ["divergent-duplicate"]


# S01


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open:x@0 x=1@1 y=2@2", OUTSIDE),
        ("open:x@0 open:y@0 x=1@1 y=2@2", []),
        ("open:x@0 open@0 x=1@1 y=2@2", []),
        ("open:x x=1@1 y=2@2", OUTSIDE),
        ("open[1]@0 x[1]=1@1 y[2]=2@2", OUTSIDE),
        ("open[1]@0 open[2]@0 x[1]=1@1 y[2]=2@2", []),
        ("open[1]@0 x=1@1", []),  # Of which partition it is, the row does not say.
        ("x=1@1 y=2@2", []),  # What this session asked for, nobody recorded.
        ("s1 open:x@0 x=1@1 s2 open:y@0 y=2@2", []),
        ("s1 open:x@0 x=1@1 s2 open:y@0 x=1@1", OUTSIDE),
    ],
)
def test_a_session_is_sent_what_it_asked_for(log: str, anomalies: list[str]) -> None:
    assert accused(log, "") == anomalies


@pytest.mark.parametrize(("position", "after", "at"), [(4, OUTSIDE, OUTSIDE), (5, OUTSIDE, []), (6, [], [])])
def test_a_session_begins_where_it_asked_to(position: int, after: list[str], at: list[str]) -> None:
    assert accused(f"open@5 x=1@{position}", "", resume="after") == after
    assert accused(f"open@5 x=1@{position}", "", resume="at") == at


def test_what_the_subscriber_had_before_is_a_repetition() -> None:
    assert accused("s1/1 open@0 x=1@4 s1/2 open@5 x=1@4", "", wm_scope="subscriber") == []
    assert accused("s1/1 open@0 x=1@4 s1/2 open@5 y=2@3", "", wm_scope="subscriber") == OUTSIDE
    assert accused("s1 open@0 x=1@4 s2 open@5 x=1@4", "") == OUTSIDE
    assert accused("open@0 gap open@5 x=1@4", "") == []  # It was asked for, and came after all.
    assert accused("open@5 ~x=1@4", "") == []  # A snapshot shows what was there before.


def test_witnesses_of_a_filter_are_rows_beside_something_outside_of_it() -> None:
    def witnesses(log: str, source: str = "") -> int:
        return outside_events(view(log, source)).witnesses

    assert witnesses("open@0 x=1@1 y=2@2") == 0
    assert witnesses("open:x@0 x=1@1") == 0
    assert witnesses("open:x@0 x=1@1", "ok@1 x=1; ok@2 y=2") == 1
    assert witnesses("open@1 x=2@2", "ok@1 x=1; ok@2 x=2") == 1
    assert witnesses("open@1 x=2@2", "ok@2 x=2") == 0
    assert witnesses("open:x@0 open:z@0 x=1@1", "ok@1 x=1; ok@2 y=2") == 1  # There is nothing of z, and there is of y.
    assert witnesses("open:x@0 y=2@2 open:y@0 x=1@1") == 1  # The row that came too soon.
    assert witnesses("open[1]@0 x[1]=1@1") == 1  # Of partitions nobody knows which keys are not theirs.
    assert witnesses("open[1]@0 open@0 x[1]=1@1") == 0


# S26


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open@0 x[1]=1@1 x[1]=2@2 y[2]=3@3", []),
        ("open@0 x[1]=1@1 x[2]=2@2", MOVED),
        ("open@0 x[1]=1@1 open[2]@1 x[2]=2@2", []),
        ("open@0 x[1]=1@1 open[3]@1 x[2]=2@2", MOVED),
        ("open@0 open[2]@0 x[1]=1@1 x[2]=2@2", MOVED),  # It was open before, so nothing has changed since.
        ("open@0 x[1]=1@1 x=2@2", []),
        ("s1/1 open@0 x[1]=1@1 s1/2 open@1 x[2]=2@2", []),
    ],
)
def test_a_key_stays_on_its_partition_unless_a_move_is_declared(log: str, anomalies: list[str]) -> None:
    assert accused(log, "") == anomalies


def test_a_repetition_on_a_partition_that_was_left_is_no_move() -> None:
    log = "open[1]@0 x[1]=1@1 open[2]@1 x[2]=2@2 x[1]=1@1 x[2]=3@3"
    assert accused(log, "", replay="session") == []
    assert accused(log.replace("x[1]=1@1 x[2]=3@3", "x[1]=4@3 x[2]=3@4"), "", replay="session") == MOVED


def test_witnesses_of_affinity_are_repeated_keys_among_several_partitions() -> None:
    assert moved_keys(view("open@0 x[1]=1@1 x[1]=2@2")).witnesses == 0
    assert moved_keys(view("open@0 x[1]=1@1 x[1]=2@2 y[2]=3@3")).witnesses == 1
    assert moved_keys(view("open@0 x[1]=1@1 y[2]=3@3")).witnesses == 0


# S04


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("s1/1 open@0 x=1@4 s1/2 open@0 x=2@4", DIVERGENT),
        ("s1/1 open@0 x=1@4 s1/2 open@0 x=1@4", []),
        ("open@0 x=1@4.0 x=2@4.1", []),
        ("open@0 x=1@4 y=2@4", []),
        ("open@0 ~x=1@4 x=2@4", []),  # A snapshot's row has no number in a unit.
    ],
)
def test_what_comes_twice_is_the_same(log: str, anomalies: list[str]) -> None:
    assert accused(log, "") == anomalies


@pytest.mark.parametrize(("position", "anomalies"), [(3, []), (4, DIVERGENT), (5, [])])
def test_only_one_position_makes_two_values_diverge(position: int, anomalies: list[str]) -> None:
    assert accused(f"s1/1 open@0 x=1@4 s1/2 open@0 x=2@{position}", "") == anomalies


@pytest.mark.parametrize(("ordinal", "anomalies"), [(0, []), (1, DIVERGENT), (2, [])])
def test_only_one_number_in_a_unit_makes_two_values_diverge(ordinal: int, anomalies: list[str]) -> None:
    assert accused(f"s1/1 open@0 x=1@4.1 s1/2 open@0 x=2@4.{ordinal}", "") == anomalies


def test_equal_positions_of_two_partitions_are_two_events() -> None:
    log = "open[1]@0 x[1]=1@4 close[1] open[2]@0 x[2]=2@4"
    assert accused(log, "") == DIVERGENT
    assert accused(log, "", is_position_global=False) == []
    assert accused(log.replace("[2]", "[1]"), "", is_position_global=False) == DIVERGENT


def test_a_position_that_the_source_gave_twice_is_no_divergence() -> None:
    log = "s1/1 open@0 x=1@4 s1/2 open@0 x=2@4"
    ruling = divergent_duplicates(view(log, "ok@4 x=1; ok@4 x=2"))
    assert (ruling.watermark.tolist(), ruling.legal, ruling.witnesses) == ([], 1, 1)
    # The second row stands at the place of the first write, so its own was left out.
    assert accused(log, "ok@4 x=1; ok@3 x=2") == ["missing-event", "wrong-value", *DIVERGENT, "resume-hole"]


def test_where_the_value_is_part_of_the_identity_nothing_diverges() -> None:
    ruling = divergent_duplicates(view("open@0 x=1@4 x=2@4", "", **{**EPOCHS, "unit_rows": "each"}))
    assert (ruling.watermark.tolist(), ruling.witnesses) == ([], 0)
