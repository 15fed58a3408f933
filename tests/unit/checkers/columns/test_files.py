"""Parquet files are read by column and by row, and damage names the file."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.columns.files import footer, opened, opened_operations, read_columns, read_group, reading
from harness.core.errors import HistoryError
from tests.worlds.damage import flip_bit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = pa.table({"n": [1, 2, 3, 4], "who": ["a", "b", None, "a"], "more": [0, 0, 0, 0]})
    pq.write_table(table, tmp_path / "ops.parquet", row_group_size=3, write_page_checksum=True)
    return tmp_path / "ops.parquet"


def test_columns_come_in_the_given_order_for_all_rows(path: Path) -> None:
    assert read_columns(path, ["who", "n"]).to_pydict() == {"who": ["a", "b", None, "a"], "n": [1, 2, 3, 4]}
    assert read_group(path, 1, ["n"]).to_pydict() == {"n": [4]}
    assert footer(path).num_row_groups == 2


def test_rows_are_chosen_by_columns_that_need_not_be_read(path: Path) -> None:
    assert read_columns(path, ["n"], who=["a"]).to_pydict() == {"n": [1, 4]}
    assert read_columns(path, ["n"], who=["a", "b"], n=[2, 4]).to_pydict() == {"n": [2, 4]}
    assert read_columns(path, ["n"], who=["z"]).to_pydict() == {"n": []}


def test_texts_come_as_dictionaries_only_where_these_are_wanted(path: Path) -> None:
    assert read_columns(path, ["who", "n"], n=[2, 4]).schema.field("who").type == pa.string()
    coded = read_columns(path, ["who", "n"], texts=["who"], n=[2, 4])
    assert pa.types.is_dictionary(coded.schema.field("who").type)
    assert coded.to_pydict() == {"who": ["b", "a"], "n": [2, 4]}


def test_of_a_row_group_without_a_chosen_row_nothing_else_is_read(path: Path) -> None:
    flip_bit(path, "n")
    assert read_columns(path, ["n"], who=["z"]).to_pydict() == {"n": []}


def test_a_file_without_row_groups_has_no_rows(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema({"n": pa.int64(), "who": pa.string()})).close()
    assert read_columns(tmp_path / "none.parquet", ["n"], who=["a"]).to_pydict() == {"n": []}


def test_a_column_that_is_not_there_is_damage(path: Path) -> None:
    for columns in (["n", "other"], ["other"]):
        with pytest.raises(HistoryError, match=r"ops\.parquet: cannot be read"):
            read_columns(path, columns)
        with pytest.raises(HistoryError, match=r"ops\.parquet, row group 1: cannot be read"):
            read_group(path, 1, columns)


def test_a_flipped_bit_in_a_page_is_damage_to_each_reader(path: Path) -> None:
    flip_bit(path, "n")
    (path.parent / "mops.parquet").write_bytes(path.read_bytes())
    with pytest.raises(HistoryError, match="cannot be read"):
        read_columns(path, ["n"])
    with pytest.raises(HistoryError, match="row group 0: cannot be read"):
        read_group(path, 0, ["n"])
    with pytest.raises(HistoryError, match="cannot be read"), opened(path) as file:
        file.read()
    with pytest.raises(HistoryError, match="cannot be read"), opened_operations(path.parent) as (ops, _):
        ops.read()


def test_errors_of_values_are_damage_if_they_are_expected(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"cannot be read \(soon\)"), reading(tmp_path, ValueError):
        raise ValueError("soon")
    with pytest.raises(ValueError, match="soon"), reading(tmp_path):
        raise ValueError("soon")
