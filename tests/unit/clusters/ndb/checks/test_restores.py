"""What a backup and the epochs after it restore is the state after an epoch."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from clusters.ndb.checks import restores
from harness.core.errors import HistoryError
from harness.core.record import Json, MicroOp
from harness.core.verdict import Judgement
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, epoch

Lists = dict[int, list[int]]


def told(*, is_restarted: bool = False) -> Run:
    """Of list 1: 10 in 3/0, 11 in 5/0, 12 in 6/0, 13 of unclear outcome, 14 failed. Of list 2: 20 and 21 in 5/0."""
    run = Run()
    for at, (element, gci) in enumerate(((10, 3), (11, 5), (12, 6))):
        run.append(10 + at * 10, {1: element}, at=epoch(gci))
    run.append(50, {1: 13}, "info")
    run.append(60, {1: 14}, "fail")
    for element in (20, 21):
        run.append(50 + element, {2: element}, at=epoch(5))
    if is_restarted:
        run.restart(80, 1, 4, 8)
    return run


def judged(run: Run, folder: Path, gci: int, until: int, lists: Lists | str) -> Judgement:
    shown: Json = [gci, until, [[key, [*held]] for key, held in lists.items()]] if isinstance(lists, dict) else lists
    run.show(90, "restore", shown)
    return restores.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS))


@pytest.mark.parametrize(
    ("gci", "until", "lists", "expected"),
    [
        (5, epoch(6) - 1, {1: [10, 11], 2: [20, 21]}, []),
        (5, epoch(6), {1: [10, 11, 12], 2: [20, 21]}, []),
        (5, epoch(6) - 1, {1: [10], 2: [20, 21]}, ["false-restore"]),  # 11 is missing.
        (5, epoch(6) - 1, {1: [10, 11]}, ["false-restore"]),
        (5, epoch(6) - 1, {1: [10, 11, 12], 2: [20, 21]}, ["false-restore"]),  # 12 is of a later checkpoint.
        (5, epoch(6) - 1, {1: [11, 10], 2: [20, 21]}, ["false-restore"]),
        (5, epoch(6) - 1, {1: [10, 11, 14], 2: [20, 21]}, ["false-restore"]),
        (5, epoch(6) - 1, {1: [10, 11, 77], 2: [20, 21]}, ["false-restore"]),
        # Legal: unclear elements, another order in one epoch, and lists that nobody has written to yet.
        (5, epoch(6) - 1, {1: [10, 13, 11], 2: [21, 20]}, []),
        (3, epoch(4) - 1, {1: [10], 5: []}, []),
    ],
)
def test_a_restore_has_what_was_committed_by_its_epoch(
    tmp_path: Path, gci: int, until: int, lists: Lists, expected: list[str]
) -> None:
    judgement = judged(told(), tmp_path, gci, until, lists)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["false-restore"] == sum(map(bool, lists.values()))


@pytest.mark.parametrize(
    ("until", "lists", "expected"),
    [
        (epoch(9), {1: [10]}, []),  # The restart lost all that was above checkpoint 4.
        (epoch(9), {1: [10, 11], 2: [20, 21]}, ["false-restore"]),
        (epoch(6), {1: [10, 11, 12], 2: [20, 21]}, []),  # Legal: a backup from before the restart.
    ],
)
def test_what_a_restart_lost_is_in_no_later_backup(
    tmp_path: Path, until: int, lists: Lists, expected: list[str]
) -> None:
    assert anomalies(judged(told(is_restarted=True), tmp_path, 6, until, lists)) == expected


@pytest.mark.parametrize(("gci", "expected"), [(5, []), (6, ["false-restore"])])
def test_of_a_transaction_after_the_backup_a_list_has_its_last_element(
    tmp_path: Path, gci: int, expected: list[str]
) -> None:
    """A binlog has one change of a row for each transaction, a backup has all elements."""
    run = Run()
    run.show(10, "txn", mops=(MicroOp("append", 7, 1), MicroOp("append", 7, 2)), at=epoch(6))
    assert anomalies(judged(run, tmp_path, gci, epoch(6), {7: [2]})) == expected


def test_a_restore_of_another_form_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="what a restore shows has another form"):
        judged(told(), tmp_path, 5, 6, "nonsense")
    assert restores.check(told().write(tmp_path / "none"), Context(engine=ENGINE, bounds=BOUNDS)).findings == ()
