"""A log that is judged a block of keys at a time is judged like the whole: examples, witnesses, facts and views."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from checkers.columns.blocks import blocks
from checkers.streams.task import Outcome, judged
from harness.core.promises import StreamContract
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.cases import LOG, in_blocks_of, views
from tests.worlds.streams.drawn import SEEDS, broken, contracts
from tests.worlds.streams.language import Event, Write, deliveries_of, source_of
from tests.worlds.streams.observed import broken as damaged_world
from tests.worlds.streams.observed import observed, spoiled
from tests.worlds.streams.shapes import moved_about
from tests.worlds.streams.sources import KINDS
from tests.worlds.streams.spoiled_logs import spoiled as logs_spoiled
from tests.worlds.streams.spoiled_sessions import spoiled as snapshots_spoiled

MANY = settings(max_examples=count(20))
SPOILERS: tuple[Callable[[int, list[Event]], list[Event]], ...] = (
    logs_spoiled,
    snapshots_spoiled,
    lambda _, log: moved_about(log),
)
BLOCK_ROWS = (1, 5, 20)


def assert_alike(log: list[Event], source: list[Write], contract: StreamContract) -> Outcome:
    """What the whole log is told, once blocks of several sizes were told the same."""
    deliveries, writes = deliveries_of(log), source_of(source)
    whole = judged(LOG, deliveries, writes, contract)
    for block_rows in BLOCK_ROWS:
        with in_blocks_of(block_rows):
            parts = judged(LOG, deliveries, writes, contract, threads=2)
        assert parts.examples == whole.examples
        assert (parts.witnesses, parts.facts, parts.source) == (whole.witnesses, whole.facts, whole.source)
        assert parts.defect == whole.defect
        assert parts.summaries.keys() == whole.summaries.keys()
        for one, other in zip(views(parts), views(whole), strict=True):
            for name in one.__struct_fields__:
                for column in getattr(one, name).__struct_fields__:
                    np.testing.assert_array_equal(*(getattr(getattr(each, name), column) for each in (one, other)))
    return whole


@MANY
@given(SEEDS, contracts)
def test_blocks_say_what_the_whole_says(seed: int, contract: StreamContract) -> None:
    assert_alike(*broken(seed, contract, SPOILERS[seed % len(SPOILERS)]), contract)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_say_of_every_kind_of_source_what_the_whole_says(kind: str) -> None:
    found: Counter[str] = Counter()
    block_count = 0
    for seed in range(FIRST_SEED, FIRST_SEED + count(2)):
        for one in map(observed, [*spoiled(kind, seed), damaged_world(seed, kind)]):
            outcome = assert_alike(list(one.log), list(one.writes), one.contract)
            found.update(example.anomaly for example in outcome.examples)
            block_count += len(blocks(deliveries_of(list(one.log)), source_of(list(one.writes)), BLOCK_ROWS[0]))
    assert len(found) > 1
    assert block_count > count(2)


@MANY
@given(SEEDS, contracts)
def test_blocks_without_a_source_say_what_the_whole_says(seed: int, contract: StreamContract) -> None:
    log, _ = broken(seed, contract, SPOILERS[seed % len(SPOILERS)])
    assert_alike(log, [], contract)
