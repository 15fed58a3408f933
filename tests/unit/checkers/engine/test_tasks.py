"""Which histories are one task, and that the judges' order is kept."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checkers.engine import tasks
from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement
from tests.bench import generated


def judge(part: Path, context: Context) -> Judgement:
    witnesses = {"part": int(part.name), "threads": context.engine.parallelism}
    return Judgement(checker="parts", findings=(), witnesses=witnesses)


def judged(history: Path, count: int) -> list[tuple[int, int]]:
    parts = [history / str(number) for number in range(count)]
    found = tasks.judged(judge, parts, Context(engine=LocalEngine(3), whole=history))
    return [(each.witnesses["part"], each.witnesses["threads"]) for each in found]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    generated.write_slices(tmp_path, generated.slices(generated.Shape(count=600), slice_ops=200))
    return tmp_path


def test_each_part_of_a_small_history_is_judged_in_one_thread_of_a_task(history: Path) -> None:
    assert judged(history, 5) == [(number, 1) for number in range(5)]


def test_a_larger_history_is_judged_by_the_engine_itself(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "VALUES_OF_A_TASK", 599)
    assert judged(history, 2) == [(0, 3), (1, 3)]


def test_the_elements_that_were_read_make_a_history_large(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(pq.read_metadata(history / f"{name}.parquet").num_rows for name in ("ops", "mops"))
    monkeypatch.setattr(tasks, "VALUES_OF_A_TASK", rows)
    assert not tasks.is_small(history)


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert tasks.is_small(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.parquet").write_bytes(b"PAR1")
    with pytest.raises(HistoryError, match=r"events\.parquet: cannot be read"):
        tasks.is_small(tmp_path)
