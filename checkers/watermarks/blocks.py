"""The edges of one block of a long log (checkers/columns/blocks.py), renumbered to the whole log.

Every edge of a watermark is about one key (checkers/watermarks/edges.py, theory of operation), and each block has all
watermarks, with the same numbers.

Only a torn unit is about several keys. The operations that each watermark newly contains are found by block, and joined
as *packed int64*: a watermark and an operation, both below 2**31, in one number, ascending, so that all operations of
one watermark are neighbours.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns import blocks as stream_blocks
from checkers.columns.blocks import Block, by_part, events_of, writes_of
from checkers.columns.index import Places, first_rows, is_kind
from checkers.columns.runs import distinct, first_of_each
from checkers.engine.wire import Ints, carry, steps, sums
from checkers.graph.edges import Int32s
from checkers.watermarks.edges import Links, WatermarkEdges, watermark_edges
from checkers.watermarks.versions import NO_PLACES, UNKNOWN
from harness.core.columns import BACKFILL, NEVER, ROW, WATERMARK, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

R = TypeVar("R")

BLOCK_ROWS: Final = 1 << 17  # Edges take more columns than the rules of streams: fewer rows of them fit the cache.
_PER_MARK: Final = 4  # Each block has all watermarks: many of these make blocks larger, up to those of the rules.


class Pairs(Struct, frozen=True):
    """Operations and watermarks of one log, by their numbers in it, in four bytes each."""

    op: Int32s
    mark: Int32s

    @classmethod
    def of(cls, pairs: Int64s) -> "Pairs":
        """The pairs that those packed int64 hold."""
        return cls.between(pairs & 0xFFFFFFFF, pairs >> 32)

    @classmethod
    def between(cls, op: Int64s, mark: Int64s) -> "Pairs":
        """The pairs of those operations and watermarks."""
        return cls(op.astype(np.int32), mark.astype(np.int32))


def _of_pairs(pairs: Pairs) -> tuple[Callable[..., Pairs], tuple[object, ...]]:
    return _pairs, (steps(pairs.op), steps(pairs.mark))  # Sorted by watermark: both columns have small differences.


def _pairs(op: Ints, mark: Ints) -> Pairs:
    return Pairs(sums(op).astype(np.int32), sums(mark).astype(np.int32))


carry(Pairs, _of_pairs)


def blocks(deliveries: Deliveries, writes: SourceWrites, block_rows: int | None = None) -> list[Block]:
    """The blocks of a log, each including the first row of every session."""
    begins = first_rows(deliveries.subscriber, deliveries.session)
    marks = int(np.count_nonzero(deliveries.kind == WATERMARK))
    rows = block_rows or min(stream_blocks.BLOCK_ROWS, max(BLOCK_ROWS, _PER_MARK * marks))
    return stream_blocks.blocks(deliveries, writes, rows, also=begins)


def block_of(deliveries: Deliveries, writes: SourceWrites, op: Int64s) -> Block:
    """The block of all keys that those operations wrote; `op` ascends."""
    keys = distinct(writes.key[Places(op).of(writes.op) >= 0])
    is_event = is_kind(deliveries.kind, (ROW, BACKFILL)) & (deliveries.key != NEVER)
    is_meant = ~is_event | (Places(keys).of(deliveries.key) >= 0)
    is_meant[first_rows(deliveries.subscriber, deliveries.session)] = True
    return Block(np.flatnonzero(is_meant), np.flatnonzero(Places(keys).of(writes.key) >= 0))


def edges_of(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, block: Block, elsewhere: Int64s = NO_PLACES
) -> WatermarkEdges:
    """The edges of one block, renumbered to the whole log and source.

    `elsewhere` has a place for each write of the source.
    """
    inside = inner_edges(deliveries, writes, contract, block, elsewhere)
    into, out = _outside(inside.into, block), _outside(inside.out, block)
    return replace(inside, into=into, out=out, quiet=inside.quiet.of(block.writes))


def inner_edges(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, block: Block, elsewhere: Int64s = NO_PLACES
) -> WatermarkEdges:
    """The edges of one block, with its own row numbers; operations and watermarks have their global numbers."""
    places = elsewhere[block.writes] if len(elsewhere) else elsewhere
    return watermark_edges(events_of(deliveries, block.events), writes_of(writes, block.writes), contract, places)


def packed(links: Links) -> Int64s:
    """The watermark and the operation of each edge as a packed int64, ascending. Duplicates stay."""
    pairs: Int64s = links.mark << 32 | links.op
    pairs.sort()
    return pairs


def once(pairs: Int64s) -> Int64s:
    """The distinct values of an ascending column."""
    return pairs[first_of_each(pairs)]


def pairs_once(pairs: Int64s) -> Pairs:
    """The distinct ones of ascending packed pairs."""
    return Pairs.of(once(pairs))


def repeated(pairs: Int64s) -> Int64s:
    """The watermarks of packed pairs that occur more than once, ascending."""
    return distinct(pairs[1:][pairs[1:] == pairs[:-1]] >> 32)


def by_marks(
    work: Callable[[Int64s], R], parts: Sequence[Int64s], *, count: int, threads: int, block_rows: int = BLOCK_ROWS
) -> Iterator[R]:
    """The results of `work` on the packed pairs of all parts, merged, in order; computed in `threads` threads.

    Each call gets the pairs of some of the `count` watermarks, few enough to be sorted in the cache.
    """
    steps = sum(map(len, parts)) // block_rows + 1
    cuts = (np.arange(steps + 1) * count // steps) << 32
    bounds = [np.searchsorted(part, cuts).tolist() for part in parts]

    def of_step(step: int) -> R:
        rows = [part[at[step] : at[step + 1]] for part, at in zip(parts, bounds, strict=True)]
        return work(np.sort(np.concatenate(rows)))

    return by_part(of_step, range(steps), threads=threads)


def _outside(links: Links, block: Block) -> Links:
    row = np.where(links.row == UNKNOWN, UNKNOWN, np.append(block.events, UNKNOWN)[links.row])
    return replace(links, version=block.writes[links.version], row=row)
