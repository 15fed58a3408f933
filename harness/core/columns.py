"""The arrays that kernels work on, and the columns of the Parquet files that hold them.

Keys and values are int64 ids, assigned once, when a history is written or imported. An integer in [0, NAMED) is its own
id; anything else (text, null, lists, booleans, negative or huge numbers) gets NAMED + n, by order of first appearance,
and names.parquet holds its JSON. So kernels see integers only, and a plain history needs no dictionary.

ops.parquet and mops.parquet are cut into the same row groups: row group i of both has the same operations, at most
GROUP_OPS of them with at most GROUP_ELEMENTS elements read. That pair is a *chunk*, the unit that engines distribute.
The texts of a row group have at most GROUP_TEXT_BYTES, unless one row alone has more.
"""

from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from harness.core.errors import HistoryError

Int64s = NDArray[np.int64]
Int8s = NDArray[np.int8]
Bools = NDArray[np.bool_]

NAMED: Final = 1 << 53
NEVER: Final = np.iinfo(np.int64).max  # The `after` of an operation without a certain end, and every missing position.
GROUP_OPS: Final = 250_000
GROUP_ELEMENTS: Final = 4_000_000
GROUP_TEXT_BYTES: Final = 32 << 20

OK, FAIL, INFO = 0, 1, 2  # Outcomes, as int8.
READ, APPEND, WRITE = 0, 1, 2  # Micro-operations, as int8.
NOTHING, UNKNOWN = -1, -2  # Instead of a register's value: never written; read, but not known.

# Column names and types ("?" for nullable), in the order of the files. Files may gain columns; a number never changes.
OPS_COLUMNS: Final = {
    "index": "int64",  # rank of the invocation
    "process": "int64",
    "node": "string?",
    "outcome": "int8",
    "f": "string",
    "invoke_value": "string?",  # JSON; null for null, and for a transaction, whose micro-operations are in mops
    "value": "string?",  # JSON; likewise
    "intended_ns": "int64",
    "invoke_ns": "int64",
    "complete_ns": "int64?",  # null: no completion was recorded, and the outcome is info
    "after": "int64",  # first index invoked after the completion; NEVER for info
    "invoke_seq": "int64",  # positions in the journal, header not counted
    "complete_seq": "int64?",
    "is_txn": "bool",
    "has_result": "bool",  # the completion carried micro-operations
    "error": "string?",
    "txn": "int64?",
    "start_ts": "int64?",
    "read_ts": "int64?",
    "commit_ts": "int64?",
    "epoch": "int64?",
    "cluster": "string?",
}
MOPS_COLUMNS: Final = {
    "op": "int64",
    "position": "int32",  # within its transaction, from 0
    "table": "string?",
    "f": "int8",
    "lock": "string?",
    "key": "int64",
    "value": "int64?",  # the value appended or written; for a read of a register, the value read
    "read": "list<int64>?",  # of a list; null where it is not known
}
EVENTS_COLUMNS: Final = {
    "seq": "int64",
    "ns": "int64",
    "subscriber": "string",
    "session": "int64",
    "number": "int64",
    "kind": "string",
    "span": "string?",
    "key": "int64?",
    "value": "int64?",
    "position": "int64?",
    "ordinal": "int64?",
    "epoch": "int64?",
    "unit": "int64?",
    "unit_rows": "int64?",
}


class Transactions(Struct, frozen=True, kw_only=True):
    """One chunk of transactions as arrays: n operations, m micro-operations, r elements read.

    Micro-operations follow the order of their transactions, and keep their own order inside each; those of operation i
    are mop_start[i]:mop_start[i + 1]. The elements of read j are elements[element_start[j]:element_start[j + 1]]. A
    `fail` or `info` operation has the micro-operations of its invocation; its reads are unknown unless it reported
    them. Whether a key is a list or a register follows from the operations on it. The result of a read is a list if
    `is_known`, else `value`.
    """

    index: Int64s  # (n,) ascending, unique over the whole history
    process: Int64s  # (n,)
    outcome: Int8s  # (n,) OK, FAIL or INFO
    # (n,) First index invoked after the completion, NEVER for info: u precedes v in real time iff after[u] <= index[v].
    after: Int64s
    mop_start: Int64s  # (n + 1,)
    f: Int8s  # (m,) READ, APPEND or WRITE
    key: Int64s  # (m,)
    # (m,) the value appended, written, or read in a register (or NOTHING, UNKNOWN); arbitrary for a list that is known.
    value: Int64s
    is_known: Bools  # (m,) True for a read of a list with its result
    element_start: Int64s  # (m + 1,)
    elements: Int64s  # (r,)
    # (n,) position in the commit order that the system reports, or NEVER; empty if the system was not queried.
    commit: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        n, m = len(self.index), len(self.f)
        per_op = [len(self.process), len(self.outcome), len(self.after), len(self.mop_start) - 1]
        per_mop = [len(self.key), len(self.value), len(self.is_known), len(self.element_start) - 1]
        if per_op != [n] * 4 or per_mop != [m] * 4:
            raise HistoryError("columns of one chunk of transactions differ in length")


class Deliveries(Struct, frozen=True, kw_only=True):
    """The events that subscribers received, as arrays of length n, in order of receipt (by `seq`).

    NEVER stands for a missing number.

    `kind` is an index into KINDS. `subscriber` and `span` are dense ids from 0 (span -1: none, the whole stream).
    """

    seq: Int64s
    ns: Int64s
    subscriber: Int64s
    session: Int64s
    kind: Int8s
    span: Int64s
    key: Int64s
    value: Int64s
    position: Int64s
    ordinal: Int64s
    epoch: Int64s
    unit: Int64s
    unit_rows: Int64s


# A "backfill" is a row of a snapshot: it shows a state, so it is never late. For "successors" and "hash" see
# checkers/lineage. A "tombstone" repeats a deletion.
KINDS: Final = (
    "open", "row", "watermark", "begin", "commit", "gap", "error", "close", "checkpoint", "end", "backfill",
    "successors", "hash", "tombstone",
)  # fmt: skip
OPEN, ROW, WATERMARK, BEGIN, COMMIT, GAP, ERROR, CLOSE, CHECKPOINT, END, BACKFILL = range(11)
SUCCESSORS, HASH, TOMBSTONE = range(11, len(KINDS))


class SourceWrites(Struct, frozen=True, kw_only=True):
    """The writes of the source as arrays of length n: one row for each write of each operation.

    Writes that were certainly refused are included (outcome FAIL), so that a phantom can be recognized.

    `position` is the commit position that the source reported, or NEVER; `ordinal` is the write's place in its unit.
    `span` is the id of the partition that delivers the key's rows; -1 if there is none, or it is unknown.
    `txn` is the system's own number of the operation, by which events may name it as their unit. `version` is the
    write's rank among those of its key, in the source's own order. Both are NEVER where they are not known.
    """

    op: Int64s
    outcome: Int8s
    key: Int64s
    value: Int64s
    position: Int64s
    ordinal: Int64s
    epoch: Int64s
    span: Int64s
    invoke_seq: Int64s
    complete_seq: Int64s  # NEVER without completion
    txn: Int64s
    version: Int64s
