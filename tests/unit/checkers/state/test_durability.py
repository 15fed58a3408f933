"""A restart of the whole cluster brings back what was saved, all of it, and nothing else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import durability
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement
from nemesis.registry import EXCUSES
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, counts, epoch


def judged(run: Run, folder: Path, **changes: object) -> Judgement:
    return durability.check_restarts(
        run.write(folder), Context(engine=ENGINE, bounds=replace(BOUNDS, **changes), excuses=EXCUSES)
    )


def restarted() -> Run:
    """T0 to T3 in checkpoints 1, 1, 2 and 3, then a restart with what 2 saved. Key 0 is in group 0, 1 in group 1."""
    run = Run()
    run.restart(0, 0, 0, 1)
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 2, 1: 3}, at=epoch(1, 1))
    run.append(30, {1: 4}, at=epoch(2))
    run.append(40, {0: 5, 1: 6}, at=epoch(3))
    run.fault("crash", "d1 d2 d3 d4", 60, 90, 4)
    run.restart(100, 1, 2, 9)
    return run


def dumped(group0: list[int], group1: list[int]) -> Run:
    run = restarted()
    run.dump(100, "d1 d2", {0: group0}, restart=1)
    run.dump(100, "d3 d4", {1: group1}, restart=1)
    return run


def test_a_restart_that_loses_whole_unsaved_checkpoints_is_legal(tmp_path: Path) -> None:
    judgement = judged(dumped([1, 2], [3, 4]), tmp_path)
    assert anomalies(judgement) == []
    assert counts(judgement) == {
        "lost-acknowledged": 3,
        "duplicate-elements": 3,
        "resurrected": 1,
        "fractured-restore": 2,
        "loss-beyond-bound": 1,
    }


def test_without_a_restart_nothing_was_tested(tmp_path: Path) -> None:
    run = Run()
    run.restart(0, 0, 0, 1)
    run.append(10, {0: 1}, at=epoch(1))
    run.dump(50, "d1 d2", {0: []})
    judgement = judged(run, tmp_path)
    assert (anomalies(judgement), counts(judgement)) == ([], {})


def test_a_saved_transaction_that_is_gone_is_lost(tmp_path: Path) -> None:
    judgement = judged(dumped([1, 2], [3]), tmp_path)
    (found,) = judgement.findings
    assert (found.anomaly, found.ops, found.count) == ("lost-acknowledged", (2,), 1)
    assert found.sentence == (
        "T2 was acknowledged at position 8589934592, and no restart left it out, but after restart 1 of the whole "
        "cluster, which restored 2, value 4 of key 1 is not there."
    )


def test_a_transaction_beyond_the_checkpoint_that_is_there_has_come_back(tmp_path: Path) -> None:
    judgement = judged(dumped([1, 2, 5], [3, 4, 6]), tmp_path)
    assert anomalies(judgement) == ["resurrected"]
    assert judgement.findings[0].ops == (3,)


def test_a_part_of_a_transaction_is_lost_and_fractured(tmp_path: Path) -> None:
    assert anomalies(judged(dumped([1, 2], [4]), tmp_path)) == ["lost-acknowledged", "fractured-restore"]


def test_a_part_of_a_void_transaction_has_come_back_and_is_fractured(tmp_path: Path) -> None:
    assert anomalies(judged(dumped([1, 2], [3, 4, 6]), tmp_path)) == ["resurrected", "fractured-restore"]


def test_one_node_that_restored_a_key_is_enough(tmp_path: Path) -> None:
    run = restarted()
    run.dump(100, "d1", {0: [1, 2]}, restart=1)
    run.dump(100, "d4", {1: [3, 4]}, restart=1)
    assert anomalies(judged(run, tmp_path)) == []


def test_a_group_that_showed_nothing_before_the_next_crash_proves_nothing(tmp_path: Path) -> None:
    run = restarted()
    run.dump(100, "d1 d2", {0: [1, 2]}, restart=1)
    run.dump(300, "d3 d4", {1: [3, 4]})
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses["lost-acknowledged"] == 1


@pytest.mark.parametrize(("group0", "group1"), [([1, 2], [3, 4]), ([1, 2, 7], [3, 4, 8])])
def test_an_unclear_transaction_is_there_or_not(tmp_path: Path, group0: list[int], group1: list[int]) -> None:
    run = dumped(group0, group1)
    run.append(45, {0: 7, 1: 8}, "info")
    assert anomalies(judged(run, tmp_path)) == []


def test_half_of_an_unclear_transaction_is_fractured(tmp_path: Path) -> None:
    run = dumped([1, 2, 7], [3, 4])
    run.append(45, {0: 7, 1: 8}, "info")
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["fractured-restore"]
    assert judgement.findings[0].sentence == (
        "T4 is there in part after restart 1 of the whole cluster, which restored 2: value 7 of key 0 is there, and "
        "value 8 of key 1 is not."
    )


@pytest.mark.parametrize(("gci", "expected"), [(2, ["lost-acknowledged"]), (3, [])])
def test_the_stream_tells_when_an_unclear_transaction_happened(tmp_path: Path, gci: int, expected: list[str]) -> None:
    run = dumped([1, 2], [3, 4])
    run.append(45, {0: 7}, "info")
    run.event(50, "s1", "row", epoch(gci, 5), key=0, value=7)
    assert anomalies(judged(run, tmp_path)) == expected


def test_a_failed_write_that_was_restored_is_a_phantom(tmp_path: Path) -> None:
    run = dumped([1, 2, 7], [3, 4])
    run.append(45, {0: 7}, "fail")
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["phantom-write"]
    assert judgement.witnesses["phantom-write"] == 1


def test_an_element_of_nobody_is_a_phantom(tmp_path: Path) -> None:
    judgement = judged(dumped([1, 2, 77], [3, 4]), tmp_path)
    assert anomalies(judgement) == ["phantom-write"]
    assert (
        "Nobody ever appended it, but after restart 1 of the whole cluster, which restored 2, value 77"
        in judgement.findings[0].sentence
    )


def test_redo_that_was_applied_twice_shows_an_element_twice(tmp_path: Path) -> None:
    assert anomalies(judged(dumped([1, 2, 2], [3, 4]), tmp_path)) == ["duplicate-elements"]


def test_what_one_restart_left_out_must_not_come_back_with_the_next(tmp_path: Path) -> None:
    run = dumped([1, 2], [3, 4])
    run.append(120, {0: 7}, at=epoch(9))
    run.restart(200, 2, 9, 12)
    run.dump(200, "d1 d2", {0: [1, 2, 5, 7]}, restart=2)
    run.dump(200, "d3 d4", {1: [3, 4, 6]}, restart=2)
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["resurrected"]
    assert "Restart 1 left out T3 at position 12884901888, but after restart 2 of" in judgement.findings[0].sentence


def test_what_one_restart_lost_is_not_lost_again_by_the_next(tmp_path: Path) -> None:
    run = dumped([1, 2], [3])
    run.restart(200, 2, 8, 12)
    run.dump(200, "d1 d2", {0: [1]}, restart=2)
    run.dump(200, "d3 d4", {1: [3]}, restart=2)
    first, second, half = judged(run, tmp_path).findings
    assert (first.anomaly, first.ops, first.count) == ("lost-acknowledged", (2,), 1)
    assert (second.anomaly, second.ops, second.count) == ("lost-acknowledged", (1,), 1)
    assert (half.anomaly, half.ops) == ("fractured-restore", (1,))


def test_half_of_an_unclear_transaction_may_come_back_with_a_later_restart(tmp_path: Path) -> None:
    run = dumped([1, 2], [3, 4])
    run.append(45, {0: 7, 1: 8}, "info")
    run.restart(200, 2, 8, 12)
    run.dump(200, "d1 d2", {0: [1, 2, 7]}, restart=2)
    run.dump(200, "d3 d4", {1: [3, 4]}, restart=2)
    assert anomalies(judged(run, tmp_path)) == ["fractured-restore"]


def test_an_answer_that_arrives_after_the_restart_belongs_to_the_generation_of_its_epoch(tmp_path: Path) -> None:
    run = dumped([1, 2], [3, 4])
    run.append(50, {0: 7}, at=epoch(3, 1), took_ms=100)
    run.append(55, {0: 8}, at=epoch(9), took_ms=100)
    assert anomalies(judged(run, tmp_path)) == []


def test_epochs_that_are_used_again_do_not_confuse_the_two_generations(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 2}, at=epoch(3))
    run.restart(100, 1, 1, 2)
    run.dump(100, "d1 d2", {0: [1]}, restart=1)
    run.append(120, {0: 3}, at=epoch(3))
    assert anomalies(judged(run, tmp_path)) == []


def test_a_loss_of_what_was_acknowledged_long_ago_is_beyond_the_bound(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {0: 1}, at=epoch(3))
    run.append(900, {0: 2}, at=epoch(3, 1))
    run.restart(1000, 1, 2, 9)
    run.dump(1000, "d1 d2", {0: []}, restart=1)
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["loss-beyond-bound"]
    assert "T0 was acknowledged at 0.011 s, 0.889 s before" in judgement.findings[0].sentence
    assert judgement.witnesses["loss-beyond-bound"] == 2


def test_time_in_which_faults_held_up_the_saving_does_not_count(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {0: 1}, at=epoch(3))
    run.fault("pause", "d2", 100, 500)
    run.append(900, {0: 2}, at=epoch(3, 1))
    run.restart(1000, 1, 2, 9)
    assert anomalies(judged(run, tmp_path)) == []


def test_a_cluster_that_is_down_for_long_has_lost_nothing_more(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {0: 1}, at=epoch(3))
    run.append(20, {0: 2}, at=epoch(3, 1))
    run.restart(5000, 1, 2, 9)
    assert anomalies(judged(run, tmp_path)) == []


@pytest.mark.parametrize(("restored", "expected"), [(4, ["loss-beyond-bound"]), (5, []), (6, [])])
def test_what_was_reported_as_saved_is_restored(tmp_path: Path, restored: int, expected: list[str]) -> None:
    run = Run()
    run.probe(10, "d1", "saved-gci", 5)
    run.restart(100, 1, restored, 9)
    run.probe(110, "d1", "saved-gci", 10)
    judgement = judged(run, tmp_path, loss_ns=None)
    assert anomalies(judgement) == expected
    assert counts(judgement) == {"loss-beyond-bound": 1}


def test_keys_and_elements_that_are_no_numbers_are_found_by_their_names(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {"x": 1}, at=epoch(1))
    run.append(20, {"x": 2}, at=epoch(1))
    run.restart(100, 1, 1, 9)
    run.dump(100, "d1 d2", {"x": [1]}, restart=1)
    judgement = durability.check_restarts(
        run.write(tmp_path),
        Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES, name=Names(lambda identity: f"<{identity}>")),
    )
    assert anomalies(judgement) == ["lost-acknowledged"]
    assert judgement.findings[0].ops == (1,)


def test_a_fingerprint_is_of_the_transaction(tmp_path: Path) -> None:
    one = judged(dumped([1, 2], [3]), tmp_path / "one").findings[0]
    other = judged(dumped([1, 2], [3]), tmp_path / "other").findings[0]
    third = judged(dumped([2], [3, 4]), tmp_path / "third").findings[0]
    assert one.fingerprint == other.fingerprint != third.fingerprint


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    history = restarted().write(tmp_path)
    (history / "states.parquet").write_bytes(b"nothing")
    with pytest.raises(HistoryError, match=r"states\.parquet"):
        durability.check_restarts(history, Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES))
