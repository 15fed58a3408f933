"""S22 by hand: what was lost in silence, and what a marker says."""

import pytest

from checkers.streams.rules.watermarks.silent_gap import silent_gaps
from tests.worlds.streams.cases import EPOCHS, accused, view

ONE = "ok@4 x=1"
LOST = ["missing-event", "silent-gap"]


@pytest.mark.parametrize(("watermark", "anomalies"), [(3, []), (4, LOST), (5, LOST)])
def test_a_loss_that_no_marker_named_is_silent(watermark: int, anomalies: list[str]) -> None:
    assert accused(f"open@0 w@{watermark}", ONE, **EPOCHS) == anomalies


def test_a_stream_without_markers_has_no_silence_to_break() -> None:
    assert accused("open@0 w@4", ONE, **(EPOCHS | {"has_gap_marker": False})) == ["missing-event"]


@pytest.mark.parametrize(
    "log",
    [
        "open@0 w@3 gap@4 open@4 w@5",
        "open@0 w@3 gap open@4 w@5",
        "open@0 w@2 gap@3 open@7 w@8",
        "open@0 w@3 gap@4 w@5",  # What begins again with the next row.
        "open@0 w@3 gap@4 close",
        "open@0 w@3 gap@4 close s1/2 open@9 w@12",
        "open@0 w@3 gap@5 close",  # Nobody closed 4 thereafter.
        "open@0 x=1@4 w@4 gap@5 open@6 w@7",
    ],
)
def test_what_a_marker_covers_is_no_loss_in_silence(log: str) -> None:
    assert accused(log, ONE, **EPOCHS) == []


def test_a_marker_after_the_watermark_comes_too_late() -> None:
    assert accused("open@0 w@4 gap@4 open@4 w@5", ONE, **EPOCHS) == LOST


@pytest.mark.parametrize(("marker", "anomalies"), [(4, []), (5, ["silent-gap"])])
def test_a_marker_covers_nothing_below_its_position(marker: int, anomalies: list[str]) -> None:
    assert accused(f"open@0 w@3 gap@{marker} open@6 w@7", ONE, **EPOCHS) == anomalies
    assert accused(f"open@0 w@3 gap@{marker} open@6 x=1@4 w@7", ONE, **EPOCHS) == []
    assert accused(f"open@4 w@5 gap@{marker} open@6 w@7", ONE, **EPOCHS) == []
    assert accused(f"open@0 gap@{marker} open@6 w@7", ONE, **EPOCHS) == anomalies


def test_a_marker_of_one_key_says_nothing_of_positions() -> None:
    assert accused("open@0 w@3 gap:x@5 open:x@6 w@7", ONE, **EPOCHS) == []


def test_an_exclusive_watermark_leaves_its_own_position_open() -> None:
    exclusive = EPOCHS | {"closed": "<"}
    assert accused("open@0 w@4 gap@5 open@6 w@7", ONE, **exclusive) == ["silent-gap"]
    assert accused("open@0 w@3 gap@5 open@6 close", ONE, **exclusive) == []
    assert accused("open@0 w@5 gap@6 open@6 w@7", ONE, **exclusive) == LOST


def test_a_version_that_a_newer_one_replaced_is_not_lost() -> None:
    source, log = "ok@4 x=1; ok@8 x=2", "open@0 w@3 gap@5 open@6 x=2@8 w@9"
    assert accused(log, source, **(EPOCHS | {"versions": "latest"})) == []
    assert accused(log, source, **EPOCHS) == ["silent-gap"]


def test_each_position_is_reported_once_a_session() -> None:
    log = "s1/1 open@0 w@5 w@6 s1/2 open@0 w@9"
    source = "ok@4 x=1 y=2; ok@5 x=3"
    ruling = silent_gaps(view(log, source, **EPOCHS))
    assert ruling.watermark.tolist() == [1, 1, 4, 4]
    assert ruling.witnesses == 4


def test_witnesses_are_markers_and_losses() -> None:
    def witnesses(log: str) -> int:
        return silent_gaps(view(log, ONE, **EPOCHS)).witnesses

    assert witnesses("open@0 x=1@4 w@4") == 0
    assert witnesses("open@0 x=1@4 w@4 gap@5 open@6 gap close") == 2
    assert witnesses("open@0 w@4 gap@5 close") == 2


def test_a_gap_of_a_partition_may_be_that_of_a_key_whose_partition_nobody_knows() -> None:
    source = "ok@1 y[1]=5; ok@2 x[0]=6"
    assert accused("open@0 y[1]=5@1 gap[0] w@4", source, **EPOCHS) == []
    assert accused("open@0 y[1]=5@1 w@4", source, **EPOCHS) == LOST
