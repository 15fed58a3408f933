"""Collections, shards and locks: what compaction keeps, what an append refuses, who waits for whom."""

import random

import pytest

from clusters.materialize.collections import Rows, Update
from clusters.materialize.coordinator.locks import Locks
from clusters.materialize.coordinator.oracle import Oracle
from clusters.materialize.messages import AtUpper, CompareAndAppend, Mismatch
from clusters.materialize.storage.shard import Appended, Shard

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_compaction_changes_no_state_at_or_above_since(seed: int) -> None:
    dice, rows, plain = random.Random(seed), Rows(), Rows()
    for ts in range(1, 20):
        updates = [Update(dice.randint(0, 2), dice.randint(0, 2), 0, ts, dice.choice((1, 1, -1))) for _ in range(3)]
        rows.add(updates, ts + 1)
        plain.add(updates, ts + 1)
        if dice.random() < 0.3:
            rows.compact(dice.randint(0, ts))
    for ts in range(rows.since, 20):
        for key in range(3):
            assert dict(rows.at(ts, key)) == dict(plain.at(ts, key))
    assert len([*rows.updates(0)]) <= len([*plain.updates(0)])


def append(expected: int, new: int, *updates: Update, epoch: int = 1) -> CompareAndAppend:
    return CompareAndAppend("t0", expected, new, updates, epoch)


def test_of_two_writers_that_expect_the_same_upper_one_is_refused() -> None:
    shard = Shard("t0")
    assert shard.append(append(0, 5, epoch=1), 0)[0] == AtUpper("t0", 5)
    assert shard.append(append(0, 6, epoch=2), 0) == (Mismatch("t0", 5), None)
    assert shard.append(append(5, 9, epoch=2), 0)[0] == AtUpper("t0", 9)


def test_an_append_that_comes_again_is_recognised_however_much_came_since() -> None:
    shard, first = Shard("t0"), append(0, 5, Update(1, 2, 3, 4, 1))
    _, stored = shard.append(first, 0)
    assert isinstance(stored, Appended)
    shard.append(append(5, 7), 0)
    assert shard.append(first, 0) == (AtUpper("t0", 7), None)
    again = Shard("t0", [stored])
    assert again.append(first, 0) == (AtUpper("t0", 5), None)
    assert [row for row, _ in again.rows.at(4, 1)] == [(1, 2, 3)]


def test_updates_outside_of_their_append_are_refused() -> None:
    shard = Shard("t0")
    assert shard.append(append(0, 5, Update(1, 2, 3, 5, 1)), 0) == (Mismatch("t0", 0), None)
    shard.append(append(0, 5), 0)
    assert shard.append(append(5, 9, Update(1, 2, 3, 4, 1)), 0) == (Mismatch("t0", 5), None)


def test_a_read_then_write_holds_its_tables_alone_and_plain_writes_share_theirs() -> None:
    locks = Locks()
    locks.take(("a",), is_alone=False)
    assert locks.is_free(("a",), is_alone=False)
    assert not locks.is_free(("a", "b"), is_alone=True)
    locks.release(("a",), is_alone=False)
    locks.take(("a", "b"), is_alone=True)
    assert not locks.is_free(("b",), is_alone=False)
    locks.release(("a", "b"), is_alone=True)
    assert locks.is_free(("b",), is_alone=False)


def test_the_oracle_gives_rising_writes_and_reads_that_wait_for_no_commit() -> None:
    oracle = Oracle(10, 60)
    first = oracle.next_write(now=4)
    oracle.take(first)
    assert (first, oracle.read_ts) == (11, 10)
    second = oracle.next_write(now=30)
    oracle.take(second)
    oracle.apply_write(second)
    oracle.apply_write(first)
    assert (second, oracle.read_ts, oracle.next_write(now=30)) == (30, 30, 31)
