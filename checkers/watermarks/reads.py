"""Operations that watermarks need: reads as of a position, and counts of operations invoked before a receipt."""

from pathlib import Path

import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.files import footer, read_group
from checkers.graph.edges import Int32s
from checkers.history.transactions import Chunk, Source
from harness.core.columns import NEVER, OK, READ, Bools, Int64s

NO_NODE = -1


class Readers(Struct, frozen=True, kw_only=True):
    """Operations that only read, as of a position: by `op`, ascending, with the node of the watermarks there.

    NO_NODE if no watermark has the position: such a read has no place in real time, and is left out.
    """

    op: Int64s
    node: Int64s

    def of(self, op: Int32s) -> tuple[Bools, Int64s]:
        """True for those of the operations that are readers, and their nodes."""
        if not len(self.op):
            return np.zeros(len(op), np.bool_), np.full(len(op), NO_NODE, np.int64)
        at = np.minimum(np.searchsorted(self.op, op), len(self.op) - 1)
        is_reader: Bools = self.op[at] == op
        return is_reader, np.where(is_reader, self.node[at], NO_NODE)


def may_read_as_of(source: Chunk) -> bool:
    """True if operations of a chunk may have read as of positions. Reads only the footer of its file."""
    path = Path(source.directory) / "ops.parquet"
    group = footer(path).row_group(source.group)
    columns = [group.column(number) for number in range(group.num_columns)]
    statistics = [column.statistics for column in columns if column.path_in_schema == "read_ts"]
    return not all(
        each is not None and each.has_null_count and each.null_count == group.num_rows for each in statistics
    )


def as_of(source: Source) -> tuple[Int64s, Int64s]:
    """The operations of a chunk that only read, as of a position; and these positions. Sorted by index."""
    if not isinstance(source, Chunk):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    table = read_group(Path(source.directory) / "ops.parquet", source.group, ["index", "outcome", "read_ts"])
    if table["read_ts"].null_count == table.num_rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    steps = read_group(Path(source.directory) / "mops.parquet", source.group, ["op", "f"])
    index, position = integers(table["index"], -1), integers(table["read_ts"], NEVER)
    writing = integers(steps["op"], -1)[integers(steps["f"], READ) != READ]
    is_meant = (integers(table["outcome"], OK) == OK) & (position != NEVER) & ~np.isin(index, writing)
    return index[is_meant], position[is_meant]


def invoked_before(chunk: Chunk, *, seq: Int64s) -> Int64s:
    """The number of operations of a chunk invoked before each of those journal positions, which ascend."""
    table = read_group(Path(chunk.directory) / "ops.parquet", chunk.group, ["invoke_seq"])
    return np.searchsorted(np.sort(integers(table["invoke_seq"], NEVER)), seq)
