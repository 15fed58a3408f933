"""At rest the nodes of a group hold the same."""

from pathlib import Path

from checkers.engine.protocol import Context
from clusters.ndb.checks import replicas
from harness.core.verdict import Judgement
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies, epoch


def judged(run: Run, folder: Path) -> Judgement:
    return replicas.check(run.write(folder), Context(engine=ENGINE, bounds=BOUNDS))


def test_equal_replicas_are_witnesses_key_by_key(tmp_path: Path) -> None:
    run = Run()
    run.view(0, 1, "d1 d2 d3 d4")
    run.dump(10, "d1 d2", {0: [1], 2: [2]}, at=epoch(1))
    run.dump(10, "d3 d4", {1: [3]}, at=epoch(1))
    judgement = judged(run, tmp_path)
    assert (anomalies(judgement), judgement.witnesses) == ([], {"diverged-replicas": 3})


def test_another_list_another_epoch_and_a_key_that_one_lacks_are_told_once_a_pair(tmp_path: Path) -> None:
    run = Run()
    run.dump(10, "d1", {0: [1], 2: [2], 4: [4]}, at=epoch(1))
    run.dump(10, "d2", {0: [1, 5], 4: [4]}, at=epoch(1))
    run.dump(10, "d3", {1: [3]}, at=epoch(1))
    run.dump(10, "d4", {1: [3]}, at=epoch(2))
    first, second = judged(run, tmp_path).findings
    assert (first.count, second.count) == (2, 1)
    assert "d1 holds key 0 as [1] of position 4294967296, and d2 as [1, 5]" in first.sentence
    assert "d3 holds key 1" in second.sentence


def test_long_lists_are_shown_where_they_differ(tmp_path: Path) -> None:
    run = Run()
    run.dump(10, "d1", {0: [*range(9)]})
    run.dump(10, "d2", {0: [0, 1, 2, 4, 3, 5, 6, 7, 8]})
    (finding,) = judged(run, tmp_path).findings
    assert "holds key 0 as [..., 1, 2, 3, 4, ...]" in finding.sentence
    assert "and d2 as [..., 1, 2, 4, 3, ...]" in finding.sentence


def test_different_groups_and_nodes_outside_the_last_view_may_differ(tmp_path: Path) -> None:
    run = Run()
    run.view(0, 1, "d1 d2 d3 d4")
    run.view(5, 3, "d1 d3 d4")
    run.dump(10, "d1", {0: [1]})
    run.dump(10, "d2", {0: [1, 2]})
    run.dump(10, "d3 d4", {1: [3]})
    judgement = judged(run, tmp_path)
    assert (anomalies(judgement), judgement.witnesses) == ([], {"diverged-replicas": 1})


def test_a_member_that_shows_nothing_yet_is_not_compared(tmp_path: Path) -> None:
    run = Run()
    run.view(0, 1, "d1 d2 d3 d4")
    run.dump(10, "d1", {0: [1]})
    run.dump(10, "d3 d4", {1: [3]})
    judgement = judged(run, tmp_path)
    assert (anomalies(judgement), judgement.witnesses) == ([], {"diverged-replicas": 1})


def test_dumps_after_a_restart_are_not_dumps_at_rest(tmp_path: Path) -> None:
    run = Run()
    run.restart(5, 1, 1, 2)
    run.dump(5, "d1", {0: [1]}, restart=1)
    run.dump(5, "d2", {0: [1, 2]}, restart=1)
    judgement = judged(run, tmp_path)
    assert (anomalies(judgement), judgement.witnesses) == ([], {"diverged-replicas": 0})
    assert judgement.facts["restarts"] == 1


def test_a_run_that_never_came_to_rest_has_no_witness(tmp_path: Path) -> None:
    run = Run()
    run.view(0, 1, "d1 d2 d3 d4")
    judgement = judged(run, tmp_path)
    assert judgement.witnesses == {"diverged-replicas": 0}
