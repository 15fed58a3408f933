"""The content of one part of a large EDN file, as one process hands it to the one that writes the history."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from harness.core.columns import Int64s
from harness.core.record import Invoke
from harness.record.formats.edn.jepsen import Map, Open
from harness.record.formats.edn.notation import NotationName
from harness.record.formats.parquet.names import Names
from harness.record.formats.parquet.operations import Row, element_count, tables_of_rows


class Part(NamedTuple):
    """A range of bytes of a file. Before it come `first_map` maps, with `first_op` invocations among them.

    Without `is_hashed`, its digest may lack the bytes that the history's hash covers.
    """

    path: str
    offset: int
    size: int
    first_map: int
    first_op: int
    is_of_lists: bool
    notation: NotationName
    is_hashed: bool


class Opened(NamedTuple):
    """An operation still open at the end of the part. `seq` counts the records of the part."""

    process: int
    invoke: Invoke
    seq: int
    request: Open


class Deferred(NamedTuple):
    """A completion whose invocation is in an earlier part. In total, `op_count` operations were invoked before it.

    Its offset in the canonical bytes of the part is `place`.
    """

    process: int
    map: Map
    seq: int
    op_count: int
    place: int


class Batch(NamedTuple):
    """Rows of completed operations, in any order.

    `elements` counts, for each row of ops, the list elements that it read.
    """

    ops: pa.Table
    mops: pa.Table
    elements: Int64s
    names: list[str]


class Digest(Struct, frozen=True, kw_only=True):
    """The content of a part. `begun`: the processes whose first map in it is an invocation. Positions count from 0.

    `first_ns` and `last_ns` are times of clients' operations; None: none of them has one.
    """

    part: Part
    map_count: int
    op_count: int
    record_count: int
    fault_count: int
    first_index: int
    last_index: int
    first_ns: int | None
    last_ns: int | None
    begun: list[int]
    deferred: list[Deferred]
    opened: list[Opened]
    batch: Batch
    canonical: bytes


def batch(rows: list[Row]) -> Batch:
    """The rows as tables, with their own ids and names. Raises HistoryError if the rows are inconsistent."""
    names = Names()
    ops, mops = tables_of_rows(rows, names)
    counts = [0 if row.complete is None else element_count(row.complete) for row in rows]
    return Batch(ops, mops, np.array(counts, np.int64), names.rows()[1])
