"""The parts of a history are written once, however many checks need them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from checkers.engine.datasets import Dataset, LocalEngine
from harness.judging import generations
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.contexts import EPOCHS, by_check, context
from tests.worlds.epoch_histories import records

T = TypeVar("T")


class Counted(LocalEngine):
    """Threads, with the number of items of each of their jobs."""

    def __init__(self) -> None:
        super().__init__(2)
        self.jobs: list[int] = []

    def over(self, items: Sequence[T]) -> Dataset[T]:
        self.jobs.append(len(items))
        return super().over(items)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of calls of what writes parts, by name."""
    counts: Counter[str] = Counter()

    def counted(name: str) -> None:
        write = getattr(generations, name)

        def call(*arguments: object, **named: object) -> object:
            counts[name] += 1
            return write(*arguments, **named)

        monkeypatch.setattr(generations, name, call)

    counted("write_part")
    counted("write_stretches")
    return counts


@pytest.mark.parametrize("restarts", [2, 8])
def test_all_checks_share_the_stretches_and_the_last_generation(
    tmp_path: Path, calls: Counter[str], restarts: int
) -> None:
    write_history(records(Random(1), restarts=restarts), tmp_path / "history")
    found = by_check(tmp_path / "history", context(*EPOCHS))
    assert calls == {"write_part": 1, "write_stretches": 1}
    assert {judgement.facts.get("generations") for judgement in found.values()} >= {restarts + 1}


def test_the_stretches_and_the_last_generation_are_one_job_of_a_check(tmp_path: Path) -> None:
    write_history(records(Random(1), restarts=4), tmp_path / "history")
    engine = Counted()
    assert not any(
        judgement.findings for judgement in by_check(tmp_path / "history", context(*EPOCHS, engine=engine)).values()
    )
    assert len(engine.jobs) == 2  # Of serializability, and of that under lock: tiny parts are one task.


def test_in_other_processes_both_checks_of_transactions_are_one_job(tmp_path: Path) -> None:
    write_history(records(Random(1), restarts=4), tmp_path / "history")
    engine = Counted()
    here = by_check(tmp_path / "history", context(*EPOCHS))
    engine.name = "spark"
    assert by_check(tmp_path / "history", context(*EPOCHS, engine=engine)) == here
    assert len(engine.jobs) == 1
    assert any(here["serializability-locked"].witnesses.values())


def test_a_finding_leaves_each_generation_to_itself(tmp_path: Path, calls: Counter[str]) -> None:
    for seed in range(20):
        write_history(records(Random(seed), restarts=3, lag=2), tmp_path / str(seed))
        calls.clear()
        if by_check(tmp_path / str(seed), context(*EPOCHS))["cuts"].findings and calls["write_part"] > 2:
            return
    raise AssertionError("no seed has a broken cut in an early generation")
