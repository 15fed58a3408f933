"""S30 by hand: a stream with an event at each position skips none."""

import pytest

from checkers.streams.rules.sessions.skipped_position import skipped_positions
from tests.worlds.streams.cases import view

DENSE: dict[str, object] = {"positions": "dense", "order_key": "global"}
PARTED: dict[str, object] = {"is_position_global": False, "order_key": "partition"}


def skips(log: str, **changes: object) -> list[tuple[int, int]]:
    """The events that passed a hole, each with the event below it; there is no source."""
    ruling = skipped_positions(view(log, "", **{**DENSE, **changes}))
    return list(zip(ruling.watermark.tolist(), ruling.row.tolist(), strict=True))


def test_a_hole_between_two_rows_is_found_without_a_source() -> None:
    assert skips("open@0 x=1@1 y=1@2 x=2@4") == [(3, 2)]
    assert skips("open@0 x=1@1 y=1@2 x=2@4", positions="sparse") == []


@pytest.mark.parametrize(("resume", "found"), [("after", {2: [], 3: [(1, 0)]}), ("at", {1: [], 2: [(1, 0)]})])
def test_a_session_has_the_positions_from_its_start_on(resume: str, found: dict[int, list[tuple[int, int]]]) -> None:
    for position, expected in found.items():
        assert skips(f"open@1 x=1@{position}", resume=resume) == expected


@pytest.mark.parametrize(("closed", "watermark"), [("<=", 2), ("<", 3)])
def test_a_watermark_passes_what_it_closes(closed: str, watermark: int) -> None:
    assert skips(f"open@0 x=1@1 w@{watermark - 1}", closed=closed) == []
    assert skips(f"open@0 x=1@1 w@{watermark}", closed=closed) == [(2, 1)]


@pytest.mark.parametrize(
    "log",
    [
        "open@0 x=1@1 y=2@1 x=2@2",  # Two keys at one position.
        "x=1@5 x=2@6",  # Nothing is known below the first row.
        "open@0 x=1@1 x=3@3 x=2@2",  # It came in the wrong order.
        "s1/1 open@0 x=1@1 x=3@3 s1/2 open@1 x=2@2",  # It came in another session.
        "s1/1 open@0 x=1@1 s1/2 open@4 x=3@5",  # Nobody asked for what lies between.
        "open@0 x=1@1 gap@2 x=3@4",  # The stream reported its loss.
        "open:x@0 x=1@1 x=2@4",  # One key alone was asked for.
        "open[1]@0 x[1]=1@1 x[1]=2@4",  # Or one partition, of positions that all partitions share.
    ],
)
def test_what_is_no_hole(log: str) -> None:
    assert skips(log) == []


def test_positions_of_partitions_are_dense_in_each() -> None:
    log = "open[1]@0 x[1]=1@1 y[2]=1@7 x[1]=2@2 y[2]=2@9"
    assert skips(log, **PARTED) == [(4, 2)]


def test_sessions_that_join_skip_nothing_between_them() -> None:
    log = "s1/1 open@0 x=1@1 close s1/2 open@{} x=3@{}"
    assert skips(log.format(3, 4), sessions="joined") == [(3, 1)]
    assert skips(log.format(3, 4)) == []
    assert skips(log.format(1, 2), sessions="joined") == []
