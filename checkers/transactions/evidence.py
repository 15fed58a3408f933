"""The operations and the longest reads of keys that the sentences of findings need, read chunk by chunk."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from checkers.history.longest import longest_rows
from checkers.history.registers import Initial
from checkers.history.transactions import Append, Operation, Read, Source, load, select, to_operations
from harness.core.columns import OK, READ, Int64s, Transactions


class Evidence(Struct, frozen=True):
    """The operations that findings mention, and the longest read of each of their keys."""

    operations: tuple[Operation, ...]
    longest: tuple[tuple[int, int, tuple[int, ...]], ...]  # key, operation, elements


def evidence(source: Source, *, op: Int64s, initial: Initial) -> Evidence:
    """The evidence about those of the operations that this chunk holds."""
    transactions = initial.applied(load(source))
    rows = np.flatnonzero(np.isin(transactions.index, op))
    return Evidence(tuple(to_operations(select(transactions, rows))), ())


def longest_reads(source: Source, *, key: Int64s) -> Evidence:
    """For each of those keys the earliest of its longest reads by ok transactions in this chunk."""
    transactions = load(source)
    is_read = (transactions.f == READ) & transactions.is_known & np.isin(transactions.key, key)
    owner = np.repeat(np.arange(len(transactions.index)), np.diff(transactions.mop_start))
    rows = np.flatnonzero(is_read & (transactions.outcome[owner] == OK))
    starts = transactions.element_start
    rows = rows[longest_rows(transactions.key[rows], starts[rows + 1] - starts[rows])]
    return Evidence((), tuple(_shown_list(transactions, row, int(owner[row])) for row in rows.tolist()))


def _shown_list(transactions: Transactions, row: int, owner: int) -> tuple[int, int, tuple[int, ...]]:
    start, stop = transactions.element_start[row : row + 2].tolist()
    elements = tuple(transactions.elements[start:stop].tolist())
    return int(transactions.key[row]), int(transactions.index[owner]), elements


def own_missed(operation: Operation, key: int) -> tuple[Read, int]:
    """The first read of that list that does not end with what the operation had appended last, and that element.

    Raises ValueError if there is no such read.
    """
    last: int | None = None
    for mop in operation.mops:
        match mop:
            case Append() if mop.key == key:
                last = mop.element
            case Read(elements=tuple() as elements) if mop.key == key and last is not None and elements[-1:] != (last,):
                return mop, last
    raise ValueError(f"T{operation.index} misses no own append to key {key}")


def appends(operation: Operation) -> Iterator[Append]:
    """The appends of an operation, by key and element."""
    yield from sorted(mop for mop in operation.mops if isinstance(mop, Append))


def reads(operation: Operation) -> Iterator[Read]:
    """The reads of an operation whose results are known, in order."""
    yield from (mop for mop in operation.mops if isinstance(mop, Read) and mop.elements is not None)
