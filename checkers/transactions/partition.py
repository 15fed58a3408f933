"""The kernels before and after the shuffle by key: `shares` for each chunk, `infer` for each partition of keys.

Both handle lists and registers.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from checkers.columns.runs import distinct
from checkers.graph.edges import Inference, all_edges
from checkers.graph.sightings import seen, union
from checkers.history.registers import EMPTY, Initial, Order
from checkers.history.stretches import ONCE, Weights
from checkers.history.transactions import Source, load
from checkers.transactions import key_rows, list_anomalies, list_rows
from checkers.transactions.key_rows import KeyRows
from checkers.transactions.registers import rows as register_rows
from checkers.transactions.registers.edges import infer_registers
from checkers.transactions.registers.rows import RegisterRows
from harness.core.columns import NOTHING, Bools, Int64s


class Share(Struct, frozen=True):
    """The rows of one chunk about the keys of one partition. `registers` is None if no key is a register."""

    lists: KeyRows
    registers: RegisterRows | None


def shares(
    source: Source, *, partitions: int, initial: Initial = EMPTY, weights: Weights = ONCE
) -> Iterator[tuple[int, Share]]:
    """Yield the number of each partition, and the chunk's share of it.

    Raises HistoryError as `list_rows.rows_by_key` does.
    """
    transactions = initial.applied(load(source))
    lists = list_rows.rows_by_key(transactions, partitions=partitions, weights=weights)
    registers = register_rows.register_rows(transactions)
    if not len(registers.touches.op):
        yield from ((number, Share(rows, None)) for number, rows in lists)
        return
    for (number, rows), part in zip(lists, register_rows.parted(registers, partitions=partitions), strict=True):
        yield number, Share(rows, part)


def infer(parts: Sequence[Share], *, order: Order, initial: Initial = EMPTY, weights: Weights = ONCE) -> Inference:
    """The edges and anomalies that follow from all shares of one partition.

    A key used as list and register gives none.
    """
    registers = [part.registers for part in parts if part.registers is not None]
    if not registers:
        return list_anomalies.infer([part.lists for part in parts], weights)
    rows, written = key_rows.concatenated([part.lists for part in parts]), register_rows.concatenated(registers)
    keys = np.concatenate((rows.lists.key, rows.appends.key))
    mixed = np.intersect1d(keys, _written_keys(written))
    is_mixed = np.isin(keys, mixed)
    ops = np.concatenate((rows.lists.op, rows.appends.op)).astype(np.int64)
    duplicate = seen("mixed-key", len(mixed), op=ops[is_mixed], key=keys[is_mixed])
    lists = list_anomalies.infer([key_rows.without(rows, mixed) if len(mixed) else rows], weights)
    rest = register_rows.without(written, distinct(keys))
    registered = infer_registers(rest, order, is_declared=initial.is_declared)
    return Inference(
        all_edges([lists.edges, registered.edges]),
        lists.implicit.beside(registered.implicit),
        union((lists.report, registered.report)),
        (*lists.left_out, *registered.left_out, *duplicate),
        {kind: lists.kinds[kind] | registered.kinds[kind] for kind in lists.kinds},
    )


def _written_keys(rows: RegisterRows) -> Int64s:
    """The keys that are used as registers: a transaction wrote them so, or read a written value."""
    touches = rows.touches
    is_used: Bools = (touches.read >= 0) | (touches.write >= NOTHING)
    return distinct(np.concatenate((touches.key[is_used], rows.passing.key, rows.odd.key[rows.odd.value >= 0])))
