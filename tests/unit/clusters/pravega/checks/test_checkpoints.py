"""Readers that begin again at a checkpoint: what comes too early, what does not come, and a torn checkpoint."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from clusters.pravega.checks.checkpoints import check
from clusters.pravega.checks.readers import check as check_group
from clusters.pravega.shape import SPACE
from harness.core.record import State
from harness.core.verdict import Judgement
from tests.unit.clusters.pravega.checks.shown import LEFT, TWO, Shown, found, plain
from tests.worlds.run_cases import MS

FIRST, SECOND, LAST = ("0/0", 0, 1), ("0/0", 1, 2), ("2/1", 0, 3)
ALL = (FIRST, SECOND, LAST)
Places = Sequence[tuple[str, int, int]]


def restored(again: Places, *, before: Places = (FIRST,), cut: Sequence[Sequence[int]] = ((0, 0, 1),)) -> Shown:
    """Session 1 delivers `before`, comes to a checkpoint, and delivers the rest; session 3, restored, `again`."""
    run = Shown()
    run.epochs((0, TWO), (1, [(0, SPACE, 2, 1)]))
    run.segment("0/0", [plain(LEFT, 1, 1), plain(LEFT, 2, 2)], is_sealed=True)
    run.segment("1/0", is_sealed=True)
    run.segment("2/1", [plain(LEFT, 3, 3)])
    run.records.append(State(999 * MS, "m1", "restored", 2, [7, [list(each) for each in (*cut, (1, 0, 0))]]))
    run.drained()
    read(run, 1, before)
    run.event("r1", "checkpoint", ordinal=7)
    read(run, 1, [each for each in ALL if each not in before])
    read(run, 3, again)
    return run


def read(run: Shown, session: int, places: Places) -> None:
    for span, position, value in places:
        run.event("r1", "row", span, position, LEFT, value, session=session)


def judged(run: Shown, folder: Path) -> Judgement:
    return run.judged(check, folder)


def test_exactly_what_lies_behind_a_checkpoint_comes_again(tmp_path: Path) -> None:
    judgement = judged(restored([SECOND, LAST]), tmp_path)
    assert found(judgement) == []
    assert judgement.witnesses == {"restored-early": 2, "restored-lost": 2, "torn-checkpoint": 3}


@pytest.mark.parametrize(
    ("again", "anomalies"),
    [(ALL, [("restored-early", 1)]), ([SECOND], [("restored-lost", 1)]), ([LAST], [("restored-lost", 1)])],
)
def test_more_or_less_than_that_is_found(tmp_path: Path, again: Places, anomalies: list[tuple[str, int]]) -> None:
    assert found(judged(restored(again), tmp_path)) == anomalies


@pytest.mark.parametrize("before", [(), (FIRST, SECOND)])
def test_a_checkpoint_between_other_events_than_its_cut_is_torn(tmp_path: Path, before: Places) -> None:
    assert found(judged(restored([SECOND, LAST], before=before), tmp_path)) == [("torn-checkpoint", 1)]


def test_a_cut_in_a_successor_covers_its_predecessors(tmp_path: Path) -> None:
    assert found(judged(restored([LAST], before=(FIRST, SECOND), cut=[(2, 1, 0)]), tmp_path)) == []


def test_what_was_truncated_need_not_come_again(tmp_path: Path) -> None:
    run = restored([LAST])
    run.segment("0/0", [plain(LEFT, 1, 1), plain(LEFT, 2, 2)], is_sealed=True, start=2)
    run.records = [each for each in run.records if not (isinstance(each, State) and each.value == [True, OLD, 0])]
    assert found(judged(run, tmp_path)) == []


OLD = [plain(LEFT, 1, 1), plain(LEFT, 2, 2)]


def test_without_a_restoration_nothing_is_claimed(tmp_path: Path) -> None:
    run = restored(())
    run.records = [each for each in run.records if not (isinstance(each, State) and each.object == "restored")]
    assert judged(run, tmp_path).witnesses == {"restored-early": 0, "restored-lost": 0, "torn-checkpoint": 0}


def test_a_repeat_behind_a_restoration_is_none_of_the_group(tmp_path: Path) -> None:
    """Session 3 is another reader's here, so both sessions are the last of their readers."""
    run = restored(())
    for span, position, value in (SECOND, LAST):
        run.event("r2", "row", span, position, LEFT, value, session=3)
    assert found(run.judged(check_group, tmp_path / "a")) == []
    run.event("r2", "row", *LAST[:2], LEFT, LAST[2], session=3)
    assert found(run.judged(check_group, tmp_path / "b")) == [("group-repeat", 1)]
