"""S11 and S12 by hand: events of writes that never were, and events with another value than was written."""

import pytest

from checkers.streams.rules.events.phantom_event import phantom_events
from checkers.streams.rules.events.wrong_value import wrong_values
from tests.worlds.streams.cases import EPOCHS, accused, view

PHANTOM, WRONG = ["phantom-event"], ["wrong-value"]


@pytest.mark.parametrize(
    ("source", "anomalies"),
    [
        ("ok@4 x=1", []),
        ("info x=1", []),  # It may have happened, and evidently did.
        ("fail x=1", PHANTOM),
        ("ok@4 x=2; ok@3 y=1", PHANTOM),
        ("fail x=1; ok@4 x=1", []),  # The second attempt wrote it.
        ("", []),  # Without a source nobody can tell.
    ],
)
def test_a_row_whose_value_nobody_wrote_is_a_phantom(source: str, anomalies: list[str]) -> None:
    assert accused("open@0 x=1@4", source, **EPOCHS) == anomalies


def test_a_system_that_makes_events_of_its_own_has_no_phantoms() -> None:
    assert accused("open@0 x=1@4", "fail x=1", system_events=("expiry",), **EPOCHS) == []


def test_a_phantom_has_no_position_for_the_other_rules() -> None:
    assert accused("open@0 y=2@5 x=1@4 x=1@4 w@9", "fail x=1; ok@5 y=2") == PHANTOM


def test_the_operation_that_failed_is_named() -> None:
    ruling = phantom_events(view("open@0 x=1@4 x=9@5", "ok@3 y=1; fail x=7 x=1"))
    assert (ruling.watermark.tolist(), ruling.write.tolist()) == ([1, 2], [2, -1])


def test_witnesses_of_phantoms_are_rows_of_keys_with_a_failed_write() -> None:
    assert phantom_events(view("open@0 x=1@4 y=2@5", "ok@4 x=1; ok@5 y=2; fail x=3")).witnesses == 1
    assert phantom_events(view("open@0 x=1@4 y=2@5", "ok@4 x=1; ok@5 y=2")).witnesses == 0
    assert phantom_events(view("open@0 x=9@5", "ok@4 y=1")).witnesses == 1  # It was there to be seen.


@pytest.mark.parametrize(
    ("row", "anomalies"),
    [
        ("x=2@4", []),
        ("x=1@4", [*WRONG]),  # An intermediate image.
        ("x=9@4", [*WRONG]),  # Nobody wrote that, but it is the row of transaction 7.
        ("x=3@4", [*WRONG]),  # Another transaction's.
    ],
)
def test_a_transaction_s_row_shows_its_last_write_of_the_key(row: str, anomalies: list[str]) -> None:
    source = "ok@4t7 x=1 x=2; ok@2t8 x=3"
    assert accused(f"open@3 {row} u7*1 w@4", source, **EPOCHS) == anomalies


def test_a_wrong_value_is_not_blamed_on_completeness_too() -> None:
    assert accused("open@0 x=1@4 u7*1 y=3@4 u7*1 w@4", "ok@4t7 x=1 x=2 y=3", **EPOCHS) == WRONG


def test_a_transaction_that_never_wrote_the_key_has_no_row_of_it() -> None:
    ruling = wrong_values(view("open@0 y=5@4 u7*1", "ok@4t7 x=1; ok@4t8 y=5", **EPOCHS))
    assert (ruling.watermark.tolist(), ruling.write.tolist()) == ([1], [0])


def test_a_number_that_two_transactions_bear_names_neither() -> None:
    assert accused("open@0 y=5@4 u7*1", "ok@4t7 x=1; ok@5t7 z=1; ok@4t8 y=5", **EPOCHS) == []
    assert accused("open@0 y=5@4 u7*1", "ok@4t7 x=1; ok@4t8 y=5; ok@5t7 z=1", **EPOCHS) == []


def test_an_intermediate_image_is_told_by_its_value_where_rows_name_no_unit() -> None:
    assert "wrong-value" in accused("open@0 x=1@4", "ok@4 x=1 x=2", **EPOCHS)
    assert accused("open@0 x=2@4", "ok@4 x=1 x=2", **EPOCHS) == []
    assert "wrong-value" not in accused("open@0 x=1@5", "ok@4 x=1 x=2", **EPOCHS)  # At a place of nobody's.
    # One event for each write: the first is as good as the second.
    assert accused("open@0 x=1@4 u7*2", "ok@4t7 x=1 x=2", **(EPOCHS | {"unit_rows": "each"})) == []


@pytest.mark.parametrize(
    ("row", "anomalies"),
    [("x=1@4.0", []), ("x=9@4.0", WRONG), ("x=2@4.0", WRONG), ("x=2@4.1", [])],
)
def test_a_row_of_a_known_place_shows_what_was_written_there(row: str, anomalies: list[str]) -> None:
    assert accused(f"open@0 {row}", "ok@4 x=1 x=2") == anomalies


@pytest.mark.parametrize(("position", "anomalies"), [(3, []), (4, WRONG), (5, [])])
def test_only_at_its_position_a_write_says_what_a_row_must_show(position: int, anomalies: list[str]) -> None:
    """Elsewhere the row stands for nothing that anybody knows."""
    assert accused(f"open@0 x=2@{position}.0", "ok@4 x=1; ok x=2", order_key="none") == []
    assert accused(f"open@0 x=2@{position}.0", "ok@4 x=1; ok@9 x=2", order_key="none") == anomalies


@pytest.mark.parametrize(("ordinal", "anomalies"), [(0, WRONG), (1, []), (2, WRONG)])
def test_a_row_shows_what_was_written_at_its_number(ordinal: int, anomalies: list[str]) -> None:
    assert accused(f"open@0 x=2@4.{ordinal}", "ok@4 x=1 x=2 x=3") == anomalies


def test_a_system_that_changes_values_itself_has_no_wrong_ones() -> None:
    assert accused("open@0 x=9@4.0", "ok@4 x=1", system_events=("trigger",)) == []


def test_of_an_epoch_s_operations_either_may_have_written_the_last_value() -> None:
    epoch = {"position": "epoch", "atomic_unit": "epoch", "unit_rows": "final", "identity": "position+key"}
    source = "ok@4 x=1; ok@4 x=2 x=3; fail@4 x=9"
    for value in (1, 3):
        assert accused(f"open@0 x={value}@4 w@4", source, **epoch) == []
    for value in (2, 8, 9):
        assert accused(f"open@0 x={value}@4 w@4", source, **epoch) == WRONG


def test_witnesses_of_values_are_rows_that_were_compared() -> None:
    def witnesses(log: str, source: str, **changes: object) -> int:
        return wrong_values(view(log, source, **changes)).witnesses

    assert witnesses("open@0 x=1@4 y=2@9", "ok@4 x=1; ok y=3") == 1
    assert witnesses("open@0 x=1@4 u7*1", "ok@4t7 x=1", **EPOCHS) == 1
    # Found by its value alone, a row can hardly have another one.
    assert witnesses("open@0 x=1@4 u9*1", "ok@4t7 x=1", **EPOCHS) == 0
    assert witnesses("open@0 x=2@4", "ok@4 x=1 x=2", **EPOCHS) == 1
