"""Operations as rows: an invocation and its completion in one row of ops, its micro-operations in rows of mops.

Invocations are paired with completions as they arrive. A batch of rows is written when enough operations have
completed; inside it, rows are ordered by index. Operations that never complete are written last, as `info`.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.columns.arrow import integers
from harness.core.columns import (
    APPEND,
    FAIL,
    GROUP_ELEMENTS,
    GROUP_OPS,
    GROUP_TEXT_BYTES,
    INFO,
    NEVER,
    OK,
    READ,
    WRITE,
    Int64s,
)
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, Json, MicroOp
from harness.record.formats.parquet.names import Names, json_text
from harness.record.formats.parquet.schema import SCHEMAS, table_of, tables_of

OUTCOMES: Mapping[str, int] = {"ok": OK, "fail": FAIL, "info": INFO}
MOP_KINDS: Mapping[str, int] = {"r": READ, "append": APPEND, "w": WRITE}


class Row(NamedTuple):
    """One operation, paired. `after` is the number of invocations recorded before the completion."""

    invoke: Invoke
    invoke_seq: int
    complete: Complete | None
    complete_seq: int | None
    after: int


class Operations:
    """Pairs operations and writes them in batches. `write` takes the two tables of one chunk."""

    def __init__(self, names: Names, write: Callable[[pa.Table, pa.Table], None]) -> None:
        self._names, self._write = names, write
        self._open: dict[int, tuple[Invoke, int]] = {}
        self._rows: list[Row] = []
        self._elements = 0
        self.count = 0

    def invoke(self, seq: int, record: Invoke) -> None:
        """Add an invocation. Raises HistoryError unless indexes count up from 0, and its reads have no results."""
        if record.index != self.count:
            raise HistoryError(f"record {seq}: operation {record.index} was invoked, {self.count} is the next index")
        if record.mops and any([mop.value is not None and mop.f == "r" for mop in record.mops]):  # noqa: C419  Faster.
            raise HistoryError(f"record {seq}: operation {record.index} is invoked with the result of a read")
        self.count += 1
        self._open[record.index] = (record, seq)

    def complete(self, seq: int, record: Complete) -> None:
        """Add a completion. Raises HistoryError if it matches no open invocation, or differs from its request."""
        opened = self._open.pop(record.index, None)
        if opened is None:
            raise HistoryError(f"record {seq}: operation {record.index} completes, but it is not open")
        invoke, invoke_seq = opened
        if record.mops is not None and not same_request(invoke.mops, record.mops):
            raise HistoryError(
                f"record {seq}: operation {record.index} completes as another transaction than was invoked "
                "(its client is at fault: only the values of reads may differ)"
            )
        self._rows.append(completed_row(invoke, invoke_seq, record, seq, self.count))
        self._elements += element_count(record)
        if len(self._rows) >= GROUP_OPS or self._elements >= GROUP_ELEMENTS:
            self._flush()

    def finish(self) -> None:
        """Write the remaining rows, and the operations that never completed."""
        self._rows.extend(open_row(invoke, seq) for invoke, seq in self._open.values())
        self._open = {}
        self._flush()

    def _flush(self) -> None:
        rows = sorted(self._rows, key=lambda row: row.invoke.index)
        self._rows, self._elements = [], 0
        self._write(*tables_of_rows(rows, self._names))


def pieces(ops: pa.Table, mops: pa.Table) -> Iterator[tuple[pa.Table, pa.Table]]:
    """A chunk in pieces, each with at most GROUP_TEXT_BYTES of texts, or one operation.

    Usually the chunk stays whole.
    """
    index = integers(ops["index"])
    first = np.append(np.searchsorted(integers(mops["op"]), index), len(mops))  # Both are in the order of operations.
    sizes, parts = text_sizes(ops), np.append(0, np.cumsum(text_sizes(mops)))
    ends = np.cumsum(sizes + parts[first[1:]] - parts[first[:-1]])
    begin = 0
    if not len(ops):
        yield ops, mops
    while begin < len(ops):
        most = (ends[begin - 1] if begin else 0) + GROUP_TEXT_BYTES
        end = max(begin + 1, int(np.searchsorted(ends, most, "right")))
        yield ops.slice(begin, end - begin), mops.slice(first[begin], first[end] - first[begin])
        begin = end


def text_sizes(table: pa.Table) -> Int64s:
    """The bytes of the texts in each row."""
    sizes = np.zeros(len(table), np.int64)
    for column in table.columns:
        if pa.types.is_string(column.type):
            sizes += integers(pc.binary_length(column), 0)
    return sizes


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Pause the garbage collector.

    Records and rows are many and form no cycles; scanning them takes half of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def completed_row(invoke: Invoke, invoke_seq: int, record: Complete, seq: int, count: int) -> Row:
    """The row of an operation that completed after `count` invocations."""
    return Row(invoke, invoke_seq, record, seq, NEVER if record.outcome == "info" else count)


def open_row(invoke: Invoke, seq: int) -> Row:
    """The row of an operation that never completed."""
    return Row(invoke, seq, None, None, NEVER)


def element_count(record: Complete) -> int:
    """The approximate number of list elements in its micro-operations: a chunk's elements are limited."""
    return sum([len(mop.value) for mop in record.mops if type(mop.value) is list]) if record.mops else 0


def tables_of_rows(rows: Sequence[Row], names: Names) -> tuple[pa.Table, pa.Table]:
    """The rows of ops and of mops, in that order. Raises HistoryError that names the first inconsistent row."""
    return tables_of(rows, lambda some: (_ops_table(some), _mops_table(some, names)), _name)


def _mops_table(rows: Sequence[Row], names: Names) -> pa.Table:
    per_row = [_mops(row) for row in rows]
    every = list(chain.from_iterable(per_row))
    identify = names.id
    columns: dict[str, Sequence[object]] = {
        "op": [row.invoke.index for row, mops in zip(rows, per_row, strict=True) for _ in mops],
        "position": [position for mops in per_row for position in range(len(mops))],
        "table": [mop.table for mop in every],
        "f": [MOP_KINDS[mop.f] for mop in every],
        "lock": [mop.lock for mop in every],
        "key": pa.array(names.ids([mop.key for mop in every])),
        "value": [None if _is_read_of_list(mop) else identify(mop.value) for mop in every],
        "read": _reads([mop.value if mop.f == "r" and type(mop.value) is list else None for mop in every], names),
    }
    return table_of("mops", columns)


def _reads(lists: list[list[Json] | None], names: Names) -> pa.ListArray:
    """The lists read, with ids for their elements."""
    elements = names.ids(list(chain.from_iterable(filter(None, lists))))
    ends = accumulate([0 if one is None else len(one) for one in lists], initial=0)
    is_missing = pa.array([one is None for one in lists], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(elements, pa.int64()), mask=is_missing)


def _mops(row: Row) -> tuple[MicroOp, ...]:
    """The operation's micro-operations: those of its completion, or of its invocation if the completion has none."""
    done = row.complete.mops if row.complete is not None else None
    return (row.invoke.mops or ()) if done is None else done


def _is_read_of_list(mop: MicroOp) -> bool:
    """True for a read of a list, or one without a result."""
    return mop.f == "r" and (mop.value is None or isinstance(mop.value, list))


def same_request(requested: tuple[MicroOp, ...] | None, answered: tuple[MicroOp, ...]) -> bool:
    """True if both are the same transaction, except for the results of reads."""
    if requested is None or len(requested) != len(answered):
        return False
    for a, b in zip(requested, answered, strict=True):
        if a.f != b.f or a.table != b.table or a.lock != b.lock or not is_identical(a.key, b.key):
            return False
        if a.f != "r" and not is_identical(a.value, b.value):
            return False
    return True


def is_identical(one: Json, other: Json) -> bool:
    """True if both are the same JSON. To Python, 1 equals 1.0 and true."""
    if one is other:
        return True
    if type(one) in {int, str}:
        return type(one) is type(other) and one == other
    return one == other and json_text(one) == json_text(other)


def _name(row: Row) -> str:
    completed = "" if row.complete_seq is None else f" or {row.complete_seq}"
    return f"record {row.invoke_seq}{completed}, operation {row.invoke.index}"


def _ops_table(rows: Sequence[Row]) -> pa.Table:
    requested = [row.invoke for row in rows]
    done = [Complete(row.invoke.index, 0, "info") if row.complete is None else row.complete for row in rows]
    is_open = [row.complete is None for row in rows]
    columns: dict[str, list[object]] = {
        "index": [each.index for each in requested],
        "process": [each.process for each in requested],
        "outcome": [OUTCOMES[each.outcome] for each in done],
        "f": [each.f for each in requested],
        "invoke_value": [None if each.value is None else _json(each.value) for each in requested],
        "value": [None if each.value is None else _json(each.value) for each in done],
        "intended_ns": [each.intended_ns for each in requested],
        "invoke_ns": [each.time_ns for each in requested],
        "complete_ns": [None if no else each.time_ns for no, each in zip(is_open, done, strict=True)],
        "after": [row.after for row in rows],
        "invoke_seq": [row.invoke_seq for row in rows],
        "complete_seq": [row.complete_seq for row in rows],
        "is_txn": [each.mops is not None for each in requested],
        "has_result": [each.mops is not None for each in done],
        "cluster": [None] * len(rows),
    }
    for name in ("node", "error", "txn", "start_ts", "read_ts", "commit_ts", "epoch"):
        columns[name] = list(map(attrgetter(name), done))
    return table_of("ops", {name: columns[name] for name in SCHEMAS["ops"].names})


def _json(value: Json) -> str:
    return json_text(value).decode()
