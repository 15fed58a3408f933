"""Parts of a history, written as histories of their own, so that the checks of whole histories can judge them.

Operations keep their indexes and ends: real-time order between two operations does not depend on others. An operation
that counts as unclear has no end, and shows nothing of what it read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.columns.files import opened_operations
from checkers.history.generations import Restart, spans
from checkers.history.streams import NOTHING_DERIVED, Placement
from harness.core.columns import INFO, NEVER, READ, Bools

LOCKED: Final = ("shared", "exclusive")  # The locks of reads that are held until commit.


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a history: one generation, and with `is_locked` of its reads only those under a lock.

    `reported` holds the positions that the streams report for operations of unclear outcome.
    """

    restarts: tuple[Restart, ...] = ()
    generation: int = 0
    saved_bits: int = 0
    reported: Placement = NOTHING_DERIVED
    is_locked: bool = False


def parts(
    restarts: Sequence[Restart],
    saved_bits: int | None,
    *,
    reported: Placement = NOTHING_DERIVED,
    is_locked: bool = False,
) -> tuple[Part, ...]:
    """One part for each generation; a single part if the history does not declare what a restart restores."""
    if saved_bits is None or not restarts:
        return (Part(is_locked=is_locked),)
    known = tuple(restarts)
    return tuple(
        Part(restarts=known, generation=number, saved_bits=saved_bits, reported=reported, is_locked=is_locked)
        for number in range(len(known) + 1)
    )


def is_whole(part: Part) -> bool:
    """True if the part leaves nothing out."""
    return not part.restarts and not part.is_locked


def write_part(history: Path, folder: Path, part: Part) -> None:
    """Write ops.parquet and mops.parquet of that part into `folder`, chunk by chunk. Raises HistoryError.

    With `is_locked` every transaction stays, and only its reads without a lock are left out. A transaction holds its
    exclusive locks until commit, whatever it reads. So its writes are in one order with all locked reads and writes of
    others, and its unlocked reads are not part of that order. No element loses its writer.
    """
    with (
        opened_operations(history) as (ops, mops),
        pq.ParquetWriter(folder / "ops.parquet", ops.schema_arrow, write_page_checksum=True) as ops_out,
        pq.ParquetWriter(folder / "mops.parquet", mops.schema_arrow, write_page_checksum=True) as mops_out,
    ):
        for group in range(ops.num_row_groups):
            chosen = _chosen(ops.read_row_group(group), mops.read_row_group(group), part)
            for table, out in zip(chosen, (ops_out, mops_out), strict=True):
                out.write_table(table, row_group_size=max(1, table.num_rows))


def _chosen(ops: pa.Table, mops: pa.Table, part: Part) -> tuple[pa.Table, pa.Table]:
    """The operations and steps of one chunk that belong to the part."""
    if part.restarts:
        found = spans(ops, part.restarts, saved_bits=part.saved_bits, reported=part.reported)
        is_kept = (found.first <= part.generation) & (part.generation <= found.last)
        ops = as_unclear(ops, found.unclear).filter(pa.array(is_kept))
        mops = mops.filter(pc.is_in(mops["op"], value_set=ops["index"].combine_chunks()))
    return ops, locked_only(mops) if part.is_locked else mops


def locked_only(mops: pa.Table) -> pa.Table:
    """The micro-operations without the reads that are not under a lock held until commit."""
    is_read = pc.equal(mops["f"], READ).to_numpy().astype(np.bool_, copy=False)
    return mops.filter(pa.array(~is_read | is_locked(mops)))


def is_locked(mops: pa.Table) -> Bools:
    """True for the micro-operations that are reads under a lock held until commit."""
    is_read = pc.equal(mops["f"], READ)
    held = pc.and_(is_read, pc.is_in(mops["lock"], value_set=pa.array(LOCKED)))
    result: Bools = held.to_numpy().astype(np.bool_, copy=False)
    return result


def as_unclear(ops: pa.Table, is_unclear: Bools) -> pa.Table:
    """The same operations; the flagged ones have no certain outcome and no end."""
    unclear = pa.array(is_unclear)
    for name, value in (("outcome", INFO), ("after", NEVER)):
        ops = _with(ops, name, pc.if_else(unclear, pa.scalar(value, ops.schema.field(name).type), ops[name]))
    return ops


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
