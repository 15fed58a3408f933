"""Spark and threads find the same in the graph of watermarks: findings, fingerprints, witnesses and facts."""

from pathlib import Path

import msgspec
import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.spark import SparkEngine
from checkers.history.registers import Order
from checkers.watermarks.check import Options, check_source
from checkers.watermarks.cycles.steps import NAMES
from harness.core.columns import NEVER
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.spoilers import SPOILERS, journal
from tests.worlds.streams.worlds import world

ENOUGH = 4  # Classes.
MORE = count(0)  # Histories that are compared beside those that show a new class.
SEEDS = range(FIRST_SEED, FIRST_SEED + max(60, 3 * MORE))
OPTIONS = Options(forbidden=frozenset(NAMES), order=Order(commits=True), partitions=3, slice_ids=2)
pytestmark = pytest.mark.spark


def test_they_say_the_same_where_only_subscribers_order_versions(spark: SparkEngine, tmp_path: Path) -> None:
    for seed in SEEDS:
        bad = SPOILERS["missing"](world(seed, "locks", is_simple=True, subscribers=2), seed)
        if bad is None or any(w.value == NEVER for w in bad.world.writes):
            continue
        folder, contract = tmp_path / str(seed), msgspec.structs.replace(bad.world.contract, is_position_unique=False)
        write_history(journal(bad.world), folder)
        theirs = check_source(folder, folder, contract, LocalEngine(2), OPTIONS)
        if theirs.findings:
            assert check_source(folder, folder, contract, spark, OPTIONS) == theirs, f"seed {seed}"
            return
    pytest.fail("nothing was found: the comparison says little")


def test_spark_and_threads_say_the_same(spark: SparkEngine, tmp_path: Path) -> None:
    compared, more = set[str](), 0
    for seed in SEEDS:
        spoil = list(SPOILERS.values())[seed % len(SPOILERS)]
        bad = spoil(world(seed, "locks", is_simple=True, subscribers=2), seed)
        if bad is None or any(w.value == NEVER for w in bad.world.writes):
            continue
        folder = tmp_path / str(seed)
        write_history(journal(bad.world), folder)
        theirs = check_source(folder, folder, bad.world.contract, LocalEngine(2), OPTIONS)
        new = {finding.anomaly for finding in theirs.findings} - compared
        if new or more < MORE:
            assert check_source(folder, folder, bad.world.contract, spark, OPTIONS) == theirs, f"seed {seed}"
            compared, more = compared | new, more + 1
        if len(compared) >= ENOUGH and more >= MORE:
            return
    assert len(compared) >= 2, "too few classes were found: the comparison says little"
