"""Spark and threads judge the generations of a history alike, and each population in them."""

from pathlib import Path
from random import Random

import msgspec
import pytest

from checkers.engine import tasks
from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark import SparkEngine
from harness.core.record import Complete, Evidence
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.contexts import EPOCHS, by_check, context
from tests.worlds.epoch_histories import records

pytestmark = pytest.mark.spark


def without_one_append(evidence: list[Evidence]) -> list[Evidence]:
    """The same records, but reads do not see the first element of any key."""
    return [
        msgspec.structs.replace(
            each,
            mops=tuple(
                msgspec.structs.replace(mop, value=mop.value[1:]) if isinstance(mop.value, list) else mop
                for mop in each.mops
            ),
        )
        if isinstance(each, Complete) and each.mops is not None and each.index % 3 == 0
        else each
        for each in evidence
    ]


def judged(history: Path, engine: Engine) -> list[Judgement]:
    return list(by_check(history, context(*EPOCHS, engine=engine)).values())


@pytest.mark.parametrize("values", [tasks.VALUES_OF_A_TASK["spark"], 0], ids=["a task for each", "many tasks for each"])
def test_spark_and_threads_judge_generations_alike(
    spark: SparkEngine, tmp_path: Path, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(without_one_append(records(Random(1), restarts=1)), tmp_path / "history")
    monkeypatch.setitem(tasks.VALUES_OF_A_TASK, "spark", values)
    ours, theirs = judged(tmp_path / "history", spark), judged(tmp_path / "history", LocalEngine(2))
    assert ours == theirs
    assert {finding.checker for each in ours for finding in each.findings} >= {"serializability", "freshness"}


@pytest.mark.parametrize("values", [tasks.VALUES_OF_A_TASK["spark"], 0], ids=["a task for each", "many tasks for each"])
def test_spark_and_threads_judge_many_generations_at_once_alike(
    spark: SparkEngine, tmp_path: Path, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(records(Random(1), restarts=4), tmp_path / "history")
    monkeypatch.setitem(tasks.VALUES_OF_A_TASK, "spark", values)
    ours, theirs = judged(tmp_path / "history", spark), judged(tmp_path / "history", LocalEngine(2))
    assert ours == theirs
    assert {each.checker for each in ours if any(each.witnesses.values())} >= {"serializability", "freshness"}
    assert not any(each.findings for each in ours)
