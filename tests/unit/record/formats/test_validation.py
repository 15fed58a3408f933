"""Files whose checksums are right and whose contents are wrong. tests/fuzz/test_silly.py makes many more."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.core.columns import NAMED, NEVER
from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Invoke, Mark, MicroOp, StreamEvent
from harness.record.formats.load import load
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.parquet.validation import validate

ASKED = (MicroOp("append", "x", 1), MicroOp("r", 2))
RECORDS: list[Evidence] = [
    Invoke(0, 0, 0, 0, "txn", None, ASKED),
    Invoke(1, 1, 1, 1, "txn", None, ASKED),
    Complete(0, 2, "ok", None, (ASKED[0], MicroOp("r", 2, ["x", 4]))),
    StreamEvent(3, "s", 0, 0, "row", key="x", value=1),
    Complete(1, 4, "fail"),
    Invoke(2, 5, 5, 2, "write", "v"),
    Fault(6, 0, "begin", "cut", ("n1>n2",)),
    Mark(7, "healing", {"network": 1}),
]
Edit = Callable[[pa.Table], pa.Table]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_history(RECORDS, tmp_path / "history")
    return tmp_path / "history"


def cell(column: str, row: int, value: object) -> Edit:
    def edited(table: pa.Table) -> pa.Table:
        cells = table[column].to_pylist()
        cells[row] = value
        field = table.schema.field(column)
        place = table.schema.get_field_index(column)
        return table.set_column(
            place, field.with_nullable(field.nullable or None in cells), pa.array(cells, field.type)
        )

    return edited


def order(*rows: int) -> Edit:
    return lambda table: table.take(list(rows))


def test_what_was_written_is_valid(folder: Path) -> None:
    validate(folder)
    assert load(folder, folder).history == folder


@pytest.mark.parametrize(
    ("name", "edit", "problem"),
    [
        ("ops", cell("index", 1, 0), "operation is there twice"),
        ("ops", cell("index", 1, 7), "operation is beyond the number of records"),
        ("ops", order(1, 0, 2), "row group 0: operations are out of order"),
        ("ops", cell("outcome", 0, 3), "an outcome is neither ok nor fail nor info"),
        ("ops", cell("after", 0, 0), "an operation ends before it begins"),
        ("ops", cell("after", 0, 4), "or after all is over"),
        ("ops", cell("after", 1, NEVER), "an operation ends before it begins, or after all is over"),
        ("ops", cell("after", 2, 3), "an operation ends before it begins, or after all is over"),
        ("ops", cell("complete_seq", 0, None), "an operation has an outcome, but no completion"),
        ("ops", cell("invoke_seq", 2, 1), "a position is there twice"),
        ("ops", cell("invoke_seq", 2, -1), "a position is beyond the number of records"),
        ("ops", cell("process", 0, None), "column 'process' is int64 or null, not int64"),
        ("ops", lambda table: table.drop_columns(["after"]), "column 'after' is missing, not int64"),
        (
            "ops",
            lambda table: table.cast(table.schema.set(0, pa.field("index", pa.int32()))),
            "column 'index' is int32",
        ),
        ("mops", cell("op", 0, 2), "a micro-operation belongs to no transaction of its row group"),
        ("mops", order(1, 0, 2, 3), "micro-operations are out of order"),
        ("mops", cell("f", 0, 9), "neither a read nor an append nor a write"),
        ("mops", cell("value", 0, None), "an append or a write has no value"),
        ("mops", cell("read", 0, [1]), "a micro-operation has values of two kinds"),
        ("mops", cell("read", 1, [1, None]), "a read has an element without a value"),
        ("mops", cell("read", 1, [NAMED + 1]), "a key or value has no name"),
        ("mops", cell("key", 0, -1), "a key or value has no name"),
        ("events", cell("seq", 0, 0), "a position is there twice"),
        ("events", cell("key", 0, NAMED + 5), "a key has no name"),
        ("faults", cell("targets", 0, "[[1]]"), "Expected `str`, got `array`"),
        ("faults", cell("phase", 0, "middle"), "Invalid enum value 'middle'"),
        ("marks", cell("goals", 0, '{"a": 1.5}'), "Expected `int`, got `float`"),
        ("names", cell("id", 0, NAMED + 1), "names are not numbered in order"),
        ("names", cell("json", 0, " null"), "is no name of ours"),
        ("names", cell("json", 0, "nul"), "no JSON that can be read"),
    ],
)
def test_what_checkers_rely_on_is_checked_and_named(folder: Path, name: str, edit: Edit, problem: str) -> None:
    path = folder / f"{name}.parquet"
    pq.write_table(edit(pq.read_table(path)), path)
    with pytest.raises(HistoryError, match=problem) as caught:
        load(folder, folder)
    assert str(caught.value).startswith(f"{path}: ")


def test_row_groups_of_operations_and_their_parts_must_match(folder: Path) -> None:
    path = folder / "ops.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=1)
    with pytest.raises(HistoryError, match=r"belongs to no transaction of its row group|has no row group 1"):
        load(folder, folder)


def test_a_history_of_a_newer_seamark_is_refused(folder: Path) -> None:
    path = folder / "ops.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"seamark.schema": b"2"}), path)
    with pytest.raises(HistoryError, match="is of a newer Seamark than this one"):
        load(folder, folder)


def in_groups(path: Path, table: pa.Table, column: str) -> None:
    """Write the table with a row group for each of the three operations; mops of an operation may be none."""
    with pq.ParquetWriter(path, table.schema) as writer:
        for number in range(3):
            group = table.filter(pa.array([cell == number for cell in table[column].to_pylist()]))
            writer.write_table(group)


def test_positions_are_counted_over_all_row_groups(folder: Path) -> None:
    ops, mops = (pq.read_table(folder / f"{name}.parquet") for name in ("ops", "mops"))
    in_groups(folder / "ops.parquet", ops, "index")
    in_groups(folder / "mops.parquet", mops, "op")
    assert pq.read_metadata(folder / "ops.parquet").num_row_groups == 3
    validate(folder)
    in_groups(folder / "ops.parquet", cell("invoke_seq", 2, len(RECORDS))(ops), "index")
    with pytest.raises(HistoryError, match="a position is beyond the number of records"):
        validate(folder)
