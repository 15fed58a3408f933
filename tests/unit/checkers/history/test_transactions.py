"""Transactions from files and from plain Python."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.history.transactions import Append, Read, chunks, load, read_chunk, select, to_operations, to_transactions
from harness.core.errors import HistoryError
from tests.bench import generated
from tests.worlds.drawn_transactions import randomness
from tests.worlds.epoch_cases import Story
from tests.worlds.histories import stale
from tests.worlds.small_language import sequential


@settings(max_examples=50)
@given(seed=st.integers(0, 10**9))
def test_operations_survive_the_way_through_arrays(seed: int) -> None:
    operations = stale(randomness(seed), count=12)
    assert to_operations(to_transactions(operations)) == operations
    assert to_operations(select(to_transactions(operations), np.array([2, 5, 11]))) == [
        operations[2],
        operations[5],
        operations[11],
    ]


def test_operations_survive_the_way_through_files(tmp_path: Path) -> None:
    whole = to_transactions(sequential("ax1 rx1", "!ay2", "~ax3 rx?", "rx13 ry", ""))
    generated.write(tmp_path, whole)
    (chunk,) = chunks(tmp_path)
    assert chunk.op_count == 5
    assert to_operations(read_chunk(chunk)) == to_operations(load(whole))


def test_under_lock_every_append_stays_and_other_reads_are_left_out(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1 rx1 Ry", (7, 0))
    story.op("rx1", (7, 0))
    story.op("Rx1", (7, 0))
    (chunk,) = chunks(story.write(tmp_path), is_locked=True)
    x, y = ord("x"), ord("y")
    expected = [(Append(x, 1), Read(y, ())), (), (Read(x, (1,)),)]
    assert [operation.mops for operation in to_operations(read_chunk(chunk))] == expected


def test_a_history_without_its_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"ops\.parquet: cannot be read"):
        chunks(tmp_path)


def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    generated.write(tmp_path, generated.transactions(5_000, seed=3))
    path = tmp_path / "mops.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"mops\.parquet, row group 0: cannot be read"):
        read_chunk(chunks(tmp_path)[0])


def test_a_row_without_its_operation_is_refused(tmp_path: Path) -> None:
    generated.write(tmp_path, to_transactions(sequential("ax1", "rx1")))
    ops = pq.read_table(tmp_path / "ops.parquet")
    pq.write_table(ops.slice(0, 1), tmp_path / "ops.parquet")
    with pytest.raises(HistoryError, match="a row without its operation"):
        read_chunk(chunks(tmp_path)[0])
