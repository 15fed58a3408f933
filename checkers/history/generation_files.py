"""Parts of a history, written as histories of their own, so that the checks of whole histories can judge them.

Operations keep their indexes and ends: real-time order between two operations does not depend on others. An operation
that counts as unclear has no end, and shows nothing of what it read.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.files import opened_operations, passing_writer
from checkers.history.generations import Restart, spans
from checkers.history.streams import NOTHING_DERIVED, Placement
from harness.core.columns import INFO, NEVER, Bools


class Part(Struct, frozen=True, kw_only=True):
    """One generation of a history, or without restarts all of it.

    `reported` holds the positions that the streams report for operations of unclear outcome.
    """

    restarts: tuple[Restart, ...] = ()
    generation: int = 0
    saved_bits: int = 0
    reported: Placement = NOTHING_DERIVED


def parts(
    restarts: Sequence[Restart], saved_bits: int | None, *, reported: Placement = NOTHING_DERIVED
) -> tuple[Part, ...]:
    """One part for each generation; a single part if the history does not declare what a restart restores."""
    if saved_bits is None or not restarts:
        return (Part(),)
    known = tuple(restarts)
    return tuple(
        Part(restarts=known, generation=number, saved_bits=saved_bits, reported=reported)
        for number in range(len(known) + 1)
    )


def is_whole(part: Part) -> bool:
    """True if the part leaves nothing out."""
    return not part.restarts


def write_part(history: Path, folder: Path, part: Part) -> None:
    """Write ops.parquet and mops.parquet of that part into `folder`, chunk by chunk. Raises HistoryError."""
    with (
        opened_operations(history) as (ops, mops),
        passing_writer(folder / "ops.parquet", ops.schema_arrow) as ops_out,
        passing_writer(folder / "mops.parquet", mops.schema_arrow) as mops_out,
    ):
        for group in range(ops.num_row_groups):
            chosen = _chosen(ops.read_row_group(group), mops.read_row_group(group), part)
            for table, out in zip(chosen, (ops_out, mops_out), strict=True):
                out.write_table(table, row_group_size=max(1, table.num_rows))


def _chosen(ops: pa.Table, mops: pa.Table, part: Part) -> tuple[pa.Table, pa.Table]:
    """The operations and steps of one chunk that belong to the part."""
    found = spans(ops, part.restarts, saved_bits=part.saved_bits, reported=part.reported)
    is_kept = (found.first <= part.generation) & (part.generation <= found.last)
    ops = as_unclear(ops, found.unclear).filter(pa.array(is_kept))
    return ops, mops.filter(pc.is_in(mops["op"], value_set=ops["index"].combine_chunks()))


def as_unclear(ops: pa.Table, is_unclear: Bools) -> pa.Table:
    """The same operations; the flagged ones have no certain outcome and no end."""
    unclear = pa.array(is_unclear)
    for name, value in (("outcome", INFO), ("after", NEVER)):
        ops = _with(ops, name, pc.if_else(unclear, pa.scalar(value, ops.schema.field(name).type), ops[name]))
    return ops


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
