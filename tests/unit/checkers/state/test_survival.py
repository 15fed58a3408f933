"""Failures that leave one node of each group alive lose nothing, and invent nothing."""

from pathlib import Path
from typing import Literal

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import PLAIN, Names, forms_of
from checkers.state import durability
from harness.core.promises import Bounds, Naming, StreamContract
from harness.core.verdict import Judgement
from nemesis.registry import EXCUSES
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, counts, epoch


def judged(run: Run, folder: Path, name: Names = PLAIN) -> Judgement:
    return durability.check_rest(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES, name=name))


def survived() -> Run:
    """d2 crashes while T0 to T3 run; T2 failed, and of T3 nobody knows."""
    run = Run()
    run.fault("crash", "d2", 5, 200)
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 2, 1: 3}, at=epoch(1, 1))
    run.append(30, {0: 4, 1: 5}, "fail")
    run.append(40, {0: 6, 1: 7}, "info")
    return run


def ended(group0: list[int], group1: list[int]) -> Run:
    run = survived()
    run.dump(900, "d1 d2", {0: group0})
    run.dump(900, "d3 d4", {1: group1})
    return run


@pytest.mark.parametrize(("group0", "group1"), [([1, 2], [3]), ([1, 2, 6], [3, 7])])
def test_all_that_was_acknowledged_is_there_and_the_unclear_wholly_or_not(
    tmp_path: Path, group0: list[int], group1: list[int]
) -> None:
    judgement = judged(ended(group0, group1), tmp_path)
    assert anomalies(judgement) == []
    assert counts(judgement) == {
        "lost-acknowledged": 2,
        "duplicate-elements": 2,
        "phantom-write": 1,
        "fractured-transaction": 2,
    }


@pytest.mark.parametrize(
    ("group0", "group1", "expected", "op"),
    [
        ([2], [3], ["lost-acknowledged"], 0),
        ([1], [3], ["lost-acknowledged", "fractured-transaction"], 1),
        ([1, 2, 4], [3, 5], ["phantom-write"], 2),
        ([1, 2, 6], [3], ["fractured-transaction"], 3),
    ],
)
def test_what_a_failure_did_to_a_transaction(
    tmp_path: Path, group0: list[int], group1: list[int], expected: list[str], op: int
) -> None:
    judgement = judged(ended(group0, group1), tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.findings[0].ops == (op,)


def test_an_element_twice_and_one_of_nobody(tmp_path: Path) -> None:
    assert anomalies(judged(ended([1, 2, 2, 99], [3]), tmp_path)) == ["phantom-write", "duplicate-elements"]


@pytest.mark.parametrize(("position", "place"), [("epoch", "epoch 1/2"), ("commit-timestamp", "timestamp 4294967298")])
def test_what_a_subscriber_saw_is_not_undone(
    tmp_path: Path, position: Literal["epoch", "commit-timestamp"], place: str
) -> None:
    run = ended([1, 2], [3])
    run.event(60, "s1", "row", epoch(1, 2), key=0, value=6)
    contract = StreamContract(closed="<=", cut="position", position=position)
    judgement = judged(run, tmp_path, Names(forms=forms_of(Naming(), contract, BOUNDS)))
    assert anomalies(judgement) == ["double-status"]
    assert f"T3 was delivered to a subscriber at {place}, and" in judgement.findings[0].sentence


@pytest.mark.parametrize(
    ("kind", "targets", "effect"),
    [
        ("crash", "s1", 1),
        ("crash", "d1 d2 d3 d4", 4),
        ("partition", "client>d1", 3),
        ("slow-subscriber", "s1>d1", 3),
        ("crash", "d2", 0),
    ],
)
def test_without_a_failure_that_is_survived_nothing_was_tested(
    tmp_path: Path, kind: str, targets: str, effect: int
) -> None:
    run = Run()
    run.fault(kind, targets, 5, 50, effect)
    run.append(10, {0: 1}, at=epoch(1))
    run.dump(900, "d1 d2", {0: [1]})
    assert counts(judged(run, tmp_path)) == {}


def test_what_began_after_the_last_failure_is_no_witness(tmp_path: Path) -> None:
    run = survived()
    run.append(300, {0: 8}, at=epoch(1, 9))
    run.dump(900, "d1 d2", {0: [1, 2, 8]})
    run.dump(900, "d3 d4", {1: [3]})
    assert judged(run, tmp_path).witnesses["lost-acknowledged"] == 2


def test_a_crash_that_ended_with_a_restart_of_the_whole_cluster_was_not_survived(tmp_path: Path) -> None:
    run = ended([1, 2], [3])
    run.restart(150, 1, 1, 2)
    assert counts(judged(run, tmp_path)) == {}


def test_a_node_that_is_in_no_view_any_more_proves_nothing(tmp_path: Path) -> None:
    run = survived()
    run.view(1, 1, "d1 d2 d3 d4")
    run.view(100, 2, "d1 d3 d4")
    run.dump(900, "d1", {0: [1, 2]})
    run.dump(900, "d2", {0: [1, 4]})
    run.dump(900, "d3 d4", {1: [3]})
    assert anomalies(judged(run, tmp_path)) == []


def test_what_a_restart_left_out_is_not_missed(tmp_path: Path) -> None:
    run = Run()
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 2}, at=epoch(3))
    run.restart(100, 1, 2, 9)
    run.dump(100, "d1 d2", {0: [1]}, restart=1)
    run.append(200, {0: 3}, at=epoch(9))
    run.dump(900, "d1 d2", {0: [1, 3]})
    assert anomalies(judged(run, tmp_path)) == []


@pytest.mark.parametrize(("last", "expected"), [([3], []), ([2, 3], ["resurrected"])])
def test_what_a_restart_did_is_told_once(tmp_path: Path, last: list[int], expected: list[str]) -> None:
    """The restart lost T1; T2, which it rightly left out, comes back only later."""
    run = Run()
    run.append(5, {2: 5}, at=epoch(1))
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 2}, at=epoch(3))
    run.restart(100, 1, 2, 9)
    run.dump(100, "d1 d2", {0: [], 2: [5]}, restart=1)
    run.append(200, {0: 3}, at=epoch(9))
    run.dump(900, "d1 d2", {0: last, 2: [5]})
    assert anomalies(judged(run, tmp_path)) == expected


@pytest.mark.parametrize("outcome", ["fail", "info"])
@pytest.mark.parametrize(("group0", "expected"), [([1, 4], 0), ([1], 1), ([], 2)])
def test_an_element_that_two_operations_appended_is_lost_if_it_is_not_there(
    tmp_path: Path, group0: list[int], expected: int, outcome: Literal["fail", "info"]
) -> None:
    """The client of T1 got an error, or no answer, and appended the same again."""
    run = Run()
    run.fault("crash", "d2", 5, 200)
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 4}, outcome)
    run.append(30, {0: 4}, at=epoch(1, 1))
    run.dump(900, "d1 d2", {0: group0})
    judgement = judged(run, tmp_path)
    assert [finding.anomaly for finding in judgement.findings] == ["lost-acknowledged"][:expected]
    assert sum(finding.count for finding in judgement.findings) == expected


def test_an_element_that_two_operations_appended_shows_neither(tmp_path: Path) -> None:
    """T1 had no answer, and its client appended 4 again, alone. A subscriber receives that."""
    run = Run()
    run.append(10, {0: 1}, at=epoch(1))
    run.append(20, {0: 4, 1: 7}, "info")
    run.append(30, {0: 4}, at=epoch(1, 1))
    run.event(60, "s1", "row", epoch(1, 1), key=0, value=4)
    run.dump(900, "d1 d2", {0: [1, 4]})
    run.dump(900, "d3 d4", {1: []})
    assert anomalies(judged(run, tmp_path)) == []


def test_without_dumps_final_reads_speak_of_the_keys_that_they_read(tmp_path: Path) -> None:
    run = survived()
    run.mark(500, "final")
    run.read(600, 0, [2, 6])
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["lost-acknowledged"]
    assert judgement.findings[0].ops == (0,)
    assert counts(judgement) == {"lost-acknowledged": 1, "duplicate-elements": 1}


def test_final_reads_of_two_keys_may_stand_on_two_sides_of_an_unclear_transaction(tmp_path: Path) -> None:
    run = survived()
    run.mark(500, "final")
    run.read(600, 0, [1, 2])
    run.read(610, 1, [3, 7])
    assert anomalies(judged(run, tmp_path)) == []


@pytest.mark.parametrize(("delivered", "expected"), [(550, ["double-status"]), (650, [])])
def test_a_final_read_shows_what_was_delivered_before_it_began(
    tmp_path: Path, delivered: int, expected: list[str]
) -> None:
    """T3's client gave up long before. Where a subscriber has it only later, it may have been under way until then."""
    run = survived()
    run.mark(500, "final")
    if delivered < 600:
        run.event(delivered, "s1", "row", epoch(1, 2), key=0, value=6)
    run.read(600, 0, [1, 2])
    if delivered > 600:
        run.event(delivered, "s1", "row", epoch(1, 2), key=0, value=6)
    assert anomalies(judged(run, tmp_path)) == expected


def test_a_read_before_the_final_phase_proves_nothing(tmp_path: Path) -> None:
    run = survived()
    run.read(45, 0, [])
    run.mark(500, "final")
    assert anomalies(judged(run, tmp_path)) == []


def test_without_groups_a_key_that_no_node_shows_may_be_on_one_that_shows_nothing(tmp_path: Path) -> None:
    """d3 and d4 hold the other half of the keys, and are down when the run ends."""
    run = survived()
    run.dump(900, "d1 d2", {0: [1]})
    folder = run.write(tmp_path)
    judgement = durability.check_rest(folder, Context(engine=ENGINE, bounds=Bounds(), excuses=EXCUSES))
    assert [one.sentence for one in judgement.findings] == [
        "T1 was acknowledged at position 4294967297, and no restart left it out, but at the end "
        "value 2 of key 0 is not there."
    ]
    assert counts(judgement) == {"lost-acknowledged": 1, "duplicate-elements": 1}
