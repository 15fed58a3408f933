"""What must be so after a run of `TransactionCluster` has come to rest. Slow and obvious."""

from graphlib import TopologicalSorter
from itertools import pairwise

from clusters.ndb.shape import GROUPS, fragment_of, group_of, group_of_fragment, key_of
from clusters.ndb.transactions.messages import Done, Refused
from harness.core.record import Json
from tests.unit.clusters.ndb.transaction_cluster import Asked, TransactionCluster

Lists = dict[Json, list[Json]]


def assert_at_rest(cluster: TransactionCluster) -> None:
    """Nothing is locked, open or held, and each group's nodes have the same rows."""
    for node, life in cluster.lives.items():
        assert life.storage.is_idle(), node
        assert life.coordinator.is_idle(), node
        assert life.checkpoints.holds == 0, node
        assert not any(life.checkpoints.open.values()), node
    for group in GROUPS:
        dumps = [list(cluster.lives[node].storage.rows_dump()) for node in group if node in cluster.lives]
        assert dumps
        assert all(dump == dumps[0] for dump in dumps), group


def final_lists(cluster: TransactionCluster) -> tuple[Lists, dict[Json, int]]:
    """Each row at the end, and the epoch in which each element was committed."""
    lists: Lists = {}
    epochs: dict[Json, int] = {}
    for life in cluster.lives.values():
        for key, elements, _ in life.storage.rows_dump():
            lists[key] = elements
            epochs.update(zip(elements, (epoch for _, epoch in life.storage._rows.pairs(key)), strict=True))
    return lists, epochs


def assert_all_or_nothing(cluster: TransactionCluster, lists: Lists, epochs: dict[Json, int]) -> None:
    """Of each transaction all appends are there, once, in its epoch, or none; all if it is done, none if refused."""
    for elements in lists.values():
        assert len(set(elements)) == len(elements)
    for asked in cluster.asked:
        appends = [mop for mop in asked.mops if mop.f == "append"]
        present = [mop.value for mop in appends if mop.value in lists.get(mop.key, [])]
        assert len(present) in (0, len(appends)), asked
        assert len({epochs[value] for value in present}) <= 1, asked
        if isinstance(asked.answer, Done):
            assert len(present) == len(appends), asked
            assert all(epochs[value] == asked.answer.epoch for value in present), asked
        elif isinstance(asked.answer, Refused):
            assert not present, asked


def assert_published(cluster: TransactionCluster, lists: Lists, epochs: dict[Json, int]) -> None:
    """Each node's publisher had each net row once, in the order of the key; all of them if it was never away."""
    for node, life in cluster.lives.items():
        rows = life.publisher.rows
        assert len({(transid, key) for _, transid, key, _ in rows}) == len(rows)
        for key in lists:
            values = [value for _, _, published, value in rows if published == key_of(key)]
            assert values == [value for value in lists[key] if value in values], (node, key)
        assert all(epoch == epochs[value] for epoch, _, _, value in rows)
        if cluster.view.since(node) == 1:
            expected = {
                (key, writes[-1])
                for asked in cluster.asked
                for key in {mop.key for mop in asked.mops}
                if group_of_fragment(fragment_of(key_of(key))) == group_of(node)
                and (writes := [mop.value for mop in asked.mops if (mop.f, mop.key) == ("append", key)])
                and writes[-1] in lists.get(key, [])
            }
            assert {(key, value) for _, _, key, value in rows} == expected, node


def assert_reads(cluster: TransactionCluster, lists: Lists) -> None:
    """What was read is a beginning of the list and the transaction's own appends, and not older than what was done."""
    for asked in cluster.asked:
        if not isinstance(asked.answer, Done):
            continue
        own: Lists = {}
        for mop in asked.answer.mops:
            if mop.f == "append":
                own.setdefault(mop.key, []).append(mop.value)
                continue
            assert isinstance(mop.value, list)
            mine = own.get(mop.key, [])
            others = mop.value[: len(mop.value) - len(mine)]
            assert mop.value == others + mine, asked
            assert others == lists.get(mop.key, [])[: len(others)], asked
            for other in cluster.asked:
                if isinstance(other.answer, Done) and other.answered is not None and other.answered < asked.asked:
                    for write in other.mops:
                        if (write.f, write.key) == ("append", mop.key):
                            assert write.value in others, (asked, other)


def is_locked(asked: Asked) -> bool:
    """Are all its reads held to the end?"""
    return all(mop.f == "append" or mop.lock in ("shared", "exclusive") for mop in asked.mops)


def dependencies(cluster: TransactionCluster, lists: Lists) -> list[tuple[int, int, str]]:
    """The edges (before, after, kind) among transactions that are done, by their index in `asked`."""
    author = {mop.value: at for at, asked in enumerate(cluster.asked) for mop in asked.mops if mop.f == "append"}
    edges = []
    for elements in lists.values():
        edges += [(author[a], author[b], "ww") for a, b in pairwise(elements)]
    for at, asked in enumerate(cluster.asked):
        if not isinstance(asked.answer, Done):
            continue
        for mop in asked.answer.mops:
            if mop.f == "r":
                assert isinstance(mop.value, list)
                if mop.value:
                    edges.append((author[mop.value[-1]], at, "wr"))
                following = lists.get(mop.key, [])[len(mop.value) :]
                if following and (not mop.value or author[mop.value[-1]] != at):
                    edges.append((at, author[following[0]], "rw" if is_locked(asked) else "rw-committed"))
        for later, other in enumerate(cluster.asked):
            if asked.answered is not None and other.asked > asked.answered and isinstance(other.answer, Done):
                edges.append((at, later, "rt"))
    return [(a, b, kind) for a, b, kind in edges if a != b]


def assert_serializable(cluster: TransactionCluster, lists: Lists, epochs: dict[Json, int]) -> None:
    """Locked transactions are strictly serializable, and epochs never fall along a dependency between them."""
    edges = dependencies(cluster, lists)
    graph: dict[int, list[int]] = {}
    for before, after, kind in edges:
        if is_locked(cluster.asked[before]) and is_locked(cluster.asked[after]):
            graph.setdefault(after, []).append(before)
        if kind != "rw-committed" and is_locked(cluster.asked[after]):
            first, second = epoch_of(cluster.asked[before], epochs), epoch_of(cluster.asked[after], epochs)
            assert first <= second, (kind, cluster.asked[before], cluster.asked[after])
    TopologicalSorter(graph).prepare()  # Raises CycleError.


def epoch_of(asked: Asked, epochs: dict[Json, int]) -> int:
    """That of its answer, or of its rows."""
    if isinstance(asked.answer, Done):
        return asked.answer.epoch
    return next(epochs[mop.value] for mop in asked.mops if mop.f == "append")


def assert_right(cluster: TransactionCluster) -> None:
    """All of it."""
    assert_at_rest(cluster)
    lists, epochs = final_lists(cluster)
    assert_all_or_nothing(cluster, lists, epochs)
    assert_published(cluster, lists, epochs)
    assert_reads(cluster, lists)
    assert_serializable(cluster, lists, epochs)
