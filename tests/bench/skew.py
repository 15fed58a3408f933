"""Histories of odd shape: one key for all, a key for each, storms of crashes, transactions without end. What they cost.

Run: python -m tests.bench.skew. tests/unit/checkers/test_size.py counts the work in small ones.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from os import getpid

import numpy as np

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import Source, select
from checkers.transactions.check import check_sources
from harness.core.columns import APPEND, GROUP_ELEMENTS, GROUP_OPS, INFO, NEVER, OK, READ, Int8s, Int64s, Transactions
from tests.bench import generated
from tests.bench.watched import Watch

Shape = Callable[[int], Transactions]


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


def cut(whole: Transactions, parts: int) -> list[Source]:
    """The history in so many chunks."""
    bounds = np.linspace(0, len(whole.index), parts + 1).astype(np.int64)
    return [select(whole, np.arange(low, high)) for low, high in pairwise(bounds.tolist())]


def main() -> None:
    shapes: tuple[tuple[Shape, int], ...] = (
        (hot_key, 1_000_000),
        (read_once, 1_000_000),
        (storm, 1_000_000),
        (unseen_storm, 1_000_000),
        (endless, 1_000_000),
        (long_transactions, 1_000),
    )
    engine = LocalEngine()
    for shape, count in shapes:
        whole = shape(count)
        chunks = max(-(-len(whole.index) // GROUP_OPS), -(-len(whole.elements) // GROUP_ELEMENTS))
        parts = cut(whole, chunks)
        with Watch(getpid()) as watch:
            before, begin = watch.sample(), time.perf_counter()
            judgement = check_sources(parts, engine)
            took_s, cpu_s = time.perf_counter() - begin, watch.sample() - before
        figures = f"{took_s:6.2f} s {cpu_s:6.2f} CPU s {watch.peak_mb:6,.0f} MB"
        sizes = f"{len(whole.f):>9,} micro-operations, {len(whole.elements):>11,} elements read"
        print(f"{shape.__name__:18} {sizes}  {figures}  {len(judgement.findings)} findings", flush=True)


if __name__ == "__main__":
    main()
