"""Random runs of transactions with failures: whatever happens, the rules of transaction_rules.py hold."""

import pytest

from clusters.ndb.planted import ACK_BEFORE_COMMIT, TAKEOVER_ABORTS_COMMITTED
from clusters.ndb.shape import DATA_NODES
from tests.unit.ndb.transaction_cluster import TransactionCluster, random_transaction
from tests.unit.ndb.transaction_rules import assert_right

POINTS = ("before-commit-chain", "commit-on-backup", "before-commit-answer", "takeover-collecting")
SEEDS = 300


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


def test_failures_leave_every_transaction_whole_and_in_order() -> None:
    goals: dict[str, int] = {}
    done = refused = 0
    for seed in range(SEEDS):
        cluster = carry_out(seed)
        try:
            assert_right(cluster)
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
        for goal, count in cluster.goals.items():
            goals[goal] = goals.get(goal, 0) + count
        done += sum(type(asked.answer).__name__ == "Done" for asked in cluster.asked)
        refused += sum(type(asked.answer).__name__ == "Refused" for asked in cluster.asked)
    print(goals, done, refused)
