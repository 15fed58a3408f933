"""The one pair of kernels between which the engines shuffle: `shares` on each chunk, `infer` on each partition of keys.

Both work on lists and on registers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from checkers.graph.edges import Inference, all_edges
from checkers.graph.sightings import Sighting, seen, union
from checkers.history.transactions import Source, load
from checkers.transactions import list_anomalies, list_rows
from checkers.transactions.key_rows import KeyRows
from checkers.transactions.register_edges import infer_registers
from checkers.transactions.register_order import Order
from checkers.transactions.register_rows import RegisterRows, concatenated, parted, register_rows
from checkers.transactions.register_versions import without
from harness.core.columns import NOTHING, Bools, Int64s


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of one chunk about the keys of one partition; `registers` is None if it touches none."""

    lists: KeyRows
    registers: RegisterRows | None


def shares(source: Source, *, partitions: int, nothing: int = NOTHING) -> Iterator[tuple[int, Share]]:
    """The chunk's share of each partition. Writing `nothing` resets a register to its initial state.

    Raises HistoryError like `list_rows.rows_by_key`.
    """
    transactions = load(source)
    lists = list_rows.rows_by_key(transactions, partitions=partitions)
    registers = register_rows(transactions, nothing=nothing)
    if not len(registers.touches.op):
        yield from ((number, Share(rows, None)) for number, rows in lists)
        return
    for (number, rows), part in zip(lists, parted(registers, partitions=partitions), strict=True):
        yield number, Share(rows, part)


def infer(parts: Sequence[Share], *, order: Order) -> Inference:
    """The edges and anomalies that follow from all shares of one partition. A key used in both ways gives none."""
    registers = [part.registers for part in parts if part.registers is not None]
    if not registers:
        return list_anomalies.infer([part.lists for part in parts])
    lists, rows = list_rows.concatenated([part.lists for part in parts]), concatenated(registers)
    list_keys = np.unique(np.concatenate((lists.list_key, lists.append_key)))
    mixed = np.intersect1d(list_keys, _written_keys(rows))
    duplicate = _mixed(lists, mixed)
    if len(mixed):
        lists = list_rows.subset(lists, ~np.isin(lists.list_key, mixed), ~np.isin(lists.append_key, mixed))
    return _both(list_anomalies.infer([lists]), infer_registers(without(rows, list_keys), order), duplicate)


def _written_keys(rows: RegisterRows) -> Int64s:
    """The keys that somebody wrote as a register, or read as one that was written."""
    touches = rows.touches
    is_used: Bools = (touches.read >= 0) | (touches.write >= NOTHING)
    return np.unique(np.concatenate((touches.key[is_used], rows.passing.key, rows.odd.key[rows.odd.value >= 0])))


def _mixed(lists: KeyRows, mixed: Int64s) -> tuple[Sighting, ...]:
    read, appended = np.isin(lists.list_key, mixed), np.isin(lists.append_key, mixed)
    ops = np.concatenate((lists.list_op[read], lists.append_op[appended])).astype(np.int64)
    keys = np.concatenate((lists.list_key[read], lists.append_key[appended]))
    return seen("mixed-key", len(mixed), op=ops, key=keys)


def _both(one: Inference, other: Inference, mixed: tuple[Sighting, ...]) -> Inference:
    return Inference(
        all_edges([one.edges, other.edges]),
        one.tail.beside(other.tail),
        union((one.report, other.report)),
        (*one.left_out, *other.left_out, *mixed),
    )
