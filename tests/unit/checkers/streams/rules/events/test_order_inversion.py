"""S02 and S27 by hand: what came in the wrong order, and what has none."""

import pytest

from checkers.streams.rules.events.order_inversion import order_inversions
from tests.worlds.streams.cases import EPOCHS, accused, in_blocks_of, shown, view

INVERTED = ["order-inversion"]
OVERWRITTEN = "ok@4t1 x=1#0; ok@4t2 x=2#1; ok@4t3 x=3"


@pytest.mark.parametrize(("position", "anomalies"), [(4, INVERTED), (5, []), (6, [])])
def test_a_row_below_one_before_it_came_in_the_wrong_order(position: int, anomalies: list[str]) -> None:
    assert accused(f"open@0 x=1@5 y=2@{position}") == anomalies


@pytest.mark.parametrize(
    ("order_key", "other_key", "other_partition"),
    [("none", [], []), ("key", [], []), ("partition", INVERTED, []), ("global", INVERTED, INVERTED)],
)
def test_only_what_the_stream_orders_is_compared(
    order_key: str, other_key: list[str], other_partition: list[str]
) -> None:
    assert accused("open@0 x=1@5 y=2@4", order_key=order_key) == other_key
    assert accused("open@0 x[0]=1@5 y[1]=2@4", order_key=order_key) == other_partition
    assert accused("open@0 x=1@5 x=2@4", order_key=order_key) == ([] if order_key == "none" else INVERTED)


def test_positions_of_partitions_do_not_compare_where_each_has_its_own() -> None:
    assert accused("open@0 x[0]=1@5 y[1]=2@4", is_position_global=False) == []
    assert accused("open@0 x[0]=1@5 y[0]=2@4", is_position_global=False) == INVERTED
    moved = "open[0]@0 open[1]@0 x[0]=1@5 end[0] x[1]=2@4"
    assert accused(moved, order_key="key") == INVERTED
    assert accused(moved, order_key="key", is_position_global=False) == []
    tied, source = "open[0]@0 open[1]@0 x[1]=2@4 end[1] x[0]=1@4", "ok@4 x=1#0; ok@4 x=2#1"
    assert accused(tied, source, order_key="key", is_position_global=False) == []


@pytest.mark.parametrize("block_rows", [1, 2, 9])
def test_a_row_is_compared_with_all_before_it_however_the_log_is_parted(block_rows: int) -> None:
    with in_blocks_of(block_rows):
        ruling = order_inversions(view("open@0 x=1@5 y=2@6 z=3@6 x=4@4 y=5@7"))
    assert (ruling.watermark.tolist(), ruling.row.tolist(), ruling.witnesses) == ([4], [2], 3)


def test_a_late_row_in_the_wrong_order_is_both() -> None:
    assert accused("open@0 x=1@5 w@5 x=2@4") == ["late-event", "order-inversion"]


@pytest.mark.parametrize(
    "log",
    [
        "open@0 x=1@4 y=2@5 x=1@4",  # A repetition: it came first in its place.
        "s1/1 open@0 x=1@5 s1/2 open@0 y=2@4",
        "s1 open@0 x=1@5 s2 open@0 y=2@4",
        "open@0 x=1@5 open:y@0 y=2@4",  # What was asked for later.
        "open@0 x=1@5 ~y=2@4",  # A snapshot shows a state.
    ],
)
def test_repetitions_other_sessions_and_what_was_asked_for_later_are_not_compared(log: str) -> None:
    assert accused(log, replay="session") == []


def test_a_gap_lets_no_position_fall() -> None:
    assert accused("open@0 x=1@5 gap y=2@4") == INVERTED


def test_a_replay_may_show_versions_that_were_skipped() -> None:
    log = "open@0 x=3@5 x=2@4"
    assert accused(log, versions="latest", replay="session") == []
    assert accused(log, versions="latest", replay="resume") == INVERTED


def test_one_key_s_rows_of_an_epoch_stand_in_the_order_of_their_versions() -> None:
    assert accused("open@0 x=1@4 x=2@4 w@4", "ok@4 x=1#0; ok@4 x=2#1", **EPOCHS) == []
    turned = "open@0 x=2@4 x=1@4 w@4"
    assert "order-inversion" in accused(turned, "ok@4 x=1#0; ok@4 x=2#1", **EPOCHS)
    # Nobody read them both: there is no order to break.
    assert accused(turned, "ok@4 x=1#0; ok@4 x=2", **EPOCHS) == []


def test_rows_of_different_keys_and_transactions_mix_freely_inside_an_epoch() -> None:
    source = "ok@4 x=1#0 y=3#1; ok@4 x=2#1 y=4#0"
    assert accused("open@0 y=4@4 x=1@4 y=3@4 x=2@4 w@4", source, **EPOCHS) == []


def test_a_transaction_s_own_order_is_known_without_reads() -> None:
    assert accused("open@0 x=2@4.1 x=1@4.0 w@4", "ok@4 x=1 x=2") == INVERTED
    assert accused("open@0 x=1@4.0 x=2@4.1 w@4", "ok@4 x=1 x=2") == []


@pytest.mark.parametrize(("version", "anomalies"), [(0, INVERTED), (1, []), (2, [])])
def test_a_version_behind_another_is_not_below_it(version: int, anomalies: list[str]) -> None:
    source = f"ok@4 x=1#1; ok@4 x=2#{version}"
    assert [name for name in accused("open@0 x=1@4 x=2@4", source, **EPOCHS) if name in INVERTED] == anomalies


def test_the_highest_row_before_is_the_evidence() -> None:
    log = "open@0 x=1@4 y=2@9 x=3@6 y=4@8"
    assert shown(log, order_inversions(view(log))) == [("x=3@6", "y=2@9"), ("y=4@8", "y=2@9")]
    within = "open@0 x=3@4 x=2@4 x=1@4"
    assert shown(within, order_inversions(view(within, OVERWRITTEN, **EPOCHS))) == [("x=1@4", "x=2@4")]


def test_witnesses_are_rows_that_could_have_come_in_the_wrong_order() -> None:
    def witnesses(log: str, source: str = "", **changes: object) -> int:
        return order_inversions(view(log, source, **changes)).witnesses

    assert witnesses("open@0 x=1@4") == 0
    assert witnesses("open@0 x=1@4 y=2@4 z=3@5") == 1  # Two at one position say nothing.
    assert witnesses("open@0 x=1@4 y=2@5", order_key="key") == 0
    assert witnesses("open@0 x=1@4 x=2@5", order_key="none") == 0
    assert witnesses("open@0 x=1@4 x=2@4 x=3@4", OVERWRITTEN, **EPOCHS) == 1
