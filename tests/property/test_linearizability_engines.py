"""Spark and threads judge registers alike: the same findings, fingerprints, witnesses and facts."""

from pathlib import Path
from random import Random

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.engine.spark import SparkEngine
from checkers.history.registers import Register
from checkers.linearizability.check import Limits, check
from checkers.linearizability.deeds import RegisterOp
from harness.core.record import Json
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.registers.histories import correct, records, spoiled

pytestmark = pytest.mark.spark
LIMITS = (Limits(), Limits(first=3, shared=100), Limits(first=2, shared=2))


@pytest.mark.parametrize("model", ["register", "cas-register"])
def test_spark_and_threads_say_the_same(spark: SparkEngine, tmp_path: Path, model: str) -> None:
    draw = Random(5)
    lives: dict[Json, list[RegisterOp]] = {f"k{key}": correct(draw, model, count=12) for key in range(40)}
    lives |= {f"x{key}": spoiled(draw, correct(draw, model, count=12)) for key in range(10)}
    write_history(records(lives), tmp_path / "history")
    answers = set()
    for limits in LIMITS:
        for register in (Register(), Register(initial=0, is_initial_known=True, nil="absent")):
            ours = check(tmp_path / "history", Context(engine=LocalEngine(3), register=register), limits)
            assert check(tmp_path / "history", Context(engine=spark, register=register), limits) == ours
            answers.add((bool(ours.findings), bool(ours.unknown), ours.facts["undecided"] == 0))
    assert len(answers) > 1
