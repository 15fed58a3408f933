"""At most one side of a partition goes on."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from clusters.ndb.checks import authority
from harness.core.verdict import Judgement
from nemesis.registry import EXCUSES
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, epoch


def judged(run: Run, folder: Path) -> Judgement:
    return authority.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS, excuses=EXCUSES))


def parted() -> Run:
    """All four, then d1 and d3 on one side from 100 ms on."""
    run = Run()
    run.fault("partition", "d1>d2 d2>d1 d3>d4 d4>d3 d1>d4 d4>d1 d2>d3 d3>d2", 50, 500)
    run.view(1, 1, "d1 d2 d3 d4")
    run.state(99, "m1", "grant", 2, ["d1", "d3"])
    run.view(100, 2, "d1 d3")
    return run


def test_two_sides_that_both_acknowledge_new_writes_are_a_split_brain(tmp_path: Path) -> None:
    run = parted()
    run.view(110, 3, "d2 d4")
    run.append(120, {0: 1}, at=epoch(2), node="d1")
    run.append(130, {0: 2}, at=epoch(2), node="d2")
    (found,) = judged(run, tmp_path).findings
    assert (found.anomaly, found.ops, found.count) == ("split-brain", (0, 1), 1)
    assert "d1 acknowledged T0 in view 2 (d1, d3), and d2 T1 in view 3 (d2, d4)" in found.sentence


def test_one_side_that_goes_on_is_a_witness_with_each_write(tmp_path: Path) -> None:
    run = parted()
    run.append(120, {0: 1}, at=epoch(2), node="d1")
    run.append(130, {0: 2}, at=epoch(2), node="d3")
    run.view(600, 4, "d1 d3 d2")
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses == {"split-brain": 3}


def test_without_a_node_that_was_alive_outside_nothing_was_tested(tmp_path: Path) -> None:
    run = Run()
    run.fault("crash", "d2", 50, 500)
    run.view(1, 1, "d1 d2 d3 d4")
    run.view(100, 2, "d1 d3 d4")
    run.append(120, {0: 1}, at=epoch(2), node="d1")
    run.view(600, 4, "d1 d3 d4 d2")
    assert judged(run, tmp_path).witnesses == {"split-brain": 0}


def test_an_old_member_may_answer_what_began_before_it_was_left_out(tmp_path: Path) -> None:
    run = parted()
    run.view(110, 3, "d2 d4")
    run.append(60, {0: 1}, at=epoch(1), node="d1", took_ms=200)
    run.append(105, {0: 2}, at=epoch(2), node="d1")
    run.append(130, {0: 3}, at=epoch(2), node="d2")
    assert anomalies(judged(run, tmp_path)) == []


def test_a_side_that_knows_of_no_other_view_is_not_its_own_master(tmp_path: Path) -> None:
    """d2 never installed a view without d1: it can have committed with d1 only, before d1 left it out."""
    run = parted()
    run.append(120, {0: 1}, at=epoch(2), node="d1")
    run.append(130, {0: 2}, at=epoch(1), node="d2")
    assert anomalies(judged(run, tmp_path)) == []


def test_views_that_follow_each_other_may_exclude_each_other(tmp_path: Path) -> None:
    """d2 and d4 start the cluster when d1 and d3 are gone; later it is the other way round."""
    run = parted()
    run.append(120, {0: 1}, at=epoch(2), node="d1")
    run.fault("crash", "d1 d3", 200, 700, 2)
    run.view(300, 3, "d2 d4")
    run.append(310, {0: 2}, at=epoch(3), node="d2")
    run.fault("crash", "d2 d4", 400, 900, 2)
    run.view(800, 4, "d1 d3")
    run.append(810, {0: 3}, at=epoch(4), node="d1")
    assert anomalies(judged(run, tmp_path)) == []


def test_who_comes_back_may_answer_what_waited_for_it(tmp_path: Path) -> None:
    """T1 was sent to d1 while that was down and only d2 ran; d1 answers when it is in a view with d2."""
    run = parted()
    run.fault("crash", "d1 d3", 200, 700, 2)
    run.view(300, 3, "d2 d4")
    index = run.invoke(350, {0: 1})
    run.append(360, {0: 2}, at=epoch(3), node="d2")
    run.view(710, 4, "d2 d4 d1 d3")
    run.complete(720, index, {0: 1}, at=epoch(4), node="d1")
    assert anomalies(judged(run, tmp_path)) == []


def test_reads_prove_nothing(tmp_path: Path) -> None:
    run = parted()
    run.view(110, 3, "d2 d4")
    run.append(120, {0: 1}, at=epoch(2), node="d2")
    run.read(130, 0, [1])
    assert anomalies(judged(run, tmp_path)) == []


def grants(*, joined: bool = False, restarted: bool = False, used: bool = True) -> Run:
    run = parted()
    if joined:
        run.view(600, 4, "d1 d3 d2 d4")
    run.state(700, "m1", "grant", 5, ["d2", "d4"])
    if used:
        run.view(701, 5, "d2 d4")
    if restarted:
        run.restart(701, 1, 1, 9)
    return run


def test_an_arbitrator_that_forgets_whom_it_let_go_on_splits_the_cluster(tmp_path: Path) -> None:
    (found,) = judged(grants(), tmp_path).findings
    assert found.sentence.startswith("m1 let d1, d3 go on (view 2), and then d2, d4 (view 5)")


@pytest.mark.parametrize(
    ("joined", "restarted", "used"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_a_second_grant_is_legal_after_a_join_or_a_restart_or_if_it_was_never_used(
    tmp_path: Path, joined: bool, restarted: bool, used: bool
) -> None:
    assert anomalies(judged(grants(joined=joined, restarted=restarted, used=used), tmp_path)) == []
