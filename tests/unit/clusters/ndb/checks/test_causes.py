"""A gap marker needs a cause, and so does a disconnection."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from clusters.ndb.checks import causes
from harness.core.verdict import Judgement
from nemesis.registry import EXCUSES
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, epoch


def judged(run: Run, folder: Path) -> Judgement:
    return causes.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES))


def found(run: Run, folder: Path) -> list[str]:
    return anomalies(judged(run, folder))


def marked(cause: str, *, ms: float = 1000, position: int | None = 500) -> Run:
    """Session 1 of s1, with watermarks up to 499, and a gap marker at 1000 ms."""
    run = Run()
    run.event(1, "s1", "open", 0)
    run.watermarks("s1", range(100, 500, 100))
    run.event(ms, "s1", "gap", position, value=cause)
    return run


def taken_over(*, dropped: int | None = 600, lost: str | None = "d1", position: int = 500) -> Run:
    """d2 marks an epoch as missing, perhaps after it dropped rows, and after d1 was lost."""
    run = marked("inconsistent")
    run.view(0, 1, "d1 d2 d3 d4")
    if dropped is not None:
        run.probe(700, "d2", "out-of-buffer", dropped)
    if lost is not None:
        run.view(800, 2, " ".join(node for node in ("d1", "d2", "d3", "d4") if node != lost))
    run.state(800, "d2", "missing", 3, None, position)
    return run


def test_an_epoch_that_a_take_over_could_not_send_again_has_a_cause(tmp_path: Path) -> None:
    judgement = judged(taken_over(), tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses["false-gap"] == 2


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (marked("inconsistent"), "no data node had marked that epoch as missing"),
        (taken_over(position=499), "no data node had marked that epoch as missing"),
        (taken_over(dropped=None), "the group of d2, which marked it, had dropped no buffered rows of it"),
        (taken_over(dropped=499), "had dropped no buffered rows of it"),
        (taken_over(lost=None), "d2, which marked it, had lost no node of its group"),
        (taken_over(lost="d3"), "d2, which marked it, had lost no node of its group"),
    ],
)
def test_rows_are_missing_only_after_a_full_buffer_and_the_loss_of_the_peer(
    tmp_path: Path, run: Run, reason: str
) -> None:
    (false,) = judged(run, tmp_path).findings
    assert false.anomaly == "false-gap"
    assert reason in false.sentence


def test_a_node_that_was_brought_in_keeps_nothing_from_before(tmp_path: Path) -> None:
    """d2 comes back, is a full member from epoch 550 on, and then loses d1: what came before it cannot send."""
    run = marked("inconsistent")
    run.view(0, 1, "d1 d2 d3 d4")
    run.view(300, 2, "d1 d3 d4")
    run.view(400, 3, "d1 d3 d4 d2")
    for node in ("d1", "d3", "d4", "d2"):
        run.state(600, node, "view", 4, ["d1", "d3", "d4", "d2"], 550)
    run.view(800, 5, "d3 d4 d2")
    run.state(800, "d2", "missing", 3, None, 500)
    assert found(run, tmp_path) == []
    run.state(801, "d2", "missing", 3, None, 551)
    run.event(1100, "s1", "gap", 551, value="inconsistent")
    assert found(run, tmp_path / "later") == ["false-gap"]


@pytest.mark.parametrize(("full_ms", "expected"), [(900, []), (1100, ["false-gap"])])
def test_a_buffer_must_have_been_full_before_the_marker_says_so(
    tmp_path: Path, full_ms: int, expected: list[str]
) -> None:
    run = marked("out-of-memory")
    run.probe(full_ms, "s1", "event-buffer-full", 200)
    run.probe(900, "s2", "event-buffer-full", 200)
    assert found(run, tmp_path) == expected


def test_a_buffer_that_was_full_once_explains_one_marker(tmp_path: Path) -> None:
    run = marked("out-of-memory")
    run.probe(900, "s1", "event-buffer-full", 200)
    run.event(1001, "s1", "open", 510)
    run.event(1200, "s1", "gap", 600, value="out-of-memory")
    (false,) = judged(run, tmp_path).findings
    assert "its buffer had been full 1 times before, and this is marker 2" in false.sentence


@pytest.mark.parametrize(
    ("key", "ms", "expected"), [("s1", 900, []), ("s2", 900, ["false-gap"]), ("s1", 1100, ["false-gap"])]
)
def test_a_subscription_that_a_node_ended_explains_the_end_of_it(
    tmp_path: Path, key: str, ms: int, expected: list[str]
) -> None:
    run = marked("disconnected")
    run.state(ms, "d1", "disconnect", key, ["lagging", 9, 1000], 499)
    assert found(run, tmp_path) == expected


@pytest.mark.parametrize(("ended_at", "expected"), [(520, []), (499, ["false-gap"])])
def test_a_user_may_hear_of_two_sessions_when_both_have_ended(
    tmp_path: Path, ended_at: int, expected: list[str]
) -> None:
    run = marked("disconnected")
    run.state(600, "d1", "disconnect", "s1", ["lagging", 9, 1000], 490)
    run.event(1000, "s1", "close")
    run.state(800, "d1", "disconnect", "s1", ["lagging", 9, 1000], ended_at)
    run.event(1001, "s1", "open", 500, session=2)
    run.event(1001, "s1", "gap", 510, value="disconnected", session=2)
    run.event(1001, "s1", "close", session=2)
    run.event(1001, "s1", "open", 511, session=3)
    run.event(1001, "s1", "gap", 515, value="disconnected", session=3)
    assert found(run, tmp_path) == expected


@pytest.mark.parametrize(
    ("kind", "targets", "begin", "end", "expected"),
    [
        ("partition", "d1>s1", 900, 1200, []),
        ("crash", "d3", 700, 750, []),  # It came back, and no longer knew the session.
        ("crash", "d3", 100, 200, ["false-gap"]),  # Its grace was over.
        ("slow-link", "d1>s1", 900, 1200, ["false-gap"]),
        ("crash", "s2", 900, 1200, ["false-gap"]),
    ],
)
def test_a_fault_explains_the_end_of_a_session(
    tmp_path: Path, kind: str, targets: str, begin: int, end: int, expected: list[str]
) -> None:
    run = marked("disconnected")
    run.fault(kind, targets, begin, end)
    run.append(600, {0: 1}, at=500)
    assert found(run, tmp_path) == expected


def test_a_user_that_hears_of_it_late_does_not_make_the_marker_false(tmp_path: Path) -> None:
    run = marked("disconnected", ms=5000)
    run.fault("partition", "d1>s1", 900, 1200)
    run.append(600, {0: 1}, at=500)
    assert found(run, tmp_path) == []


def test_a_failure_of_the_cluster_needs_a_restart_or_faults_of_all_nodes(tmp_path: Path) -> None:
    assert found(marked("cluster-failure"), tmp_path / "1") == ["false-gap"]
    run = marked("cluster-failure")
    run.append(600, {0: 1}, at=500)
    run.restart(1300, 1, 0, 2)
    assert found(run, tmp_path / "2") == []
    run = marked("cluster-failure")
    run.fault("partition", "d1>s1 d2>s1 d3>s1 d4>s1", 900, 1200)
    assert found(run, tmp_path / "3") == []
    run = marked("cluster-failure")
    run.fault("crash", "d1 d2 d3", 900, 1200)
    assert found(run, tmp_path / "4") == ["false-gap"]
    run.fault("crash", "d4", 950, 1200)
    assert found(run, tmp_path / "5") == []


def test_a_restart_before_the_cluster_last_succeeded_explains_nothing(tmp_path: Path) -> None:
    run = marked("cluster-failure")
    run.restart(50, 1, 0, 2)
    run.append(600, {0: 1}, at=500)
    assert found(run, tmp_path) == ["false-gap"]


def test_a_restart_after_later_successes_explains_nothing(tmp_path: Path) -> None:
    run = marked("cluster-failure")
    run.append(600, {0: 1}, at=500)
    run.append(1100, {0: 2}, at=600)
    run.restart(1300, 1, 0, 2)
    assert found(run, tmp_path) == ["false-gap"]


def test_a_loss_of_a_node_without_a_marker_is_a_witness_in_each_session(tmp_path: Path) -> None:
    run = Run()
    for subscriber in ("s1", "s2"):
        run.event(1, subscriber, "open", 0)
    run.event(500, "s2", "gap", 1, value="disconnected")
    run.event(500, "s2", "close")
    run.state(400, "d1", "disconnect", "s2", ["lagging", 9, 1000], 499)
    run.view(0, 1, "d1 d2 d3 d4")
    run.view(200, 2, "d1 d2 d3")
    run.view(600, 3, "d1 d2 d3 d4")
    run.view(700, 4, "d1 d2 d4")
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses == {"false-gap": 4, "spurious-disconnect": 1}


@pytest.mark.parametrize(("behind", "expected"), [(9, []), (8, ["spurious-disconnect"])])
def test_only_a_lagging_subscriber_is_disconnected_as_lagging(tmp_path: Path, behind: int, expected: list[str]) -> None:
    run = Run()
    run.state(500, "d1", "disconnect", "s1", ["lagging", behind, 5], epoch(1))
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["spurious-disconnect"] == 1


def test_a_take_over_may_announce_more_old_epochs_than_anybody_could_acknowledge(tmp_path: Path) -> None:
    run = Run()
    run.view(0, 1, "d1 d2 d3 d4")
    run.view(450, 2, "d2 d3 d4")
    run.state(500, "d2", "disconnect", "s1", ["lagging", 5, 5], epoch(1))
    assert found(run, tmp_path / "1") == []
    run.state(510, "d3", "disconnect", "s2", ["lagging", 5, 5], epoch(1))
    assert found(run, tmp_path / "2") == ["spurious-disconnect"]


@pytest.mark.parametrize(
    ("targets", "end", "expected"),
    [
        ("s1>d1", 600, []),
        ("d1", 600, []),
        ("s1", 350, []),
        ("s1", 250, ["spurious-disconnect"]),
        ("s2 d2", 600, ["spurious-disconnect"]),
    ],
)
def test_a_link_ends_only_if_a_fault_struck_it(tmp_path: Path, targets: str, end: int, expected: list[str]) -> None:
    run = Run()
    run.fault("crash", targets, 100, end)
    run.state(500, "d1", "disconnect", "s1", ["link", 0, 5], epoch(1))
    assert found(run, tmp_path) == expected


def test_a_fault_that_slowed_a_subscriber_could_have_ended_its_session(tmp_path: Path) -> None:
    run = Run()
    run.event(1, "s1", "open", 0)
    run.fault("slow-subscriber", "s1>d1", 100, 200)
    run.fault("slow-subscriber", "s1", 300, 400, effect=0)
    assert judged(run, tmp_path).witnesses["spurious-disconnect"] == 1
