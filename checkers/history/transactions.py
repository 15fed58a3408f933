"""Transactions of a history: chunks on disk, or plain Python for tests and explanations.

A chunk is row group i of ops.parquet and of mops.parquet (harness/core/columns.py). Engines distribute descriptors of
chunks, never rows: reading them is part of the kernel's work.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.arrow import flags, integers, lists, validity
from checkers.columns.files import footer, read_group
from checkers.columns.runs import expand
from checkers.columns.sessions import has_sessions, sessions_of
from harness.core.columns import APPEND, NEVER, NOTHING, OK, READ, UNKNOWN, WRITE, Bools, Int64s, Transactions
from harness.core.errors import HistoryError

_OPS: Final = ["index", "process", "outcome", "after", "is_txn", "has_result", "commit_ts"]
_MOPS: Final = ["op", "f", "key", "value", "read"]
_LOCKS: Final = ("shared", "exclusive")  # Those that are held until commit.


class Chunk(Struct, frozen=True):
    """Row group `group` of the history in `directory`, and its number of operations.

    With `is_locked` every transaction stays, and only its reads without a lock are left out. A transaction holds its
    exclusive locks until commit, whatever it reads. So its writes are in one order with all locked reads and writes of
    others, and its unlocked reads are not part of that order. No element loses its writer.
    """

    directory: str
    group: int
    op_count: int
    is_locked: bool = False


Source = Chunk | Transactions  # The input of a kernel.


def chunks(directory: Path, *, is_locked: bool = False) -> tuple[Chunk, ...]:
    """The chunks of a history directory, in order. Raises HistoryError if its files do not match or cannot be read."""
    ops, mops = footer(directory / "ops.parquet"), footer(directory / "mops.parquet")
    if ops.num_row_groups != mops.num_row_groups:
        raise HistoryError(
            f"{directory}: ops.parquet has {ops.num_row_groups} row groups, mops.parquet {mops.num_row_groups}: "
            "write the history again from its journal"
        )
    counts = (ops.row_group(group).num_rows for group in range(ops.num_row_groups))
    return tuple(Chunk(str(directory), group, count, is_locked) for group, count in enumerate(counts))


def op_count(sources: Sequence[Source]) -> int:
    """The number of operations of all sources."""
    return sum(source.op_count if isinstance(source, Chunk) else len(source.index) for source in sources)


def load(source: Source) -> Transactions:
    """The transactions of a source. Raises HistoryError if the file is damaged."""
    return source if isinstance(source, Transactions) else read_chunk(source)


def read_chunk(chunk: Chunk) -> Transactions:
    """The transactions of one chunk, without other operations.

    In a history without times, order is that of `checkers.columns.sessions`: only inside a process it means something.
    Raises HistoryError if a file is damaged, or if a micro-operation belongs to no transaction of the chunk.
    """
    ops = read_group(Path(chunk.directory, "ops.parquet"), chunk.group, _OPS)
    is_txn = flags(ops["is_txn"])
    index = integers(ops["index"])[is_txn]
    mops = read_group(Path(chunk.directory, "mops.parquet"), chunk.group, [*_MOPS, *["lock"] * chunk.is_locked])
    if chunk.is_locked:
        mops = mops.filter(pa.array((integers(mops["f"]) != READ) | under_lock(mops)))
    process, after = integers(ops["process"])[is_txn], integers(ops["after"])[is_txn]
    if has_sessions(Path(chunk.directory)):
        process, after = sessions_of(Path(chunk.directory), index)
    owner = integers(mops["op"])
    mop_start = np.searchsorted(owner, np.append(index, NEVER)).astype(np.int64)
    if mop_start[0] != 0 or not np.array_equal(np.repeat(index, np.diff(mop_start)), owner):
        raise HistoryError(f"{chunk.directory}/mops.parquet, row group {chunk.group}: a row without its operation")
    element_start, elements, is_known = lists(mops["read"])
    f = integers(mops["f"]).astype(np.int8)
    outcome = integers(ops["outcome"])[is_txn].astype(np.int8)
    has_result = flags(ops["has_result"])[is_txn] if "has_result" in ops.column_names else outcome == OK
    is_empty = ~is_known & np.repeat(has_result, np.diff(mop_start))
    return Transactions(
        index=index,
        process=process,
        outcome=outcome,
        after=after,
        mop_start=mop_start,
        f=f,
        key=integers(mops["key"]),
        value=_values(mops["value"], f == READ, is_empty),
        is_known=is_known,
        element_start=element_start,
        elements=elements,
        commit=integers(ops["commit_ts"], NEVER)[is_txn] if "commit_ts" in ops.column_names else _NONE,
    )


def under_lock(mops: pa.Table) -> Bools:
    """True for the micro-operations that are reads under a lock held until commit."""
    return flags(pc.and_(pc.equal(mops["f"], READ), pc.is_in(mops["lock"], value_set=pa.array(_LOCKS))))


class Read(NamedTuple):
    """A read of a list; `elements` is None if the result is not known."""

    key: int
    elements: tuple[int, ...] | None


class Append(NamedTuple):
    """An append to a list."""

    key: int
    element: int


class Load(NamedTuple):
    """A read of a register; `value` is NOTHING if it was never written. A read without a result is a `Read`."""

    key: int
    value: int


class Store(NamedTuple):
    """A write of a register."""

    key: int
    value: int


Mop = Read | Append | Load | Store
_KINDS: Final = {Read: READ, Load: READ, Append: APPEND, Store: WRITE}
_NONE: Final = np.empty(0, np.int64)


class Operation(Struct, frozen=True):
    """One transaction in plain Python. The columns of `Transactions` explain the fields."""

    index: int
    process: int
    outcome: int
    after: int
    mops: tuple[Mop, ...]
    commit: int = NEVER


def to_transactions(operations: Sequence[Operation]) -> Transactions:
    """The same transactions as arrays. They must be in the order of their index."""
    mops = [mop for operation in operations for mop in operation.mops]
    reads = [(mop.elements or ()) if isinstance(mop, Read) else () for mop in mops]
    return Transactions(
        index=np.array([operation.index for operation in operations], np.int64),
        process=np.array([operation.process for operation in operations], np.int64),
        outcome=np.array([operation.outcome for operation in operations], np.int8),
        after=np.array([operation.after for operation in operations], np.int64),
        mop_start=_starts(len(operation.mops) for operation in operations),
        f=np.array([_KINDS[type(mop)] for mop in mops], np.int8),
        key=np.array([mop.key for mop in mops], np.int64),
        value=np.array([UNKNOWN if isinstance(mop, Read) else mop[1] for mop in mops], np.int64),
        is_known=np.array([isinstance(mop, Read) and mop.elements is not None for mop in mops], np.bool_),
        element_start=_starts(len(read) for read in reads),
        elements=np.array([element for read in reads for element in read], np.int64),
        commit=np.array([operation.commit for operation in operations], np.int64),
    )


def to_operations(transactions: Transactions) -> list[Operation]:
    """The same transactions in plain Python, for explanations and oracles."""
    mops = [_mop(transactions, row) for row in range(len(transactions.f))]
    bounds = transactions.mop_start.tolist()
    return [
        Operation(
            int(transactions.index[row]),
            int(transactions.process[row]),
            int(transactions.outcome[row]),
            int(transactions.after[row]),
            tuple(mops[bounds[row] : bounds[row + 1]]),
            int(transactions.commit[row]) if transactions.commit.size else NEVER,
        )
        for row in range(len(transactions.index))
    ]


def select(transactions: Transactions, rows: Int64s) -> Transactions:
    """The transactions at those rows, which must ascend."""
    mops, mop_start = _gathered(transactions.mop_start, rows)
    elements, element_start = _gathered(transactions.element_start, mops)
    return Transactions(
        index=transactions.index[rows],
        process=transactions.process[rows],
        outcome=transactions.outcome[rows],
        after=transactions.after[rows],
        mop_start=mop_start,
        f=transactions.f[mops],
        key=transactions.key[mops],
        value=transactions.value[mops],
        is_known=transactions.is_known[mops],
        element_start=element_start,
        elements=transactions.elements[elements],
        commit=transactions.commit[rows] if transactions.commit.size else transactions.commit,
    )


def _mop(transactions: Transactions, row: int) -> Mop:
    key, value = int(transactions.key[row]), int(transactions.value[row])
    if transactions.f[row] != READ:
        return Append(key, value) if transactions.f[row] == APPEND else Store(key, value)
    if not transactions.is_known[row]:
        return Read(key, None) if value == UNKNOWN else Load(key, value)
    run = slice(transactions.element_start[row], transactions.element_start[row + 1])
    return Read(key, tuple(transactions.elements[run].tolist()))


def _starts(lengths: Iterable[int]) -> Int64s:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _gathered(start: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """The places of all elements in the runs of those rows, and where each run starts once they are laid end to end."""
    lengths = start[rows + 1] - start[rows]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return expand(start[rows], lengths), starts


def _values(column: pa.ChunkedArray, is_read: Bools, is_empty: Bools) -> Int64s:
    """The values of register steps. A read without a value has NOTHING if `is_empty` (never written), else UNKNOWN."""
    values = integers(column)
    if not column.null_count:
        return values
    return np.where(is_read & ~validity(column), np.where(is_empty, NOTHING, UNKNOWN), values)
