from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.core.columns import EVENTS_COLUMNS, MOPS_COLUMNS, NAMED, NEVER, OPS_COLUMNS
from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, Probe, StreamEvent
from harness.record.formats.parquet import operations
from harness.record.formats.parquet.parquet import is_history, read_table, records_of, write_history


def invoke(index: int, *mops: MicroOp) -> Invoke:
    return Invoke(index, index, index, index, "txn", None, mops)


def append(key: Json, value: Json) -> MicroOp:
    return MicroOp("append", key, value)


def test_files_have_the_columns_that_checkers_know(tmp_path: Path) -> None:
    write_history([invoke(0), StreamEvent(0, "s", 0, 0, "row")], tmp_path / "h")
    for name, columns in (("ops", OPS_COLUMNS), ("mops", MOPS_COLUMNS), ("events", EVENTS_COLUMNS)):
        schema = pq.read_schema(tmp_path / "h" / f"{name}.parquet")
        for column, kind in columns.items():
            field = schema.field(column)
            found = "list<int64>" if str(field.type).startswith("list<") else str(field.type)
            assert found + ("?" if field.nullable else "") == kind, column


def test_after_is_the_first_index_invoked_after_the_completion(tmp_path: Path) -> None:
    records: list[Evidence] = [
        invoke(0),
        invoke(1),
        Complete(1, 5, "ok", None, ()),
        invoke(2),
        Complete(0, 6, "fail"),
        Complete(2, 7, "info"),
        invoke(3),
        Probe(8, "n", "m", 1),
        invoke(4),
        Complete(4, 9, "ok", None, ()),
    ]
    write_history(records, tmp_path / "h")
    ops = read_table(tmp_path / "h", "ops").sort_by("index")
    assert ops["after"].to_pylist() == [3, 2, NEVER, NEVER, 5]
    assert ops["outcome"].to_pylist() == [1, 0, 2, 2, 0]
    assert ops["complete_ns"].to_pylist() == [6, 5, 7, None, 9]
    assert ops["invoke_seq"].to_pylist() == [0, 1, 3, 6, 8]
    assert ops["complete_seq"].to_pylist() == [4, 2, 5, None, 9]


def test_small_integers_are_their_own_ids_and_all_else_is_named(tmp_path: Path) -> None:
    keys: list[Json] = [7, NAMED - 1, NAMED, -1, "7", 7.0, True, None, [7], "7", {"b": 1, "a": 2}, {"a": 2, "b": 1}]
    write_history([invoke(0, *(append(key, 1) for key in keys))], tmp_path / "h")
    ids = read_table(tmp_path / "h", "mops")["key"].to_pylist()
    assert ids[:2] == [7, NAMED - 1]
    assert [each - NAMED for each in ids[2:]] == [0, 1, 2, 3, 4, 5, 6, 2, 7, 7]
    names = read_table(tmp_path / "h", "names")
    assert names["json"].to_pylist() == [str(NAMED), "-1", '"7"', "7.0", "true", "null", "[7]", '{"a":2,"b":1}']


def test_a_read_of_nothing_is_not_a_read_without_result(tmp_path: Path) -> None:
    read = MicroOp("r", "x")
    done = Complete(0, 1, "ok", None, (MicroOp("r", "x", []), MicroOp("r", "x", [1]), MicroOp("r", "x", 5)))
    write_history([invoke(0, read, read, read), done, invoke(1, read)], tmp_path / "h")
    mops = read_table(tmp_path / "h", "mops")
    assert mops["read"].to_pylist() == [[], [1], None, None]
    assert mops["value"].to_pylist() == [None, None, 5, None]


def test_row_groups_of_operations_and_their_parts_are_aligned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "GROUP_OPS", 4)
    records: list[Evidence] = []
    for index in range(11):
        mops = (append("x", index), append("y", index))
        records += (
            [invoke(index, *mops)] if index == 3 else [invoke(index, *mops), Complete(index, 9, "ok", None, mops)]
        )
    write_history(records, tmp_path / "h")
    ops, mops = (pq.ParquetFile(tmp_path / "h" / f"{name}.parquet") for name in ("ops", "mops"))
    assert ops.num_row_groups == mops.num_row_groups
    seen = []
    for group in range(ops.num_row_groups):
        indexes = ops.read_row_group(group)["index"].to_pylist()
        assert mops.read_row_group(group)["op"].to_pylist() == [index for index in indexes for _ in range(2)]
        assert indexes == sorted(indexes)
        seen += indexes
    assert sorted(seen) == list(range(11))
    assert list(records_of(tmp_path / "h")) == records


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([invoke(1)], "record 0: operation 1 was invoked, 0 is the next index"),
        ([invoke(0), invoke(0)], "record 1: operation 0 was invoked, 1 is the next index"),
        ([Complete(0, 1, "ok")], "record 0: operation 0 completes, but it is not open"),
        (
            [invoke(0), Complete(0, 1, "ok"), Complete(0, 2, "ok")],
            "record 2: operation 0 completes, but it is not open",
        ),
        (
            [invoke(0, append("x", 1)), Complete(0, 1, "ok", None, (append("x", 2),))],
            "record 1: operation 0 completes as another transaction",
        ),
    ],
)
def test_records_that_make_no_sense_leave_nothing_behind(records: list[Evidence], problem: str, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=problem):
        write_history(records, tmp_path / "h")
    assert list(tmp_path.iterdir()) == []


def test_a_history_that_was_there_stays_if_the_new_one_makes_no_sense(tmp_path: Path) -> None:
    write_history([invoke(0)], tmp_path / "h")
    with pytest.raises(HistoryError):
        write_history([invoke(1)], tmp_path / "h")
    assert is_history(tmp_path / "h")
    assert list(records_of(tmp_path / "h")) == [invoke(0)]


@pytest.mark.parametrize("name", ["ops", "mops", "events", "faults", "states", "probes", "marks", "names"])
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    write_history([invoke(0, append("x", 1))], tmp_path / "h")
    path = tmp_path / "h" / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(HistoryError, match=rf"{name}\.parquet: cannot be read as Parquet .*; restore it, or judge the"):
        list(records_of(tmp_path / "h"))
