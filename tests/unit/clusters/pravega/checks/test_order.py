"""The order of a key's events over segments: writers, blocks, commits, and real time."""

from pathlib import Path

from clusters.pravega.checks.order import check
from clusters.pravega.shape import SPACE
from harness.core.verdict import Judgement
from tests.unit.clusters.pravega.checks.shown import LEFT, TWO, Event, Shown, found, of_txn, plain


def judged(folder: Path, run: Shown, old: list[Event], new: list[Event] | None = None) -> Judgement:
    """The judgement of a stream of two segments, or of one that follows one of them."""
    run.epochs((0, TWO), *([] if new is None else [(1, [(0, SPACE, 2, 1)])]))
    run.segment("0/0", old, is_sealed=new is not None)
    run.segment("1/0", is_sealed=new is not None)
    if new is not None:
        run.segment("2/1", new)
    return run.judged(check, folder)


def test_a_writers_events_are_in_order_over_epochs(tmp_path: Path) -> None:
    old = [plain(LEFT, 1, 1), plain(LEFT, 2, 1, "w2.2"), plain(LEFT, 3, 4)]
    judgement = judged(tmp_path / "a", Shown(), old, [plain(LEFT, 4, 5)])
    assert (found(judgement), judgement.witnesses["writer-order"]) == ([], 2)
    assert found(judged(tmp_path / "b", Shown(), old, [plain(LEFT, 4, 3)])) == [("writer-order", 1)]


def test_an_events_number_does_not_come_twice(tmp_path: Path) -> None:
    assert found(judged(tmp_path, Shown(), [plain(LEFT, 1, 1), plain(LEFT, 1, 1)])) == [("writer-order", 1)]


def test_the_events_of_a_transaction_stand_together(tmp_path: Path) -> None:
    whole = [of_txn(LEFT, 1), of_txn(LEFT, 2), plain(LEFT, 3), of_txn(LEFT, 4, 0, 2)]
    judgement = judged(tmp_path / "a", Shown(), whole)
    assert (found(judgement), judgement.witnesses["split-block"]) == ([], 1)
    split = [of_txn(LEFT, 1), plain(LEFT, 3), of_txn(LEFT, 2)]
    assert found(judged(tmp_path / "b", Shown(), split)) == [("split-block", 1)]


def two(first_end: int, outcome: str = "ok") -> Shown:
    """An operation that wrote 1, until `first_end`, and one that began at 20 and wrote 2."""
    run = Shown()
    run.append(0, first_end, LEFT, 1, outcome="ok" if outcome == "ok" else "info")
    run.append(20, 30, LEFT, 2)
    return run


def test_transactions_keep_to_real_time_where_their_epochs_allow(tmp_path: Path) -> None:
    back = [of_txn(LEFT, 2, 0, 2), of_txn(LEFT, 1, 0, 1)]
    assert found(judged(tmp_path / "a", two(10), back)) == [("commit-order", 1)]
    assert found(judged(tmp_path / "b", two(25), back)) == []  # They were open at once.
    assert found(judged(tmp_path / "c", two(10, "info"), back)) == []
    forth = judged(tmp_path / "d", two(10), back[::-1])
    assert (found(forth), forth.witnesses["commit-order"]) == ([], 1)


def test_a_transaction_of_an_older_epoch_may_come_first(tmp_path: Path) -> None:
    assert found(judged(tmp_path / "a", two(10), [of_txn(LEFT, 2, 0, 2)], [of_txn(LEFT, 1, 1)])) == []
    assert found(judged(tmp_path / "b", two(10), [of_txn(LEFT, 2, 1, 2)], [of_txn(LEFT, 1, 0)])) == [
        ("commit-order", 1)
    ]


def test_plain_events_keep_to_real_time_among_themselves(tmp_path: Path) -> None:
    back = [plain(LEFT, 2, 1, "w2.2"), plain(LEFT, 1, 1)]
    assert found(judged(tmp_path / "a", two(10), back)) == [("append-order", 1)]
    assert found(judged(tmp_path / "b", two(25), back)) == []
    # A transaction that was committed before may still come later.
    assert found(judged(tmp_path / "c", two(10), [plain(LEFT, 2), of_txn(LEFT, 1)])) == []
