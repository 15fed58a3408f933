"""The shape of epochs at rest: cuts, copies, rolls, and what lies where."""

from pathlib import Path

import pytest

from clusters.pravega.checks.epochs import ANOMALIES, check
from clusters.pravega.shape import SPACE
from tests.unit.clusters.pravega.checks.shown import HALF, LEFT, RIGHT, TWO, Shown, Spans, copied, found, of_txn, plain

ONE: Spans = [(0, SPACE, 2, 1)]


def rolled(tmp_path: Path, *, events: bool = True, is_sealed: bool = True, epoch: int = 0) -> list[tuple[str, int]]:
    """A scale to one segment, then a roll of a transaction of the first epoch."""
    run = Shown()
    run.epochs((0, TWO), (1, ONE), (0, copied(TWO, 2)), (1, copied(ONE, 3)))
    for name in ("0/0", "1/0", "2/1"):
        run.segment(name, is_sealed=True)
    run.segment("0/2", [of_txn(LEFT, 1, epoch)] if events else [], is_sealed=is_sealed)
    run.segment("1/2", is_sealed=True)
    run.segment("2/3")
    return found(run.judged(check, tmp_path))


def test_a_roll_as_it_should_be(tmp_path: Path) -> None:
    assert rolled(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "anomaly"),
    [({"events": False}, "empty-roll"), ({"is_sealed": False}, "open-past"), ({"epoch": 1}, "misplaced-event")],
)
def test_a_roll_that_went_wrong(tmp_path: Path, changed: dict[str, bool], anomaly: str) -> None:
    assert rolled(tmp_path, **changed) == [(anomaly, 1)]


@pytest.mark.parametrize(
    ("reference", "spans", "anomaly"),
    [
        (1, [(0, HALF, 2, 1), (HALF + 1, SPACE, 3, 1)], "key-space-cut"),
        (1, [(0, HALF + 1, 2, 1), (HALF, SPACE, 3, 1)], "key-space-cut"),
        (1, [(0, HALF, 2, 1)], "key-space-cut"),
        (0, [(0, HALF, 2, 1), (HALF, SPACE, 3, 1)], "wrong-reference"),
        (2, [(0, HALF, 2, 1), (HALF, SPACE, 3, 1)], "wrong-reference"),
    ],
)
def test_an_epoch_of_the_wrong_shape(tmp_path: Path, reference: int, spans: Spans, anomaly: str) -> None:
    run = Shown()
    run.epochs((0, TWO), (reference, spans))
    for _, _, number, epoch in TWO:
        run.segment(f"{number}/{epoch}", is_sealed=True)
    for _, _, number, epoch in spans:
        run.segment(f"{number}/{epoch}", [of_txn(LEFT, 1)] if reference == 0 and number == 2 else [])
    assert anomaly in dict(found(run.judged(check, tmp_path)))


def test_a_segment_that_a_scale_leaves_alone_takes_transactions_of_both_epochs(tmp_path: Path) -> None:
    run = Shown()
    quarter = HALF // 2
    run.epochs((0, TWO), (1, [(0, quarter, 2, 1), (quarter, HALF, 3, 1), (HALF, SPACE, 1, 0)]))
    run.segment("0/0", is_sealed=True)
    run.segment("2/1")
    run.segment("3/1")
    run.segment("1/0", [of_txn(RIGHT, 1, 0), of_txn(RIGHT, 2, 1, 2), plain(RIGHT, 3)])
    judgement = run.judged(check, tmp_path)
    assert found(judgement) == []
    assert (judgement.witnesses["key-space-cut"], judgement.witnesses["foreign-reference"]) == (2, 2)


def test_an_event_of_another_segments_key_is_misplaced(tmp_path: Path) -> None:
    run = Shown()
    run.epochs((0, TWO))
    run.segment("0/0", [plain(RIGHT, 1), plain(LEFT, 2)])
    run.segment("1/0")
    assert found(run.judged(check, tmp_path)) == [("misplaced-event", 1)]


def test_a_transaction_against_a_copy_is_told(tmp_path: Path) -> None:
    run = Shown()
    run.epochs((0, TWO), (0, copied(TWO, 1)), (0, copied(TWO, 2)))
    for name in ("0/0", "1/0", "1/1"):
        run.segment(name, is_sealed=True)
    run.segment("0/1", [of_txn(LEFT, 1, 0)], is_sealed=True)
    run.segment("0/2", [of_txn(LEFT, 2, 2)])
    run.segment("1/2")
    assert found(run.judged(check, tmp_path)) == [("misplaced-event", 1), ("foreign-reference", 1)]


@pytest.mark.parametrize("has_epochs", [True, False])
def test_what_was_not_shown_is_unknown(tmp_path: Path, has_epochs: bool) -> None:
    run = Shown()
    if has_epochs:
        run.epochs((0, TWO))
    run.segment("0/0")
    judgement = run.judged(check, tmp_path)
    assert (found(judgement), set(judgement.unknown)) == ([], set(ANOMALIES))
