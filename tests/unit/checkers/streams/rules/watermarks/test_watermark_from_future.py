"""S08 by hand: watermarks below, at and above what there can have been."""

import numpy as np
import pytest
from msgspec.structs import replace

from checkers.history.around import NOTHING_AROUND, Issued
from checkers.streams.rules.watermarks.watermark_from_future import watermarks_from_future
from checkers.streams.view import Ruling
from harness.core.columns import NEVER
from tests.worlds.streams.cases import accused, beside, in_blocks_of, view

FUTURE = ["watermark-from-future"]
RESTS: dict[str, object] = {"wm_idle": "rests"}
ONE = "ok@4~98~99 x=1"  # It ended before the log begins.


def ruling(log: str, source: str, readers: tuple[int, int, int] | None = None, **changes: object) -> Ruling:
    """`readers`: of one operation that wrote nothing when it was invoked, answered, and its position."""
    result = NOTHING_AROUND.readers
    if readers is not None:
        result = Issued(**{n: np.array([each]) for n, each in zip(Issued.__struct_fields__, readers, strict=True)})
    return watermarks_from_future(
        beside(view(log, source, **(RESTS | changes)), replace(NOTHING_AROUND, readers=result))
    )


@pytest.mark.parametrize(
    ("watermark", "inclusive", "exclusive"), [(3, [], []), (4, [], []), (5, FUTURE, []), (6, FUTURE, FUTURE)]
)
def test_a_watermark_that_rests_without_writes_is_not_above_the_last(
    watermark: int, inclusive: list[str], exclusive: list[str]
) -> None:
    log = f"open@0 x=1@4 w@{watermark}"
    assert accused(log, ONE, closed="<=", **RESTS) == inclusive
    assert accused(log, ONE, closed="<", **RESTS) == exclusive


@pytest.mark.parametrize(
    "changes",
    [
        {"wm_idle": "moves"},
        {"wm_idle": "rests", "follows_clock": True},  # Whose clock does not compare with ours.
        {"wm_idle": "rests", "is_position_global": False},
        {"wm_idle": "rests", "system_events": ("expiry",)},  # What expires takes a revision, and no client wrote it.
        {"wm_idle": "rests", "closed": "<", "position": "lsn"},  # How far the next one is, nobody knows.
    ],
)
def test_where_watermarks_may_run_ahead_nothing_is_said(changes: dict[str, object]) -> None:
    of = view("open@0 x=1@4 w@9", ONE, **changes)
    found = watermarks_from_future(of)
    assert (found.watermark.tolist(), found.witnesses) == ([], 0)


@pytest.mark.parametrize("block_rows", [1, 2, 9])
def test_what_was_there_stays_however_the_log_is_parted(block_rows: int) -> None:
    of = view("open@0 x=1@4 y=3@6 z=4@1 w@6 w@7", f"{ONE}; ok@2~98~99 x=2", **RESTS)
    with in_blocks_of(block_rows):
        found = watermarks_from_future(of)
    assert (found.watermark.tolist(), found.write.tolist(), found.witnesses) == ([5], [0], 2)


@pytest.mark.parametrize(("invoked", "count"), [(102, 0), (103, 1), (104, 1)])
def test_what_began_before_a_watermark_may_be_in_it(invoked: int, count: int) -> None:
    """The watermark stands at place 103 of the journal."""
    found = ruling("open@0 x=1@4 y=3@4 w@5", f"{ONE}; ok@5~{invoked}~110 x=2")
    assert len(found.watermark) == count


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("open@9 w@9", ONE),  # So the session began.
        ("open@0 y=2@9 w@9", f"{ONE}; info y=2"),  # So it was delivered,
        ("s1 open@0 y=2@9 s1/2 open@0 w@9", f"{ONE}; info y=2"),  # in whatever session.
        ("open@0 w@9 w@8", "ok@9~98~99 x=1"),
    ],
)
def test_what_was_told_was_there(log: str, source: str) -> None:
    assert "watermark-from-future" not in accused(log, source, **RESTS)


@pytest.mark.parametrize(("ended", "witnesses"), [(101, 1), (102, 0)])
def test_before_an_operation_has_ended_nobody_knows_where_the_source_began(ended: int, witnesses: int) -> None:
    """The watermark stands at place 102."""
    assert ruling("open@0 y=2@1 w@9", f"ok@4~98~{ended} x=1; ok@1~98~110 y=2").witnesses == witnesses
    assert ruling("open@0 y=2@1 w@9", "").witnesses == 0


@pytest.mark.parametrize(
    ("source", "closed", "is_found"),
    [
        ("ok@9~110~111 y=2", "<=", True),  # Nobody had written at 9.
        ("ok@8~110~111 y=2", "<=", False),  # The source may have begun anywhere.
        ("ok@9~100~111 y=2", "<=", False),
        ("ok@9~110~111 y=2", "<", False),  # The next position is allowed.
    ],
)
def test_a_watermark_at_the_position_of_a_later_operation_is_too_early(
    source: str, closed: str, is_found: bool
) -> None:
    assert ("watermark-from-future" in accused("open@0 w@9", source, closed=closed, **RESTS)) == is_found


@pytest.mark.parametrize(
    ("unplaced", "realtime", "count"),
    [
        ("ok~97~98 y=1", "none", 0),  # Its position may be any.
        ("ok~97~98 y=1", "follows", 1),  # It is below that of the next one.
        ("ok~97~99 y=1", "follows", 0),  # It ended just when that began.
        ("info~97~98 y=1", "follows", 0),  # It may still happen.
        ("fail~97~98 y=1", "follows", 1),
        ("ok~103~104 y=1", "none", 1),  # It began behind the watermark.
        ("ok~102~104 y=1", "none", 1),
        ("ok~101~104 y=1", "none", 0),
    ],
)
def test_an_operation_of_unknown_position_may_explain_a_watermark(unplaced: str, realtime: str, count: int) -> None:
    found = ruling("open@0 x=1@4 w@9", f"ok@4~99~100 x=1; {unplaced}", realtime=realtime)
    assert len(found.watermark) == count


@pytest.mark.parametrize(("position", "count"), [(8, 1), (9, 0), (NEVER, 0)])
def test_an_operation_that_wrote_nothing_may_have_a_position(position: int, count: int) -> None:
    assert len(ruling("open@0 x=1@4 w@9", ONE, (98, 99, position)).watermark) == count


@pytest.mark.parametrize(("error_ns", "count"), [(-1, 1), (0, 0), (1, 0), (None, 0)])
def test_a_clock_may_run_ahead_by_its_error(error_ns: int | None, count: int) -> None:
    """The watermark is received at one second."""
    changes: dict[str, object] = {"follows_clock": True, "clock_error_ns": error_ns}
    found = ruling("open@0 w@1000000000", "", None, **changes)
    assert len(found.watermark) == count
    assert found.witnesses == (error_ns is not None)


def test_the_highest_that_had_begun_is_the_evidence() -> None:
    found = ruling("open@0 x=1@4 w@9", f"{ONE}; ok@3~98~99 y=1; ok@9~110~111 z=1")
    assert (found.watermark.tolist(), found.write.tolist(), found.witnesses) == ([2], [0], 1)
    assert ruling("open@0 x=1@4 w@9", ONE, (98, 99, 8)).write.tolist() == [-1]
