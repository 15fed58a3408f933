"""The processor's work, by the changes of the stream's records: overlaps, batches, and scales that wait."""

from pathlib import Path

from clusters.pravega.checks.processing import PATIENCE, check
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.unit.clusters.pravega.checks.shown import LEFT, TWO, Shown, found, of_txn, plain

BEGUN: list[list[Json]] = [["state", "committing"], ["committing", 0, [1, 2]]]
ENDED: list[list[Json]] = [["committed"], ["state", "active"]]


def judged(folder: Path, *changes: list[Json], order: tuple[int, ...] = (1, 2)) -> Judgement:
    run = Shown()
    run.epochs((0, TWO))
    run.segment("0/0", [plain(LEFT, 9), *(of_txn(LEFT, txn, 0, txn) for txn in order)])
    run.segment("1/0")
    run.changes(*changes)
    return run.judged(check, folder)


def test_scales_and_rolls_have_their_own_states(tmp_path: Path) -> None:
    scale: list[list[Json]] = [["scale-planned"], ["state", "scaling"], ["epoch", 0], ["epoch", 1], ["scale-done"]]
    roll: list[list[Json]] = [*BEGUN, ["epoch", 3], *ENDED]
    judgement = judged(tmp_path / "a", *scale, ["state", "active"], *roll)
    assert (found(judgement), judgement.witnesses["overlapping-work"], judgement.witnesses["starved-scale"]) == (
        [], 2, 1,
    )  # fmt: skip
    assert found(judged(tmp_path / "b", ["epoch", 1])) == [("overlapping-work", 1)]
    assert found(judged(tmp_path / "c", ["state", "scaling"], ["epoch", 2])) == [("overlapping-work", 1)]
    assert found(judged(tmp_path / "d", ["state", "scaling"], *BEGUN, *ENDED)) == [("overlapping-work", 1)]


def test_a_roll_while_the_stream_is_being_sealed_is_legal(tmp_path: Path) -> None:
    sealing: list[list[Json]] = [["state", "sealing"], ["committing", 0, [1, 2]], ["epoch", 2], ["committed"]]
    assert found(judged(tmp_path / "a", *sealing, ["state", "sealed"])) == []
    assert found(judged(tmp_path / "b", ["state", "sealing"], ["state", "sealed"], ["epoch", 2])) == [
        ("overlapping-work", 1)
    ]


def test_a_batch_that_is_recorded_again_is_the_same(tmp_path: Path) -> None:
    again = judged(tmp_path / "a", *BEGUN, ["committing", 0, [1, 2]], *ENDED)  # Pinned, or by another controller.
    assert (found(again), again.witnesses["changed-batch"]) == ([], 1)
    assert found(judged(tmp_path / "b", *BEGUN, ["committing", 0, [1, 2, 3]], *ENDED)) == [("changed-batch", 1)]
    assert found(judged(tmp_path / "c", *BEGUN, *ENDED, ["committing", 0, [3]])) == []


def test_transactions_are_in_the_order_of_their_batches(tmp_path: Path) -> None:
    judgement = judged(tmp_path / "a", *BEGUN, *ENDED)
    assert (found(judgement), judgement.witnesses["batch-order"]) == ([], 1)
    assert found(judged(tmp_path / "b", *BEGUN, *ENDED, order=(2, 1))) == [("batch-order", 1)]
    two: list[list[Json]] = [["committing", 0, [2]], *ENDED, ["committing", 0, [1]], *ENDED]
    assert found(judged(tmp_path / "c", *two)) == [("batch-order", 1)]
    assert found(judged(tmp_path / "d", *two, order=(2, 1, 7))) == []  # What was never in a batch claims nothing.


def test_a_planned_scale_has_its_turn_after_a_few_batches(tmp_path: Path) -> None:
    batch: list[list[Json]] = [["committing", 0, [1]], ["committed"]]
    waits: list[list[Json]] = [["scale-planned"], *batch * (PATIENCE - 1)]
    assert found(judged(tmp_path / "a", *batch * 9, *waits, ["state", "scaling"], *batch)) == []
    assert found(judged(tmp_path / "b", *waits, ["scale-done"], *waits)) == []  # Dropped, and planned anew.
    assert found(judged(tmp_path / "c", *waits, *batch * 3)) == [("starved-scale", 1)]


def test_without_changes_nothing_is_decided(tmp_path: Path) -> None:
    judgement = judged(tmp_path)
    assert (judgement.findings, set(judgement.unknown.values())) == ((), {"the metadata node showed no changes"})
