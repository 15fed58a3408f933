"""Validates a history folder against the checkers' assumptions.

Checksums detect accidents; this detects malformed files.

1. Each table has its columns, with their types, and no null where none may be.
2. Operations have the indexes 0 to n - 1, each once, ascending inside a row group; an operation ends after it began.
3. Records have the positions 0 to N - 1 in the journal, each once.
4. Row groups of ops and mops are about the same operations, and micro-operations follow the order of operations.
5. Keys and values are integers or have a name, and each name is JSON in our canonical form.
6. Faults and marks are records of ours.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.arrow import flags, integers, validity
from harness.core.columns import INFO, NAMED, NEVER, OK, READ, WRITE, Bools, Int64s
from harness.core.errors import HistoryError
from harness.record.formats.parquet.limits import require_bounded
from harness.record.formats.parquet.names import json_text, json_value
from harness.record.formats.parquet.rows import faults_and_marks
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.tables import ROWS_AT_ONCE, reading

_AHEAD = 2  # Decoded row groups that wait, and threads that decode them.
_OPS = ["index", "outcome", "after", "invoke_seq", "complete_seq", "is_txn"]
_MOPS = ["op", "position", "f", "key", "value", "read"]
_WITH_SEQ = ("events", "faults", "probes", "states", "marks")


def validate(folder: Path) -> None:
    """Raise HistoryError that names the file, unless the rules above hold. Reads one row group at a time."""
    counts = {name: _row_count(folder, name) for name in SCHEMAS}
    require_bounded(folder)
    limit = NAMED + counts["names"]
    _check_names(folder)
    for _ in faults_and_marks(folder):
        pass
    op_count = counts["ops"]
    completed = sum(len(group) - group["complete_seq"].null_count for group in _groups(folder, "ops", ["complete_seq"]))
    positions = _Once(op_count + completed + sum(counts[name] for name in _WITH_SEQ), "position")
    indexes = _Once(op_count, "operation")
    mops = _groups(folder, "mops", _MOPS)
    for number, ops in enumerate(_groups(folder, "ops", _OPS)):
        path = folder / "ops.parquet"
        index = _ints(ops, "index")
        indexes.take(index, path)
        positions.take(_ints(ops, "invoke_seq"), path)
        positions.take(_ints(ops, "complete_seq"), path)
        _require((np.diff(index) > 0).all(), path, f"row group {number}: operations are out of order")
        _check_ends(ops, op_count, path)
        its_mops = next(mops, None)
        _require(its_mops is not None, folder / "mops.parquet", f"has no row group {number}")
        _check_mops(its_mops, index[flags(ops["is_txn"])], limit, folder / "mops.parquet")
    _require(next(mops, None) is None, folder / "mops.parquet", "has more row groups than ops.parquet")
    for name in _WITH_SEQ:
        ids = [column for column in ("key", "value") if SCHEMAS[name].get_field_index(column) >= 0]
        ids = [column for column in ids if SCHEMAS[name].field(column).type == pa.int64() and name != "probes"]
        for rows in _groups(folder, name, ["seq", *ids]):
            path = folder / f"{name}.parquet"
            positions.take(_ints(rows, "seq"), path)
            for column in ids:
                _require(_are_ids(_ints(rows, column), limit), path, f"a {column} has no name")


class _Once:
    """Numbers from 0 up, each required exactly once. Memory: a byte for each."""

    def __init__(self, count: int, word: str) -> None:
        self._is_taken: Bools = np.zeros(count, np.bool_)
        self._word = word

    def take(self, numbers: Int64s, path: Path) -> None:
        _require(
            _are_between(numbers, 0, len(self._is_taken) - 1), path, f"a {self._word} is beyond the number of records"
        )
        low, high = numbers.min(initial=len(self._is_taken)), numbers.max(initial=0)
        around = self._is_taken[low : high + 1]
        before = np.count_nonzero(around)
        around[numbers - low] = True
        is_new = np.count_nonzero(around) == before + len(numbers)
        _require(is_new, path, f"a {self._word} is there twice")


def _check_ends(ops: pa.Table, count: int, path: Path) -> None:
    """Require that `after` is beyond the operation itself, and NEVER for an unclear outcome."""
    index, outcome, after = _ints(ops, "index"), _ints(ops, "outcome"), _ints(ops, "after")
    _require(_are_between(outcome, OK, INFO), path, "an outcome is neither ok nor fail nor info")
    is_end = np.where(outcome == INFO, after == NEVER, (index < after) & (after <= count))
    _require(is_end.all(), path, "an operation ends before it begins, or after all is over")
    is_open = ~validity(ops["complete_seq"])
    _require((outcome[is_open] == INFO).all(), path, "an operation has an outcome, but no completion")
    invoked = _ints(ops, "invoke_seq")[~is_open]
    _require((invoked < _ints(ops, "complete_seq")).all(), path, "an operation completes before it is invoked")


def _check_mops(mops: pa.Table, index: Int64s, limit: int, path: Path) -> None:
    """Require rules 4 and 5 for micro-operations; `index` has the transactions of the same row group."""
    op, position, f = _ints(mops, "op"), _ints(mops, "position"), _ints(mops, "f")
    is_first = np.diff(op, prepend=-1) != 0
    is_known = np.isin(op[is_first], index).all()
    _require(is_known, path, "a micro-operation belongs to no transaction of its row group")
    follows = position[1:] == position[:-1] + 1
    in_order = (np.diff(op) >= 0).all() and (follows | is_first[1:]).all() and (position[is_first] == 0).all()
    _require(in_order, path, "micro-operations are out of order")
    _require(_are_between(f, READ, WRITE), path, "a micro-operation is neither a read nor an append nor a write")
    has_value, has_read = validity(mops["value"]), validity(mops["read"])
    _require((has_value | (f == READ)).all(), path, "an append or a write has no value")
    _require((~has_read | ((f == READ) & ~has_value)).all(), path, "a micro-operation has values of two kinds")
    elements = mops["read"].combine_chunks().flatten()
    _require(elements.null_count == 0, path, "a read has an element without a value")
    for ids in (_ints(mops, "key"), _ints(mops, "value"), integers(elements)):
        _require(_are_ids(ids, limit), path, "a key or value has no name")


def _check_names(folder: Path) -> None:
    path = folder / "names.parquet"
    following = NAMED
    for names in _groups(folder, "names", ["id", "json"]):
        expected = np.arange(following, following + len(names))
        _require(np.array_equal(_ints(names, "id"), expected), path, "names are not numbered in order")
        following += len(names)
        with reading(path):
            for text in chain.from_iterable(batch["json"].to_pylist() for batch in names.to_batches(ROWS_AT_ONCE)):
                _require(json_text(json_value(text)) == text.encode(), path, f"{text[:60]!r} is no name of ours")


def _row_count(folder: Path, name: str) -> int:
    """The number of rows of a table, if rule 1 holds: a non-nullable column cannot store a null."""
    path = folder / f"{name}.parquet"
    with reading(path), pq.ParquetFile(path) as file:
        for wanted in SCHEMAS[name]:
            place = file.schema_arrow.get_field_index(wanted.name)
            found = file.schema_arrow.field(place) if place >= 0 else None
            is_fine = found is not None and found.type == wanted.type and (wanted.nullable or not found.nullable)
            _require(is_fine, path, f"column {wanted.name!r} is {_described(found)}, not {_described(wanted)}")
        return int(file.metadata.num_rows)


def _described(field: pa.Field | None) -> str:
    return "missing" if field is None else f"{field.type}{' or null' if field.nullable else ''}"


def _groups(folder: Path, name: str, columns: list[str]) -> Iterator[pa.Table]:
    """The row groups of a table, with those columns only. The next ones are decoded while one is in use."""
    path = folder / f"{name}.parquet"
    with reading(path), pq.ParquetFile(path) as file:
        count = file.num_row_groups
    with reading(path), ThreadPoolExecutor(_AHEAD) as pool:
        waiting = deque[Future[pa.Table]]()
        for group in range(count):
            waiting.append(pool.submit(_group, path, group, columns))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _group(path: Path, group: int, columns: list[str]) -> pa.Table:
    """One row group. Each thread opens its own file."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read_row_group(group, columns=columns, use_threads=False)
        table.validate(full=True)
        return table


def _ints(table: pa.Table, column: str) -> Int64s:
    """The non-null values of a column."""
    return integers(table[column].drop_null())


def _are_between(numbers: Int64s, low: int, high: int) -> bool:
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() <= high)


def _are_ids(numbers: Int64s, limit: int) -> bool:
    return _are_between(numbers, 0, limit - 1)


def _require(condition: bool | np.bool_, path: Path, problem: str) -> None:
    if not condition:
        raise HistoryError(f"{path}: {problem}; write the history again from its journal")
