"""Spark and threads carry out the same kernels: the same edges, findings and fingerprints."""

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark import SparkEngine
from checkers.graph.edges import Edges, Inference, all_edges
from checkers.history.registers import ORDER
from checkers.history.transactions import Source as Operations
from checkers.history.transactions import chunks, select, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.transactions.partition import infer, shares
from harness.scenario.own_checks import Source
from tests.bench import generated
from tests.worlds import histories
from tests.worlds.drawn_transactions import randomness
from tests.worlds.registers import transactions as register_transactions

pytestmark = pytest.mark.spark

LOCAL = LocalEngine(2)
FORBIDDEN = frozenset({"G2-realtime", "G1-realtime", "internal", "lost-update", "duplicate-elements"})


def inferred_edges(inference: Inference) -> Edges:
    return inference.edges


def edges(sources: list[Operations], engine: Engine) -> list[tuple[int, ...]]:
    """All edges that an engine infers, in order."""
    follow = partial(infer, order=ORDER)
    inferred = engine.over(sources).shuffle(partial(shares, partitions=3), follow, partitions=3)
    every = all_edges(inferred.map(inferred_edges).collect())
    columns = (every.source, every.target, every.source_after, every.target_after, every.kinds)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def loaded_modules(_: int) -> tuple[list[str], set[str]]:
    """What a worker was told to load, and what it has."""
    return os.environ["SEAMARK_LOADED"].split(), set(sys.modules)


def test_a_worker_has_the_kernels_that_the_session_was_handed(spark: SparkEngine) -> None:
    [(told, has)] = spark.over([0]).map(loaded_modules).collect()
    assert told == ["checkers.transactions.check", "checkers.watermarks.check"]
    assert has >= {"checkers.watermarks.task", *told}


def test_kernels_may_be_in_modules_that_the_engine_carries(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have the module, and not the rest of its package, which does not load."""
    place = tmp_path / "brought" / "deep"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").touch()
    (place / "__init__.py").touch()
    (place / "work.py").write_text("from seamark import Check\n\ndef doubled(n):\n    return 2 * n, Check.__name__\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("brought.deep.work")
    files = Source("brought.deep").files()
    assert sorted(files) == ["brought/deep/__init__.py", "brought/deep/work.py"]
    (place.parent / "__init__.py").write_text("raise RuntimeError\n")
    for engine in (LOCAL, spark, spark):
        engine.carry(files)
        assert sorted(engine.over([1, 2]).map(module.doubled).collect()) == [(2, "Check"), (4, "Check")]


@pytest.mark.parametrize("seed", range(6))
def test_spark_and_threads_find_the_same_in_spoiled_histories(spark: SparkEngine, seed: int) -> None:
    draw = randomness(seed)
    kind = (histories, register_transactions)[seed % 2]
    operations = kind.spoiled(draw, kind.stale(draw, count=60, processes=6))
    whole = to_transactions(operations)
    sources: list[Operations] = [select(whole, np.arange(25)), select(whole, np.arange(25, 60))]
    options = Options(prohibited=(FORBIDDEN,), slice_ids=16, partitions=3)
    assert edges(sources, spark) == edges(sources, LOCAL)
    ours, theirs = check_sources(sources, spark, options), check_sources(sources, LOCAL, options)
    assert ours == theirs
    assert ours.findings or ours.unknown


@pytest.mark.parametrize("is_of_registers", [False, True])
def test_spark_reads_chunks_from_their_descriptors(
    spark: SparkEngine, tmp_path: Path, *, is_of_registers: bool
) -> None:
    whole = generated.transactions(20_000, seed=5, stale_permille=1)
    generated.write(tmp_path, generated.registers_of(whole) if is_of_registers else whole)
    sources = chunks(tmp_path)
    ours, theirs = check_sources(sources, spark), check_sources(sources, LOCAL)
    assert ours == theirs
    assert ours.findings
    assert len({finding.fingerprint for finding in ours.findings}) == len(ours.findings)


def test_a_history_that_was_written_anew_is_judged_anew(spark: SparkEngine, tmp_path: Path) -> None:
    generated.write(tmp_path, generated.transactions(5_000, seed=5))
    assert not check_sources(chunks(tmp_path), spark).findings
    generated.write(tmp_path, generated.transactions(5_000, seed=5, stale_permille=5))
    ours = check_sources(chunks(tmp_path), spark)
    assert ours == check_sources(chunks(tmp_path), LOCAL)
    assert ours.findings
