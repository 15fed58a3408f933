"""Parquet files that are small on disk and huge in memory: histories, each with one table that was made so.

Run as `python -m tests.worlds.bombs FOLDER` to write each of them into a folder of its own.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.columns import NAMED
from harness.core.record import Complete, Evidence, Fault, Invoke, Mark, MicroOp, Probe, State, StreamEvent
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.parquet.schema import SCHEMAS

MIB: Final = 1 << 20
TABLES: Final = tuple(SCHEMAS)
RECORDS: Final[tuple[Evidence, ...]] = (
    Mark(0, "load", {"network": 3}),
    Invoke(0, 0, 0, 0, "txn", None, (MicroOp("append", "x", 1), MicroOp("r", "x", None, "table", "lock"))),
    Complete(0, 1, "ok", None, (MicroOp("append", "x", 1), MicroOp("r", "x", [1], "table", "lock")), None, "n1"),
    Invoke(1, 2, 2, 1, "write", "v"),
    Complete(1, 3, "ok", "v"),
    StreamEvent(1, "s1", 0, 0, "row", "p", "x", 1, 5, 0),
    Fault(2, 0, "begin", "cut", ("n1>n2",), 3, "note"),
    Probe(2, "n1", "memory", 12),
    State(3, "n1", "log", "x", [1], 4, None),
)


def sound(folder: Path) -> Path:
    """A small history with rows in every table."""
    write_history(RECORDS, folder)
    return folder


def texts(folder: Path, *, count: int, mib: int) -> Path:
    """A history whose dictionary has so many texts of that size, all the same."""
    sound(folder)
    text = pa.array(['"' + "a" * (mib * MIB - 2) + '"'], pa.large_string())
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), text)
    _write(folder, "names", {"id": np.arange(NAMED, NAMED + count), "json": column})
    return folder


def repeated(folder: Path, name: str, column: str, *, rows: int, mib: int) -> Path:
    """A history with so many rows in that table, in which one column has one text: said once, and repeated."""
    sound(folder)
    text = pa.array(['"' + "a" * (mib * MIB - 2) + '"'], pa.string())
    _write(folder, name, {column: pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), text)}, rows)
    return folder


def rows(folder: Path, name: str, count: int, *, piece: int = 1 << 20) -> Path:
    """A history with so many rows in that table, which are numbered and else the same."""
    sound(folder)
    path = folder / f"{name}.parquet"
    table = pq.ParquetFile(path).read().slice(0, 1)
    number = table.column_names[0]
    first, table = table[number][0].as_py(), table.take(pa.array(np.zeros(piece, np.int8)))
    encodings = {"use_dictionary": table.column_names[1:], "column_encoding": {number: "DELTA_BINARY_PACKED"}}
    with pq.ParquetWriter(path, table.schema, compression="zstd", **encodings) as file:
        for begin in range(first, first + count, piece):
            numbers = pa.array(np.arange(begin, begin + piece))
            file.write_table(table.set_column(0, table.schema.field(0), numbers), row_group_size=piece)
    return folder


def lists(folder: Path, *, elements: int) -> Path:
    """A history in which one read returned a list of so many elements, all the same."""
    sound(folder)
    path = folder / "mops.parquet"
    mops = pq.ParquetFile(path).read()
    read = pa.ListArray.from_arrays(pa.array([0, 0, elements], pa.int32()), pa.array(np.zeros(elements, np.int64)))
    place = mops.schema.get_field_index("read")
    pq.write_table(mops.set_column(place, mops.schema.field(place), read), path, compression="zstd")
    return folder


def stream(path: Path, *, rows: int, mib: int) -> Path:
    """A change stream of somebody's with one text in all of its rows."""
    text = pa.array(["a" * (mib * MIB)], pa.large_string())
    numbers = pa.array(np.zeros(rows, np.int8))
    table = pa.table({"key": numbers, "position": numbers, "value": pa.DictionaryArray.from_arrays(numbers, text)})
    pq.write_table(table, path, compression="zstd", store_schema=False, row_group_size=rows)
    return path


MAPPING: Final = """one_session = true
[fields]
key = "key"
position = "position"
value = "value"
[stream]
closed = "<="
cut = "position"
position = "offset"
identity = "position+key"
"""


def _write(folder: Path, name: str, columns: dict[str, Any], rows: int | None = None) -> None:
    """Replace columns of a table, with so many rows of which the first is repeated."""
    path = folder / f"{name}.parquet"
    table = pq.ParquetFile(path).read().slice(0, 1)
    count = len(next(iter(columns.values()))) if rows is None else rows
    table = table.take(pa.array(np.zeros(count, np.int8)))
    for column, cells in columns.items():
        place = table.schema.get_field_index(column)
        field = pa.field(column, pa.array(cells).type, nullable=table.schema.field(place).nullable)
        table = table.set_column(place, field, pa.array(cells))
    pq.write_table(table, path, compression="zstd", store_schema=False, row_group_size=max(1, count))


BOMBS: Final[dict[str, Callable[[Path], Path]]] = {
    "three texts of 300 MB": lambda folder: texts(folder, count=3, mib=300),
    "one text of 400 MB": lambda folder: texts(folder, count=1, mib=400),
    "60 M rows": lambda folder: rows(folder, "names", 60 * MIB),
}


def main() -> None:
    """Write each of them into a folder of its own."""
    folder = Path(sys.argv[1])
    for number, bomb in enumerate(BOMBS.values()):
        print(bomb(folder / f"bomb{number}"))


if __name__ == "__main__":
    main()
