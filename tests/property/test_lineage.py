"""The check of logs that split and merge agrees with its slow twin on drawn streams, right and spoiled.

SEAMARK_FUZZ_COUNT says how many; the default is what `make test` has time for.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from checkers.engine.protocol import Context
from checkers.lineage.check import check
from harness.core.promises import StreamContract
from harness.core.record import StreamEvent
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.oracles.lineage import anomalies
from tests.worlds.lineages import drawn, spoiled
from tests.worlds.run_cases import ENGINE

COUNT = count(120)


def found(events: list[StreamEvent], folder: Path, *, is_group: bool) -> set[str]:
    consumers: Literal["each", "group"] = "group" if is_group else "each"
    contract = StreamContract(
        closed="<=", cut="position", position="offset", consumers=consumers, unit_layout="one-order"
    )
    write_history(events, folder)
    return {each.anomaly for each in check(folder, Context(engine=ENGINE, contract=contract)).findings}


def test_a_stream_that_is_as_it_should_be_raises_no_alarm(tmp_path: Path) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT // 3):
        events = drawn(Random(seed))
        assert found(events, tmp_path / str(seed), is_group=bool(seed % 2)) == set(), seed


def test_the_check_and_its_twin_find_the_same(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        draw = Random(seed)
        events, is_group = spoiled(drawn(draw), draw), bool(seed % 2)
        expected = anomalies(events, is_group=is_group)
        assert found(events, tmp_path / str(seed), is_group=is_group) == expected, seed
        seen.update(expected)
    if COUNT >= 120:
        missing = {"lost-successor", "key-space-overlap", "order-inversion", "split-unit", "unit-order"} - {*seen}
        assert missing == set(), seen


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 3))
def test_streams_are_drawn_by_their_seeds(seed: int) -> None:
    assert drawn(Random(seed)) == drawn(Random(seed))
