"""Operations as rows: an invocation and its completion in one row of ops, its micro-operations in rows of mops.

Invocations are paired with completions as they come. A batch of rows goes out when enough operations have completed;
inside it rows are in order of index. What never completes goes out last, as `info`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa

from harness.core.columns import APPEND, FAIL, GROUP_ELEMENTS, GROUP_OPS, INFO, NEVER, OK, READ, WRITE
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, Json, MicroOp
from harness.formats.names import Names, are_plain, json_text
from harness.formats.schema import SCHEMAS, table_of, tables_of

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
    """Pairs and batches. `write` takes the two tables of one chunk."""

    def __init__(self, names: Names, write: Callable[[pa.Table, pa.Table], None]) -> None:
        self._names, self._write = names, write
        self._open: dict[int, tuple[Invoke, int]] = {}
        self._rows: list[Row] = []
        self._elements = 0
        self.count = 0

    def invoke(self, seq: int, record: Invoke) -> None:
        """Take an invocation. Raises HistoryError unless indexes count up from 0, and reads ask without answering."""
        if record.index != self.count:
            raise HistoryError(f"record {seq}: operation {record.index} was invoked, {self.count} is the next index")
        if record.mops and any([mop.value is not None and mop.f == "r" for mop in record.mops]):  # noqa: C419  Faster.
            raise HistoryError(f"record {seq}: operation {record.index} is invoked with the result of a read")
        self.count += 1
        self._open[record.index] = (record, seq)

    def complete(self, seq: int, record: Complete) -> None:
        """Take a completion. Raises HistoryError if it fits no open invocation, or changes what was asked for."""
        opened = self._open.pop(record.index, None)
        if opened is None:
            raise HistoryError(f"record {seq}: operation {record.index} completes, but it is not open")
        invoke, invoke_seq = opened
        if record.mops is not None and not same_request(invoke.mops, record.mops):
            raise HistoryError(
                f"record {seq}: operation {record.index} completes as another transaction than was invoked "
                "(its client is at fault: only the values of reads may differ)"
            )
        after = NEVER if record.outcome == "info" else self.count
        self._rows.append(Row(invoke, invoke_seq, record, seq, after))
        if record.mops:
            self._elements += sum([len(mop.value) for mop in record.mops if type(mop.value) is list])
        if len(self._rows) >= GROUP_OPS or self._elements >= GROUP_ELEMENTS:
            self._flush()

    def finish(self) -> None:
        """Write what is left, and what never completed."""
        self._rows.extend(Row(invoke, seq, None, None, NEVER) for invoke, seq in self._open.values())
        self._open = {}
        self._flush()

    def _flush(self) -> None:
        rows = sorted(self._rows, key=lambda row: row.invoke.index)
        self._rows, self._elements = [], 0
        self._write(*tables_of(rows, self._tables, _name))

    def _tables(self, rows: Sequence[Row]) -> tuple[pa.Table, pa.Table]:
        return _ops_table(rows), self._mops_table(rows)

    def _mops_table(self, rows: Sequence[Row]) -> pa.Table:
        per_row = [_mops(row) for row in rows]
        every = list(chain.from_iterable(per_row))
        identify = self._names.id
        columns: dict[str, Sequence[object]] = {
            "op": [row.invoke.index for row, mops in zip(rows, per_row, strict=True) for _ in mops],
            "position": [position for mops in per_row for position in range(len(mops))],
            "table": [mop.table for mop in every],
            "f": [MOP_KINDS[mop.f] for mop in every],
            "lock": [mop.lock for mop in every],
            "key": self._names.ids([mop.key for mop in every]),
            "value": [None if _is_read_of_list(mop) else identify(mop.value) for mop in every],
            "read": self._reads([mop.value if mop.f == "r" and type(mop.value) is list else None for mop in every]),
        }
        return table_of("mops", columns)

    def _reads(self, lists: list[list[Json] | None]) -> Sequence[object]:
        """The lists that were read, with ids for their elements."""
        if are_plain(list(chain.from_iterable(filter(None, lists)))):
            return lists
        return [None if elements is None else self._names.ids(elements) for elements in lists]


def _mops(row: Row) -> tuple[MicroOp, ...]:
    """What the operation did; what it asked for, where its completion does not say."""
    done = row.complete.mops if row.complete is not None else None
    return (row.invoke.mops or ()) if done is None else done


def _is_read_of_list(mop: MicroOp) -> bool:
    """Is it a read of a list, or one without result?"""
    return mop.f == "r" and (mop.value is None or isinstance(mop.value, list))


def same_request(asked: tuple[MicroOp, ...] | None, answered: tuple[MicroOp, ...]) -> bool:
    """Is that the same transaction, but for what its reads returned?"""
    if asked is None or len(asked) != len(answered):
        return False
    for a, b in zip(asked, answered, strict=True):
        if a.f != b.f or a.table != b.table or a.lock != b.lock or not is_identical(a.key, b.key):
            return False
        if a.f != "r" and not is_identical(a.value, b.value):
            return False
    return True


def is_identical(one: Json, other: Json) -> bool:
    """Are they the same JSON? To Python, 1 equals 1.0 and true."""
    if one is other:
        return True
    if type(one) in {int, str}:
        return type(one) is type(other) and one == other
    return one == other and json_text(one) == json_text(other)


def _name(row: Row) -> str:
    completed = "" if row.complete_seq is None else f" or {row.complete_seq}"
    return f"record {row.invoke_seq}{completed}, operation {row.invoke.index}"


def _ops_table(rows: Sequence[Row]) -> pa.Table:
    asked = [row.invoke for row in rows]
    done = [Complete(row.invoke.index, 0, "info") if row.complete is None else row.complete for row in rows]
    is_open = [row.complete is None for row in rows]
    columns: dict[str, list[object]] = {
        "index": [each.index for each in asked],
        "process": [each.process for each in asked],
        "outcome": [OUTCOMES[each.outcome] for each in done],
        "f": [each.f for each in asked],
        "invoke_value": [None if each.value is None else _json(each.value) for each in asked],
        "value": [None if each.value is None else _json(each.value) for each in done],
        "intended_ns": [each.intended_ns for each in asked],
        "invoke_ns": [each.time_ns for each in asked],
        "complete_ns": [None if no else each.time_ns for no, each in zip(is_open, done, strict=True)],
        "after": [row.after for row in rows],
        "invoke_seq": [row.invoke_seq for row in rows],
        "complete_seq": [row.complete_seq for row in rows],
        "is_txn": [each.mops is not None for each in asked],
        "has_result": [each.mops is not None for each in done],
        "cluster": [None] * len(rows),
    }
    for name in ("node", "error", "txn", "start_ts", "read_ts", "commit_ts", "epoch"):
        columns[name] = list(map(attrgetter(name), done))
    return table_of("ops", {name: columns[name] for name in SCHEMAS["ops"].names})


def _json(value: Json) -> str:
    return json_text(value).decode()
