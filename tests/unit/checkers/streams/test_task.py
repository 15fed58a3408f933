"""One task: what it read of a stream is gone when it has judged it."""

import gc
import weakref

from checkers.history.streams import StreamLog
from checkers.streams.task import judged
from tests.worlds.streams.cases import contract
from tests.worlds.streams.generator import damaged
from tests.worlds.streams.language import deliveries_of, source_of


def test_columns_are_freed_before_the_next_check_without_a_collection_of_cycles() -> None:
    # Facts of a view may refer to it: the columns of a long stream lived on while the watermarks were checked.
    declared = contract()
    log, source = damaged(7, declared)
    deliveries, writes = deliveries_of(log), source_of(source)
    alive = [weakref.ref(deliveries.position), weakref.ref(writes.position)]
    gc.collect()
    gc.disable()
    try:
        outcome = judged(StreamLog("", ("s0", "s1"), ("s0", "s1"), ()), deliveries, writes, declared)
        del deliveries, writes
        assert all(ref() is None for ref in alive)
    finally:
        gc.enable()
    assert outcome.facts["events"] > 0
