"""Reads the Parquet files of a history: damage becomes a HistoryError that names the file."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.core.errors import HistoryError
from harness.record.formats.parquet.schema import SCHEMAS

ROWS_AT_ONCE: Final = 1_000
_REASON_MAX: Final = 300
# The exceptions of pyarrow on damaged files, and those caused by the values that it returns for them.
_DAMAGE: Final = (OSError, pa.ArrowException, ValueError, KeyError, TypeError, OverflowError, msgspec.MsgspecError)


def read_table(folder: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """One whole table of a history. Raises HistoryError that names the file."""
    path = folder / f"{name}.parquet"
    # `ParquetFile` and not `read_table`, which loads pandas.
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        needed = columns or SCHEMAS[name].names
        _require_columns(path, needed, file.schema_arrow.names)
        return file.read(columns=needed)


def rows_among(folder: Path, name: str, column: str, values: Sequence[int]) -> list[Mapping[str, Any]]:
    """The rows in which that column has one of the values. Only their row groups are read whole."""
    path = folder / f"{name}.parquet"
    if not values:
        return []
    needed, found = SCHEMAS[name].names, list[Mapping[str, Any]]()
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        _require_columns(path, needed, file.schema_arrow.names)
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[column])[column]
            is_meant = pc.is_in(keys, value_set=pa.array(values, keys.type))
            if pc.any(is_meant).as_py():
                found += file.read_row_group(group, columns=needed).filter(is_meant).to_pylist()
    return found


def row_count(folder: Path, name: str) -> int:
    """The number of rows in a table of a history. Raises HistoryError that names the file."""
    path = folder / f"{name}.parquet"
    with reading(path):
        return int(pq.read_metadata(path).num_rows)


def groups_of(folder: Path, name: str, columns: list[str], *, coded: Sequence[str] = ()) -> Iterator[pa.Table]:
    """Those columns, one row group at a time; `coded` ones as dictionaries. Raises HistoryError that names the file."""
    path = folder / f"{name}.parquet"
    with (
        reading(path),
        pq.ParquetFile(path, read_dictionary=list(coded), page_checksum_verification=True) as file,
    ):
        _require_columns(path, columns, file.schema_arrow.names)
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=columns).combine_chunks()


def rows_of(folder: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of one table, read one row group at a time. Raises HistoryError that names the file.

    As Python objects, rows take many times their memory, so few are made at once.
    """
    path = folder / f"{name}.parquet"
    needed = SCHEMAS[name].names
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        _require_columns(path, needed, file.schema_arrow.names)
        for group in range(file.num_row_groups):
            for batch in file.read_row_group(group, columns=needed, use_threads=False).to_batches(ROWS_AT_ONCE):
                yield from batch.to_pylist()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of reading `path` into a HistoryError that names it."""
    try:
        yield
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:_REASON_MAX] or type(error).__name__
        raise HistoryError(f"{path}: cannot be read as Parquet ({reason}); restore it, or judge the journal") from None


def _require_columns(path: Path, needed: list[str], found: list[str]) -> None:
    missing = [column for column in needed if column not in found]
    if missing:
        raise HistoryError(f"{path}: has no column {missing[0]!r}; is it a history of Seamark's?")


def has_transactions(history: Path) -> bool:
    """True if some operation is a transaction. Raises HistoryError if the file is damaged."""
    return bool(pc.any(read_table(history, "ops", ["is_txn"])["is_txn"]).as_py())
