"""Which histories, and which parts of them, are one task; and that the judges' order is kept."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from checkers.engine import tasks
from checkers.engine.datasets import Dataset, LocalEngine
from checkers.engine.protocol import Context
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement
from tests.bench import generated

T = TypeVar("T")


class Counted(LocalEngine):
    """Threads, with the number of items of each of their jobs."""

    def __init__(self) -> None:
        super().__init__(3)
        self.jobs: list[int] = []

    def over(self, items: Sequence[T]) -> Dataset[T]:
        self.jobs.append(len(items))
        return super().over(items)


def judge(part: Path, context: Context) -> Judgement:
    witnesses = {"part": int(part.name), "threads": context.engine.parallelism}
    return Judgement(checker="parts", findings=(), witnesses=witnesses)


def judged(parts: Sequence[Path], context: Context) -> list[tuple[int, int]]:
    found = tasks.judged(judge, [(part, context) for part in parts])
    return [(each.witnesses["part"], each.witnesses["threads"]) for each in found]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of 600 operations and 400 events, with parts 0, 1 and 2 of 200, 400 and 600 operations."""
    for part in range(3):
        shape = generated.Shape(count=200 * (part + 1))
        generated.write_slices(tmp_path / str(part), generated.slices(shape, slice_ops=200))
    for name in ("ops", "mops"):
        shutil.copy(tmp_path / "2" / f"{name}.parquet", tmp_path)
    # The check counts values, whatever they are.
    shutil.copy(tmp_path / "1" / "ops.parquet", tmp_path / "events.parquet")
    return tmp_path


def parts_of(history: Path) -> list[Path]:
    return [history / str(number) for number in range(3)]


@pytest.mark.parametrize(("tiny", "tasks_of"), [(0, 3), (1, 3), (1_000_000, 1)])
def test_all_small_parts_of_a_history_are_one_job_in_one_thread_each(
    history: Path, monkeypatch: pytest.MonkeyPatch, tiny: int, tasks_of: int
) -> None:
    monkeypatch.setattr(tasks, "_TINY", tiny)
    engine = Counted()
    assert judged(parts_of(history), Context(engine=engine, whole=history)) == [(0, 1), (1, 1), (2, 1)]
    assert engine.jobs == [tasks_of]


def test_tiny_parts_share_a_task_until_they_are_not_tiny_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_TINY", 10)
    assert tasks._grouped([0, 1, 2, 4, 5, 6], [4, 4, 4, 90, 20, 3, 6]) == [[0, 1], [2], [4], [5, 6]]
    assert tasks._grouped([], []) == []


def test_a_larger_part_is_judged_by_the_engine_itself(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, streams = (tasks.value_count(history / name) for name in ("0", "1", "none"))
    assert (one < two, streams) == (True, 0)
    monkeypatch.setitem(tasks.VALUES_OF_A_TASK, "local", 400 + one)
    engine = Counted()
    assert judged(parts_of(history)[::-1], Context(engine=engine, whole=history)) == [(2, 3), (1, 3), (0, 1)]
    assert engine.jobs == [1]


def test_without_a_small_part_there_is_no_job_of_tasks(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tasks.VALUES_OF_A_TASK, "local", 0)
    engine = Counted()
    assert judged(parts_of(history), Context(engine=engine, whole=history)) == [(0, 3), (1, 3), (2, 3)]
    assert engine.jobs == []


def test_the_streams_of_the_whole_history_count_for_each_part(history: Path) -> None:
    part = history / "0"
    assert tasks.size(part, Context(engine=LocalEngine(1), whole=history)) == tasks.value_count(part) + 400


def test_the_elements_that_were_read_are_values(history: Path) -> None:
    assert tasks.value_count(history / "0") > 200 + 5 * 200


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert tasks.value_count(tmp_path) == 0
    assert tasks.size(tmp_path, Context(engine=LocalEngine(1))) == 0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.parquet").write_bytes(b"PAR1")
    with pytest.raises(HistoryError, match=r"events\.parquet: cannot be read"):
        tasks.size(tmp_path, Context(engine=LocalEngine(1)))
