"""Random runs of transactions with failures: whatever happens, the rules of transaction_rules.py hold."""

from graphlib import CycleError

import pytest

from clusters.ndb.planted import ACK_BEFORE_COMMIT, TAKEOVER_ABORTS_COMMITTED
from clusters.ndb.shape import DATA_NODES
from clusters.ndb.transactions.messages import Done
from harness.core.machine import NodeId
from harness.core.record import MicroOp
from tests.unit.clusters.ndb.transaction_cluster import TransactionCluster, random_transaction
from tests.unit.clusters.ndb.transaction_rules import assert_right, final_lists

POINTS = ("before-commit-chain", "commit-on-backup", "before-commit-answer", "takeover-collecting")
SEEDS = 300
GOALS = {
    "a backup waited for Complete",
    "a commit waited for the block",
    "a coordinator was taken over with a committed operation",
    "a lock wait timed out",
    "a transaction was open over three epochs",
}


def carry_out(seed: int, bugs: tuple[str, ...] = ()) -> TransactionCluster:
    """A run: transactions, and up to three failures and returns of nodes, at any moment or at a failpoint."""
    cluster = TransactionCluster(seed, bugs)
    draws = cluster.draws
    keys = draws.between(2, 12)
    left = draws.between(0, 5)
    for number in range(1, draws.between(10, 40)):
        cluster.ask(draws.choice(DATA_NODES), random_transaction(draws, number, keys))
        for _ in range(draws.below(40)):
            cluster.step()
        if left and draws.chance(1, 5):
            left -= 1
            node = draws.choice(DATA_NODES)
            if node not in cluster.lives:
                if cluster.change is None:
                    cluster.let_in(node)
            elif cluster.may_fail(node):
                if draws.chance(1, 2):
                    cluster.crash_soon(node, draws.choice(POINTS))
                else:
                    cluster.fail(node, is_zombie=draws.chance(1, 2))
    cluster.settle()
    return cluster


def tell(failure: BaseException, seed: int) -> None:
    """Which run it was."""
    failure.add_note(f"seed {seed}")


def test_failures_leave_every_transaction_whole_and_in_order() -> None:
    goals: dict[str, int] = {}
    done = 0
    for seed in range(SEEDS):
        cluster = carry_out(seed)
        try:
            assert_right(cluster)
        except (AssertionError, CycleError) as failure:
            tell(failure, seed)
            raise
        for goal, count in cluster.goals.items():
            goals[goal] = goals.get(goal, 0) + count
        done += sum(isinstance(asked.answer, Done) for asked in cluster.asked)
    assert done > 5 * SEEDS
    assert set(goals) == GOALS
    assert goals["a coordinator was taken over with a committed operation"] > SEEDS // 20


@pytest.mark.parametrize("bug", [ACK_BEFORE_COMMIT, TAKEOVER_ABORTS_COMMITTED])
def test_a_planted_bug_breaks_a_rule_in_some_runs(bug: str) -> None:
    broken = 0
    for seed in range(SEEDS):
        cluster = carry_out(seed, (bug,))
        try:
            assert_right(cluster)
        except (AssertionError, CycleError):
            broken += 1
    assert broken > 1


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = carry_out(7), carry_out(7)
    assert first.asked == second.asked
    assert first.now_ns == second.now_ns


def test_a_transaction_that_one_node_has_committed_is_committed_by_the_master() -> None:
    cluster = TransactionCluster(1)
    cluster.crash_soon(NodeId("d4"), "before-commit-answer")
    asked = cluster.ask(NodeId("d4"), (MicroOp("append", 1, "a"), MicroOp("append", 2, "b")))
    cluster.settle()
    assert NodeId("d4") not in cluster.lives
    assert asked.answer is None
    lists, epochs = final_lists(cluster)
    assert lists == {1: ["a"], 2: ["b"]}
    assert epochs["a"] == epochs["b"]
    assert_right(cluster)


def test_a_transaction_that_nobody_has_committed_is_aborted_by_the_master() -> None:
    cluster = TransactionCluster(1)
    cluster.crash_soon(NodeId("d4"), "before-commit-chain")
    cluster.ask(NodeId("d4"), (MicroOp("append", 1, "a"), MicroOp("append", 2, "b")))
    cluster.settle()
    assert final_lists(cluster)[0] == {}
    assert_right(cluster)


def test_a_master_that_dies_while_it_collects_is_followed_by_the_next() -> None:
    cluster = TransactionCluster(3)
    cluster.crash_soon(NodeId("d4"), "before-commit-answer")
    cluster.ask(NodeId("d4"), (MicroOp("append", 1, "a"), MicroOp("append", 2, "b")))
    while NodeId("d4") in cluster.lives:
        cluster.step()
    cluster.crash_soon(NodeId("d1"), "takeover-collecting")
    cluster.settle()
    assert list(cluster.lives) == ["d2", "d3"]
    assert final_lists(cluster)[0] == {1: ["a"], 2: ["b"]}
    assert_right(cluster)


def test_a_node_that_comes_back_gets_every_row() -> None:
    cluster = TransactionCluster(5)
    for key in range(40):
        cluster.ask(NodeId("d3"), (MicroOp("append", key, key),))
        cluster.settle()
    cluster.fail(NodeId("d1"), is_zombie=False)
    cluster.settle()
    cluster.let_in(NodeId("d1"))
    cluster.settle()
    assert cluster.lives[NodeId("d1")].storage.is_copied
    assert len(list(cluster.lives[NodeId("d1")].storage.rows_dump())) == 20
    assert_right(cluster)
