"""Rows, their log, and what a storage drops or keeps for later."""

import pytest

from clusters.ndb.membership.view import Member, View
from clusters.ndb.planted import REDO_TAIL_NOT_INVALIDATED
from clusters.ndb.shape import Key, first_epoch, fragment_of
from clusters.ndb.transactions.messages import (
    EXCLUSIVE,
    Commit,
    CopiedRow,
    Invalidated,
    Operate,
    Prepare,
    Redo,
    Refused,
    coordinator_in,
    life_in,
    life_of,
    since_in,
    transid_of,
)
from harness.core.errors import ProtocolError
from harness.core.machine import Message, NodeId
from harness.core.record import Json, MicroOp
from tests.unit.clusters.ndb.transaction_cluster import FIRST, Life, TransactionCluster

D1, D2, D3 = NodeId("d1"), NodeId("d2"), NodeId("d3")
E1, E2, E3 = first_epoch(1), first_epoch(2), first_epoch(3)


def life(*bugs: str) -> Life:
    return Life(TransactionCluster(0), D1, E1, frozenset(bugs))


def rows(node: Life) -> list[tuple[Key, list[Json], int]]:
    return list(node.storage.rows_dump())


def test_a_transid_tells_whose_it_is() -> None:
    transid = transid_of(life_of(D3, 77), 5)
    assert (coordinator_in(transid), since_in(transid)) == (D3, 77)
    assert life_in(transid) == life_of(D3, 77) != life_of(D3, 78) != life_of(D1, 78)
    assert transid_of(life_of(NodeId("d4"), 2**29 - 1), 2**32 - 1) < 2**63


def test_after_a_hundred_restarts_of_the_whole_cluster_no_two_nodes_give_one_transid() -> None:
    since = 100 << 16  # By then the number of a view needs more than 22 bits.
    assert len({life_of(NodeId(f"d{number}"), since) for number in range(1, 5)}) == 4
    assert coordinator_in(transid_of(life_of(D3, since), 1)) == D3
    with pytest.raises(ProtocolError, match="has no room"):
        life_of(D3, 1 << 29)


def test_a_restart_keeps_what_is_saved_and_drops_the_rest() -> None:
    node = life()
    node.storage.restore([Redo(E2, 1, 4, ("b",)), Redo(E3, 2, 4, ("c",)), Redo(E3, 2, 0, ("d",))], 2)
    assert rows(node) == [(4, ["b"], E2)]
    assert node.context.log == [Invalidated(2)]


def test_what_was_dropped_once_does_not_come_back() -> None:
    log: list[Message] = [
        Redo(E2, 1, 4, ("b",)),
        Redo(E3, 2, 4, ("c",)),
        Invalidated(2),
        Redo(first_epoch(5), 3, 4, ("e",)),
    ]
    node = life()
    node.storage.restore(log, 9)
    assert rows(node) == [(4, ["b", "e"], first_epoch(5))]


def test_under_the_bug_what_was_dropped_comes_back_at_the_next_restart() -> None:
    log: list[Message] = [Redo(E2, 1, 4, ("b",)), Redo(E3, 2, 4, ("c",))]
    node = life(REDO_TAIL_NOT_INVALIDATED)
    node.storage.restore(log, 2)
    assert rows(node) == [(4, ["b"], E2)]
    node.storage.restore([*log, *node.context.log], 9)
    assert rows(node) == [(4, ["b", "c"], E3)]


def test_a_copied_row_replaces_what_was_there_and_is_cut_like_others() -> None:
    node = life()
    log = [Redo(E2, 1, 4, ("b",)), CopiedRow(4, (("a", E1), ("b", E2), ("c", E3)))]
    node.storage.restore(log, 2)
    assert rows(node) == [(4, ["a", "b"], E2)]


def test_rows_are_shown_in_order_numbers_first() -> None:
    node = life()
    node.storage.restore([Redo(E1, 1, key, ("x",)) for key in ("b", 12, "a", 4)], 1)
    assert [key for key, _, _ in rows(node)] == [4, 12, "a", "b"]


def test_an_operation_of_a_later_view_waits_for_it() -> None:
    node = life()
    node.install(FIRST)
    later = View(2, 1, (Member(D1, 1), Member(D2, 1), Member(D3, 2)))
    operation = Operate(transid_of(life_of(D3, 2), 1), 2, 0, "append", 0, "a", EXCLUSIVE)
    node.receive(D3, operation)
    assert not node.context.cluster.queues
    node.install(later)
    assert isinstance(node.context.cluster.queues[D1, D2].popleft(), Prepare)


def test_what_a_life_that_has_ended_or_its_primary_sent_is_dropped() -> None:
    node = life()
    node.install(View(3, 1, (Member(D1, 1), Member(D2, 1), Member(D3, 3))))
    transid = transid_of(life_of(D3, 1), 1)
    node.receive(D3, Operate(transid, 2, 0, "append", 0, "a", EXCLUSIVE))
    node.receive(D3, Commit(transid, 2, E1, 0, (), D3))
    node.receive(D2, Prepare(transid, 2, 0, 2, "a", (D2, D1)))
    assert node.storage.is_idle()
    assert not node.context.cluster.queues


def test_a_primary_has_nothing_that_its_backup_has_not() -> None:
    for seed in range(20):
        cluster = TransactionCluster(seed)
        asked = cluster.ask(D3, tuple(MicroOp("append", key, "a") for key in range(8)))
        while asked.answer is None:
            cluster.step()
            dumps = {node: [key for key, _, _ in rows(each)] for node, each in cluster.lives.items()}
            for key in range(8):
                primary, backup = FIRST.replicas(fragment_of(key))
                assert key in dumps[backup] or key not in dumps[primary]
        assert sorted(key for dump in dumps.values() for key in dump) == sorted((*range(8), *range(8)))


def changed(*values: int, key: Key = "row1") -> tuple[list[tuple[object, object]], list[str]]:
    """What the first node publishes of transactions that append these values one after the other; and refusals."""
    cluster = TransactionCluster(0)
    refused = []
    for value in values:
        asked = cluster.ask(D1, (MicroOp("append", key, value),))
        while asked.answer is None or not all(life.storage.is_idle() for life in cluster.lives.values()):
            cluster.step()
        if isinstance(asked.answer, Refused):
            refused.append(asked.answer.reason)
    images = {tuple(life.publisher.images) for life in cluster.lives.values() if life.publisher.images}
    assert len(images) <= 1  # Both replicas see the same.
    return [*images.pop()] if images else [], refused


def test_a_change_has_the_row_before_it_as_its_before_image() -> None:
    assert changed(1, 2, -3, 4) == ([(None, 1), (1, 2), (2, -3), (None, 4)], [])
    assert changed(1, -2, key=4) == ([(0, 1), (0, -2)], [])  # A list has none.


def test_a_row_that_is_not_there_cannot_be_deleted() -> None:
    assert changed(-1, 2, -3, -4) == ([(None, 2), (2, -3)], ["no such row", "no such row"])


def test_a_row_that_a_transaction_inserts_and_deletes_is_no_change() -> None:
    cluster = TransactionCluster(0)
    asked = cluster.ask(D1, tuple(MicroOp("append", "row1", value) for value in (1, -2)))
    while asked.answer is None:
        cluster.step()
    assert not isinstance(asked.answer, Refused)
    assert not any(life.publisher.images for life in cluster.lives.values())
