"""Which engine a history gets, and when Spark starts."""

from pathlib import Path
from threading import Event

import pytest

from checkers.engine import spark
from checkers.engine.datasets import LocalEngine
from checkers.engine.tasks import value_count
from harness.core.errors import HistoryError
from harness.judging import engines
from harness.judging.engines import EngineFailed, EngineName, EngineStart, is_starting, may_be_large
from harness.record.store import HISTORY, JOURNAL
from tests.bench import generated


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shape = generated.Shape(count=200)
    generated.write_slices(tmp_path / HISTORY, generated.slices(shape, slice_ops=200))
    return tmp_path


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The masters with which Spark was to start. None ever starts here."""
    seen: list[str | None] = []

    def refused(_: Path, master: str | None, *__: object, **___: object) -> None:
        seen.append(master)
        raise RuntimeError("not in this test")

    monkeypatch.setattr(spark, "start_session", refused)
    return seen


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "VALUES_OF_THREADS", 0)
    monkeypatch.setattr(engines, "BYTES_OF_THREADS", 1)


def test_threads_judge_a_small_history_and_spark_never_starts(run: Path, starts: list[str | None]) -> None:
    with EngineStart("auto", first=run) as start:
        assert isinstance(start.engine_for(run / HISTORY), LocalEngine)
    assert starts == []


@pytest.mark.usefixtures("all_are_large")
def test_a_large_history_waits_for_spark(run: Path, starts: list[str | None]) -> None:
    with EngineStart("auto") as start:
        assert starts == []
        for _ in range(2):
            engine = start.engine_for(run / HISTORY)
            assert engine.name == "spark"
            with pytest.raises(EngineFailed, match="not in this test"):
                engine.over([])
    assert starts == [None]


@pytest.mark.usefixtures("all_are_large")
def test_only_who_needs_spark_waits_for_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_start, there = Event(), object()

    def started(*_: object, **__: object) -> object:
        may_start.wait()
        return there

    monkeypatch.setattr(spark, "start_session", started)
    monkeypatch.setattr(spark, "stop", lambda _: None)
    monkeypatch.setattr(spark, "SparkEngine", lambda _: LocalEngine(3))
    with EngineStart("auto") as start:
        engine = start.engine_for(run / HISTORY)
        assert is_starting(engine, is_awaited=False)
        may_start.set()
        assert not is_starting(engine, is_awaited=True)
        assert engine.parallelism == 3
        assert engine.over([1]).collect() == [1]


def test_a_start_that_is_over_before_it_began_lets_nobody_wait(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = EngineStart("spark")
    monkeypatch.setattr(start, "_is_over", True)
    with start, pytest.raises(EngineFailed, match="it was stopped"):
        start.engine_for(run / HISTORY).over([])


@pytest.mark.usefixtures("all_are_large")
def test_spark_starts_at_once_for_a_large_run(run: Path, starts: list[str | None]) -> None:
    with EngineStart("auto", first=run) as start:
        start._thread.join()
    assert starts == [None]


@pytest.mark.parametrize(("name", "master"), [("spark", None), ("auto", "spark://one:1"), ("spark", "spark://one:1")])
def test_a_spark_that_was_named_judges_the_smallest_history(
    name: EngineName, master: str | None, run: Path, starts: list[str | None]
) -> None:
    with EngineStart(name, master=master) as start, pytest.raises(EngineFailed):
        start.engine_for(run / HISTORY).over([])
    assert starts == [master]


def test_whoever_needs_spark_itself_gets_it_for_any_history(starts: list[str | None]) -> None:
    with EngineStart("auto") as start, pytest.raises(EngineFailed):
        start.engine()
    assert starts == [None]


@pytest.mark.usefixtures("all_are_large")
def test_threads_judge_everything_for_whoever_asks_for_them(run: Path, starts: list[str | None]) -> None:
    with EngineStart("local", first=run) as start:
        assert start.engine_for(run / HISTORY).name == start.engine().name == "local"
    assert starts == []


def test_the_values_make_a_history_large(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = value_count(run / HISTORY)
    assert values > 200  # The elements that were read count.
    for limit in (values, values - 1):
        monkeypatch.setattr(engines, "VALUES_OF_THREADS", limit)
        assert may_be_large(run) == may_be_large(run / HISTORY) == (limit < values)


def test_the_bytes_make_a_file_large_that_is_no_history_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BYTES_OF_THREADS", 4)
    file = tmp_path / JOURNAL
    assert not may_be_large(tmp_path)  # Nothing is there.
    for content in (b"123", b"1234"):
        file.write_bytes(content)
        assert may_be_large(file) == may_be_large(tmp_path) == (len(content) == 4)


def test_a_damaged_history_is_for_its_reader_to_name(run: Path) -> None:
    (run / HISTORY / "ops.parquet").write_bytes(b"PAR1")
    assert not may_be_large(run)
    with EngineStart("auto", first=run) as start, pytest.raises(HistoryError, match=r"ops\.parquet"):
        start.engine_for(run / HISTORY)
