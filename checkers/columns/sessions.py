"""The order inside each process of a history whose operations all count as concurrent: a table of its own.

Such a history comes from a file whose times show nothing about the order of operations. What one process did, the file
still has in order. Intervals of time cannot express this order alone, so the table stands beside them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.arrow import flags, integers
from checkers.columns.files import footer, read_columns, read_group
from harness.core.columns import INFO, NEVER, Int64s

SESSIONS: Final = "sessions.parquet"
_GROUP_ROWS: Final = 1 << 16  # Rows in each row group: whoever wants some operations reads only their row groups.
_SCHEMA: Final = pa.schema([("index", pa.int64()), ("process", pa.int64()), ("after", pa.int64())])


def in_file_order(history: Path, without: Sequence[int], beyond: int) -> pa.Table | None:
    """The table of a history that was written in the order of its file; None if not all operations are transactions.

    Columns: `index`, which ascends, the `process`, and `after`, the number of operations that had begun in the file
    when this one ended. The processes `without`, and the numbers from `beyond` on, get no order.
    """
    ops = read_columns(history / "ops.parquet", ("index", "process", "after", "is_txn", "outcome"))
    if not flags(ops["is_txn"]).all():
        return None
    order = np.argsort(integers(ops["index"]))
    index, process, after = (integers(ops[name], NEVER)[order] for name in ("index", "process", "after"))
    has_order = ~np.isin(process, np.array(without, np.int64)) & (process < beyond)
    is_open = integers(ops["outcome"])[order] == INFO
    return pa.table([index, process, np.where(has_order | is_open, after, len(index))], schema=_SCHEMA)


def write_sessions(history: Path, table: pa.Table) -> None:
    """Write that table beside the history. Raises OSError."""
    path = history / SESSIONS
    pq.write_table(table, path, row_group_size=_GROUP_ROWS, compression="zstd", write_page_checksum=True)


def has_sessions(history: Path) -> bool:
    """True if the history's operations all count as concurrent, but for the order inside each process."""
    return (history / SESSIONS).is_file()


def sessions_of(history: Path, index: Int64s) -> tuple[Int64s, Int64s]:
    """The process, and what `after` is in the table, of those operations. Raises HistoryError if it is damaged."""
    if not len(index):
        return index, index
    path = history / SESSIONS
    rows = footer(path).row_group(0).num_rows
    first, last = int(index.min()) // rows, int(index.max()) // rows
    table = pa.concat_tables(read_group(path, number, ("process", "after")) for number in range(first, last + 1))
    at = index - first * rows
    return integers(table["process"])[at], integers(table["after"])[at]
