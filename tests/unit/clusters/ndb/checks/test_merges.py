"""Merged events are the net changes of their epochs."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from clusters.ndb.checks import merges
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies

Told = tuple[int, str, int | None, int | None]  # Epoch, key, images.


def judged(run: Run, folder: Path) -> Judgement:
    return merges.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS))


def session(rows: dict[int, list[tuple[str, int]]], told: list[Told], *, gap_before: int | None = None) -> Run:
    """The single events of each epoch, and the merged ones; one more of a key of its own at the end."""
    run, now = Run(), 10
    run.event(now, "s1", "open", 1)
    for epoch, changes in (rows | {99: [("row9", 1)]}).items():
        now += 10
        if epoch == gap_before:
            run.event(now, "s1", "gap", epoch - 1, value="out-of-memory")
            run.event(now + 1, "s1", "open", epoch - 1)
        for key, element in changes:
            run.event(now + 2, "s1", "row", epoch, key=key, value=element)
        run.event(now + 3, "s1", "watermark", epoch)
        for of, key, before, after in [*told, (99, "row9", None, 1)]:
            if of == epoch:
                run.state(now + 4, "s1", "merged", key, [1, before, after], epoch)
    return run


UPDATED: dict[int, list[tuple[str, int]]] = {2: [("row1", 5)], 3: [("row1", 6), ("row1", 7)]}
RENEWED: dict[int, list[tuple[str, int]]] = {2: [("row1", 5)], 3: [("row1", -6), ("row1", 7)]}
DELETED: dict[int, list[tuple[str, int]]] = {2: [("row1", 5)], 3: [("row1", 6), ("row1", -7)]}
GONE: dict[int, list[tuple[str, int]]] = {2: [("row1", -5)], 3: [("row1", 6), ("row1", -7)]}
FIRST: Told = (2, "row1", None, 5)


@pytest.mark.parametrize(
    ("rows", "told", "expected"),
    [
        (UPDATED, [FIRST, (3, "row1", 5, 7)], []),
        (UPDATED, [FIRST, (3, "row1", 6, 7)], ["wrong-merge"]),
        (UPDATED, [FIRST, (3, "row1", 5, 6)], ["wrong-merge"]),
        (UPDATED, [FIRST], ["wrong-merge"]),
        (RENEWED, [FIRST, (3, "row1", 5, 7)], []),
        (RENEWED, [FIRST, (3, "row1", None, 7)], ["wrong-merge"]),  # The row was there before.
        (DELETED, [FIRST, (3, "row1", 5, None)], []),
        (DELETED, [FIRST, (3, "row1", 5, 6)], ["wrong-merge"]),
        # Legal: a row that was neither there before nor after has no event.
        (GONE, [(2, "row1", 4, None)], []),
        (GONE, [(2, "row1", 4, None), (3, "row1", None, None)], []),
        (GONE, [(2, "row1", 4, None), (3, "row1", None, 6)], ["wrong-merge"]),
        # Legal: nothing is known of a row before the session.
        ({2: [("row1", 5)]}, [(2, "row1", 4, 5)], []),
        ({2: [("row1", 5)]}, [(2, "row1", 4, 5), (2, "row2", 4, 5)], ["wrong-merge"]),
    ],
)
def test_a_merged_event_leads_from_the_row_before_the_epoch_to_the_one_after_it(
    tmp_path: Path, rows: dict[int, list[tuple[str, int]]], told: list[Told], expected: list[str]
) -> None:
    assert anomalies(judged(session(rows, told), tmp_path)) == expected


def test_after_a_gap_nothing_is_known_of_a_row(tmp_path: Path) -> None:
    """What happened in the gap may have deleted it."""
    told: list[Told] = [FIRST, (3, "row1", None, 7)]
    judgement = judged(session(UPDATED, told, gap_before=3), tmp_path)
    assert (anomalies(judgement), judgement.witnesses["wrong-merge"]) == ([], 0)
    assert judged(session(UPDATED, [FIRST, (3, "row1", 5, 7)]), tmp_path / "known").witnesses["wrong-merge"] == 1


def test_legal_a_session_whose_process_ends_lacks_the_last_merged_events(tmp_path: Path) -> None:
    run = session(UPDATED, [FIRST, (3, "row1", 5, 7)])
    for epoch in (100, 101):
        run.event(2 * epoch, "s1", "row", epoch, key="row1", value=epoch)
        run.event(2 * epoch + 1, "s1", "watermark", epoch)
        if epoch == 100:
            assert anomalies(judged(run, tmp_path)) == []
    assert anomalies(judged(run, tmp_path / "more")) == ["wrong-merge"]  # That of 100 is missing now.


def test_lists_and_streams_without_merged_events_are_not_judged(tmp_path: Path) -> None:
    run = Run()
    run.event(10, "s1", "open", 1)
    run.event(20, "s1", "row", 2, key=7, value=5)
    run.event(21, "s1", "watermark", 2)
    value: Json = [1, None, 5]
    assert judged(run, tmp_path).witnesses == {"wrong-merge": 0}
    run.state(22, "s1", "merged", "row1", value, 9)
    assert anomalies(judged(run, tmp_path / "other")) == []
