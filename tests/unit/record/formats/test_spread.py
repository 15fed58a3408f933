"""Results of other processes: the same objects in the same order, and no file is left of them."""

import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from harness.record.formats.spread import ProcessEnded, in_turn, spread


def columns(size: int) -> tuple[int, pa.Table, "np.ndarray[tuple[int], np.dtype[np.int64]]", bytes]:
    """A result with so many rows, whose columns differ in the sizes of their items."""
    numbers = np.arange(size)
    lists = pa.array([[each] * (each % 3) for each in range(size)], pa.list_(pa.int64()))
    return size, pa.table({"small": pa.array(numbers % 7, pa.int8()), "lists": lists}), numbers, b"text"


def test_results_are_those_of_this_process_and_their_files_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sizes = [3, 0, 1_000, 1, 50_000, 0]
    with spread(columns, sizes) as results:
        found = list(results)
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [*tmp_path.iterdir()]
    with in_turn(columns, sizes) as results:
        for one, other in zip(found, results, strict=True):
            assert one[1].equals(other[1])
            assert np.array_equal(one[2], other[2])
            assert (one[0], one[3]) == (other[0], other[3])


def test_without_columns_a_result_is_whole() -> None:
    with spread(str, [1, 2]) as results:
        assert list(results) == ["1", "2"]


def ended_at_2(item: int) -> int:
    """That item; but at 2 the process ends, as if the system had taken its memory."""
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_process_that_is_killed_is_told_of_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ProcessEnded), spread(ended_at_2, range(100)) as results:
        list(results)
    assert not [*tmp_path.iterdir()]
