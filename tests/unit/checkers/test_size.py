"""Skewed and oversized histories cost in proportion to their size: work is counted, not timed.

Work is what the steps that can grow faster than their input touch: positions that runs expand to, elements compared,
edges on their way to slices. Four times the input may cost five times the work, where a quadratic step costs sixteen.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

from checkers import ragged
from checkers.chunks import Source, select
from checkers.engine import LocalEngine
from checkers.serializability import Options, check
from harness.core.columns import APPEND, INFO, NEVER, OK, READ, Int8s, Int64s, Transactions
from harness.core.verdict import Judgement
from tests.bench import generated

ENGINE = LocalEngine(1)
USERS = ("kernels", "versions", "anomalies", "slices", "edges", "register_order", "register_rows", "registers")
CHUNKS = 4
Shape = Callable[[int], Transactions]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one number for each step."""
    counted: list[int] = []

    def expand(start: Int64s, length: Int64s) -> Int64s:
        counted.append(int(length.sum()))
        return ragged.expand(start, length)

    def common_prefix(
        left: Int64s, right: Int64s, *, left_start: Int64s, right_start: Int64s, length: Int64s
    ) -> Int64s:
        counted.append(int(length.sum()))
        return ragged.common_prefix(left, right, left_start=left_start, right_start=right_start, length=length)

    for name in USERS:
        module = import_module(f"checkers.{name}")
        for step in (expand, common_prefix):
            if hasattr(module, step.__name__):
                monkeypatch.setattr(module, step.__name__, step)
    return counted


def history(mops: list[Int64s], outcome: Int8s, after: Int64s) -> Transactions:
    """Transactions from columns of micro-operations: owner, f, key, value, and how many of `elements` a read shows."""
    owner, f, key, value, length = mops
    count = len(outcome)
    elements = np.concatenate([np.empty(0, np.int64), *(np.arange(each) for each in length.tolist())])
    return Transactions(
        index=np.arange(count),
        process=np.arange(count) % 20,
        outcome=outcome,
        after=after,
        mop_start=np.searchsorted(owner, np.arange(count + 1)),
        f=f.astype(np.int8),
        key=key,
        value=value,
        is_known=(f == READ) & (outcome[owner] == OK),
        element_start=np.concatenate(([0], np.cumsum(length))),
        elements=elements,
    )


def serial(mops: list[Int64s]) -> Transactions:
    """One transaction after the other, all ok."""
    count = int(mops[0][-1]) + 1
    return history(mops, np.zeros(count, np.int8), np.arange(1, count + 1))


def hot_key(count: int) -> Transactions:
    """One key that all append to, and that 40 read whole at even distances."""
    reads = np.arange(count) % (count // 40) == count // 40 - 1
    appended = np.cumsum(~reads) - ~reads
    f = np.where(reads, READ, APPEND)
    return serial([np.arange(count), f, np.zeros(count, np.int64), appended, np.where(reads, appended, 0)])


def read_once(count: int) -> Transactions:
    """As many keys as transactions: each key gets one element and is read once, by the next transaction."""
    owner = np.repeat(np.arange(count), 2)
    f = np.tile([READ, APPEND], count)
    key = owner + np.tile([0, 1], count)
    length = np.where((f == READ) & (owner > 0), 1, 0)
    return serial([owner, f, key, np.zeros(2 * count, np.int64), length])


def storm(count: int) -> Transactions:
    """Processes that crash by the thousand: nine of ten appends have no clear answer, and some are seen much later."""
    place = np.arange(count)
    is_read = place % 10 == 9
    outcome = np.where(is_read, OK, INFO).astype(np.int8)
    key = place // 100
    appended = place % 100 - place % 100 // 10
    f = np.where(is_read, READ, APPEND)
    length = np.where(is_read, appended, 0)
    return history([place, f, key, appended, length], outcome, np.where(outcome == OK, place + 1, NEVER))


def unseen_storm(count: int) -> Transactions:
    """One key: half of all append to it and never hear, the other half find it empty."""
    place = np.arange(count)
    is_read = place % 2 == 1
    outcome = np.where(is_read, OK, INFO).astype(np.int8)
    f, zeros = np.where(is_read, READ, APPEND), np.zeros(count, np.int64)
    return history([place, f, zeros, place, zeros], outcome, np.where(outcome == OK, place + 1, NEVER))


def long_transactions(count: int) -> Transactions:
    """Transactions of `count` micro-operations: they read and append to one key in turn. Of 100,000, however long."""
    transactions = 100_000 // count
    owner = np.repeat(np.arange(transactions), count)
    place = np.tile(np.arange(count), transactions)
    f = np.where(place % 2 == 0, READ, APPEND)
    appended = place // 2
    return serial(
        [owner, f, owner, appended, np.where((f == READ) & (place < 40), appended, np.where(f == READ, 20, 0))]
    )


def endless(count: int) -> Transactions:
    """A sound history in which some operations last to its end, so that their edges live in every slice."""
    whole = generated.transactions(count, seed=3)
    lasts = (np.arange(count) % (count // 10) == 0) & (whole.outcome == OK)
    whole.after[lasts] = count
    return whole


def cost(work: list[int], shape: Shape, count: int) -> tuple[int, Judgement]:
    work.clear()
    whole = shape(count)
    cuts = np.linspace(0, len(whole.index), CHUNKS + 1).astype(np.int64)
    parts: list[Source] = [select(whole, np.arange(low, high)) for low, high in pairwise(cuts)]
    work.clear()
    judgement = check(parts, ENGINE, Options(partitions=4))
    return sum(work), judgement


@pytest.mark.parametrize("shape", [hot_key, read_once, storm, endless])
def test_four_times_the_operations_cost_less_than_five_times_the_work(work: list[int], shape: Shape) -> None:
    small, judgement = cost(work, shape, 5_000)
    large, again = cost(work, shape, 20_000)
    assert not judgement.findings
    assert not again.findings
    assert 4_000 < small < large < 5 * small


def test_what_nobody_saw_is_not_paired_with_those_who_did_not_see_it(work: list[int]) -> None:
    touched, judgement = cost(work, unseen_storm, 20_000)
    assert judgement.witnesses["G2-item"] == 10_000
    assert touched < 20_000  # Of a hundred million pairs.


def test_work_grows_with_micro_operations_and_not_with_their_number_in_one_transaction(work: list[int]) -> None:
    short, _ = cost(work, long_transactions, 100)
    long, judgement = cost(work, long_transactions, 1_000)
    assert judgement.witnesses["internal"] > 0
    assert long < 1.5 * short
