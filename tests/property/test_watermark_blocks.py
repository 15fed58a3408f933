"""A log that is judged a block of keys at a time has the edges and witnesses of the whole log, on random worlds."""

from collections.abc import Callable

import numpy as np
import pytest

from checkers.columns.blocks import Block, by_part
from checkers.watermarks.blocks import blocks, by_marks, edges_of, once, packed, repeated
from checkers.watermarks.edges import Links, WatermarkEdges, watermark_edges, with_quiet
from harness.core.columns import Deliveries, Int64s, SourceWrites
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import deliveries_of, events, source_of, writes
from tests.worlds.streams.observed import broken, observed, spoiled
from tests.worlds.streams.sources import KINDS

COUNT = count(10)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)


def rows_of(parts: list[Links]) -> list[tuple[int, ...]]:
    return sorted(
        row
        for links in parts
        for row in zip(*(c.tolist() for c in (links.op, links.mark, links.version, links.row)), strict=True)
    )


def torn(found: list[WatermarkEdges]) -> list[int]:
    """The watermarks that newly contain two keys of one operation, from what the blocks newly contain."""
    return joined(repeated, [packed(each.new) for each in found], len(found[0].marks.rows))


def joined(work: Callable[[Int64s], Int64s], parts: list[Int64s], count: int) -> list[int]:
    """The work on a few words at a time."""
    return [word for some in by_marks(work, parts, count=count, threads=2, block_rows=5) for word in some.tolist()]


def words(links: Links) -> list[int]:
    """Each edge once, in the order of watermarks."""
    return sorted({mark << 32 | op for mark, op in zip(links.mark.tolist(), links.op.tolist(), strict=True)})


def torn_by_definition(whole: WatermarkEdges, source: SourceWrites) -> list[int]:
    keys: dict[tuple[int, int], set[int]] = {}
    for mark, version in zip(whole.new.mark.tolist(), whole.new.version.tolist(), strict=True):
        keys.setdefault((mark, int(source.op[version])), set()).add(int(source.key[version]))
    return sorted({mark for (mark, _), of in keys.items() if len(of) > 1})


def union(parts: list[Int64s]) -> list[int]:
    return sorted({number for part in parts for number in part.tolist()})


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_have_the_edges_of_the_whole(kind: str) -> None:
    block_count = torn_count = 0
    for seed in SEEDS:
        for one in map(observed, [*spoiled(kind, seed), broken(seed, kind)]):
            deliveries, source = deliveries_of(list(one.log)), source_of(list(one.writes))
            whole = with_quiet(watermark_edges(deliveries, source, one.contract), source)
            parts = blocks(deliveries, source, block_rows=12)
            found = [with_quiet(edges_of(deliveries, source, one.contract, part), source) for part in parts]
            assert rows_of([each.into for each in found]) == rows_of([whole.into]), f"seed {seed}"
            assert rows_of([each.out for each in found]) == rows_of([whole.out]), f"seed {seed}"
            assert union([each.witnesses for each in found]) == whole.witnesses.tolist()
            assert union([each.passing.mark for each in found]) == union([whole.passing.mark])
            for of_blocks, links in (
                ([each.into for each in found], whole.into),
                ([each.out for each in found], whole.out),
            ):
                assert joined(once, [packed(each) for each in of_blocks], len(whole.marks.rows)) == words(links)
            is_torn = torn(found)
            assert is_torn == torn_by_definition(whole, source)
            counts = sum((order_counts(each) for each in found), start=np.zeros(3, np.int64))
            assert counts.tolist() == order_counts(whole).tolist()
            block_count, torn_count = block_count + len(parts), torn_count + len(is_torn)
    assert block_count > 2 * COUNT
    assert torn_count > 0


def order_counts(edges: WatermarkEdges) -> Int64s:
    return np.array([edges.order.counts[name] for name in ("lists", "positions", "none")], np.int64)


def small() -> tuple[Deliveries, SourceWrites]:
    log = "open@0 x=1@1.0 y=2@1.1 w@1 z=3@2 w@2 s2 open@0 x=1@1.0 w@1"
    return deliveries_of(events(log)), source_of(writes("ok@1 x=1 y=2; ok@2 z=3"))


def test_a_small_log_is_one_block() -> None:
    deliveries, source = small()
    (only,) = blocks(deliveries, source)
    assert only.events.tolist() == list(range(len(deliveries.kind)))
    assert only.writes.tolist() == [0, 1, 2]


def test_each_block_has_all_that_is_of_no_key_and_each_write_stands_in_one() -> None:
    deliveries, source = small()
    parts = blocks(deliveries, source, block_rows=3)
    assert len(parts) == 3
    assert sorted(np.concatenate([part.writes for part in parts]).tolist()) == [0, 1, 2]
    of_no_key = {row for row, key in enumerate(deliveries.key.tolist()) if deliveries.kind[row] != 1}
    assert all(of_no_key <= set(part.events.tolist()) for part in parts)


def test_threads_keep_the_order_of_blocks() -> None:
    deliveries, source = small()
    parts = blocks(deliveries, source, block_rows=1)

    def look(block: Block) -> list[tuple[int, ...]]:
        return rows_of([edges_of(deliveries, source, contract(), block).into])

    assert list(by_part(look, parts, threads=3)) == list(by_part(look, parts, threads=1))
