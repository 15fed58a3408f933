"""What a client is told, and when."""

import pytest

from clusters.ndb.planted import ACK_BEFORE_COMMIT
from clusters.ndb.shape import first_epoch
from clusters.ndb.transactions.messages import (
    CUT_OFF,
    LOCK_TIMEOUT,
    NODE_FAILED,
    NOT_STARTED,
    UNSUPPORTED,
    Done,
    Operated,
    Refused,
    life_of,
    transid_of,
)
from harness.core.machine import NodeId
from harness.core.record import MicroOp
from tests.unit.clusters.ndb.transaction_cluster import Asked, TransactionCluster
from tests.unit.clusters.ndb.transaction_rules import assert_at_rest, assert_right

D1, D2, D3 = NodeId("d1"), NodeId("d2"), NodeId("d3")


def reads(asked: Asked) -> list[object]:
    assert isinstance(asked.answer, Done)
    return [mop.value for mop in asked.answer.mops if mop.f == "r"]


@pytest.mark.parametrize("lock", [None, "committed", "short", "shared", "exclusive"])
def test_a_transaction_sees_its_own_appends(lock: str | None) -> None:
    cluster = TransactionCluster(1)
    cluster.ask(D1, (MicroOp("append", 1, "a"),))
    cluster.settle()
    own = cluster.ask(D3, (MicroOp("append", 1, "b"), MicroOp("r", 1, None, None, lock), MicroOp("append", 1, "c")))
    cluster.settle()
    other = cluster.ask(D1, (MicroOp("r", 1, None, None, lock), MicroOp("r", 2, None, None, lock)))
    cluster.settle()
    assert reads(own) == [["a", "b"]]
    assert reads(other) == [["a", "b", "c"], []]
    assert_right(cluster)


def test_an_empty_transaction_is_done_at_once() -> None:
    cluster = TransactionCluster(1)
    asked = cluster.ask(D1, ())
    assert isinstance(asked.answer, Done)
    assert asked.answer.epoch == cluster.epoch


@pytest.mark.parametrize("lock", ["committed", "short"])
def test_a_node_that_has_no_epoch_yet_answers_in_the_first_that_it_gets(lock: str) -> None:
    cluster = TransactionCluster(1)
    cluster.ask(D1, (MicroOp("append", 1, "a"),))
    cluster.settle()
    before = cluster.epoch
    assert before > first_epoch(1) + 1
    fresh = cluster.lives[D3].checkpoints
    fresh.current, fresh.is_blocked = 0, True
    asked = [cluster.ask(D3, (MicroOp("r", key, None, None, lock),)) for key in (1, 2)]
    cluster.settle()
    assert [reads(each) for each in asked] == [[["a"]], [[]]]
    assert all(isinstance(each.answer, Done) and each.answer.epoch >= before for each in asked)
    assert_right(cluster)


@pytest.mark.parametrize("mop", [MicroOp("w", 1, "a"), MicroOp("r", 1, None, None, "gap")])
def test_what_is_not_known_is_refused(mop: MicroOp) -> None:
    cluster = TransactionCluster(1)
    assert cluster.ask(D1, (mop,)).answer == Refused(UNSUPPORTED)


def test_a_node_that_may_have_been_given_up_begins_nothing() -> None:
    cluster = TransactionCluster(1)
    cluster.lives[D1].agreement.has_lease = False
    assert cluster.ask(D1, (MicroOp("append", 1, "a"),)).answer == Refused(NOT_STARTED)


def test_a_node_that_may_have_been_given_up_commits_nothing() -> None:
    cluster = TransactionCluster(1)
    asked = cluster.ask(D1, (MicroOp("append", 1, "a"),))
    cluster.lives[D1].agreement.has_lease = False
    cluster.settle()
    assert asked.answer == Refused(CUT_OFF)
    assert_right(cluster)


def test_a_deadlock_ends_by_a_time_out() -> None:
    cluster = TransactionCluster(2)
    first = cluster.ask(D1, (MicroOp("append", 1, "a"), MicroOp("append", 2, "b")))
    second = cluster.ask(D3, (MicroOp("append", 2, "c"), MicroOp("append", 1, "d")))
    cluster.settle()
    assert Refused(LOCK_TIMEOUT) in (first.answer, second.answer)
    assert_right(cluster)


def test_a_commit_waits_while_none_may_begin_even_if_nothing_was_written() -> None:
    cluster = TransactionCluster(4)
    cluster.round = [("commit", D1)]
    cluster.lives[D1].checkpoints.is_blocked = True
    cluster.lives[D1].checkpoints.is_frozen = True
    locked = cluster.ask(D1, (MicroOp("r", 1, None, None, "shared"),))
    written = cluster.ask(D1, (MicroOp("append", 3, "a"),))
    committed = cluster.ask(D1, (MicroOp("r", 2),))
    cluster.settle()
    assert [asked.answer for asked in (locked, written)] == [None, None]
    assert isinstance(committed.answer, Done)
    cluster.lives[D1].checkpoints.is_blocked = cluster.lives[D1].checkpoints.is_frozen = False
    cluster.lives[D1].coordinator.release()
    cluster.settle()
    assert isinstance(locked.answer, Done)
    assert isinstance(written.answer, Done)
    assert_right(cluster)


def test_an_open_transaction_that_has_locked_at_a_failed_node_is_refused() -> None:
    cluster = TransactionCluster(4)
    cluster.lives[D3].checkpoints.is_frozen = True
    asked = cluster.ask(D3, (MicroOp("r", 0, None, None, "shared"), MicroOp("append", 1, "a")))
    for _ in range(60):
        cluster.step()
    assert cluster.lives[D1].storage.is_idle() is False
    cluster.fail(D1, is_zombie=False)
    cluster.settle()
    assert asked.answer == Refused(NODE_FAILED)
    assert_right(cluster)


def test_the_bug_answers_before_any_node_has_the_rows() -> None:
    for bugs, expected in (((), True), ((ACK_BEFORE_COMMIT,), False)):
        cluster = TransactionCluster(1, bugs)
        asked = cluster.ask(D3, (MicroOp("append", 0, "a"),))
        while asked.answer is None:
            cluster.step()
        assert bool(list(cluster.lives[D1].storage.rows_dump())) is expected
        cluster.settle()
        assert_at_rest(cluster)


def test_an_answer_that_names_a_node_which_has_failed_since_is_not_believed() -> None:
    cluster = TransactionCluster(1)
    life = cluster.lives[D3]
    cluster.fail(D2, is_zombie=True)
    while cluster.change is not None:
        cluster.step()
    asked = cluster.ask(D3, (MicroOp("append", 0, "a"),))
    life.receive(D2, Operated(transid_of(life_of(D3, 1), 1), 1, 0, (D1, D2)))
    assert asked.answer == Refused(NODE_FAILED)
    cluster.settle()
    assert_at_rest(cluster)
