"""A long log cut by keys: what one block of keys needs of the log and of its source, and the edges of all blocks.

Every edge of a watermark is about one key (checkers/watermark_edges.py, theory of operation), so a log can be judged a
block of keys at a time: the events of these keys beside all that are of no key, so that each block has all watermarks,
by the same numbers. That bounds the memory, lets several threads work, and keeps what is searched in the cache.

Only a torn unit is about several keys: which watermark newly contains which operations is told by block, and joined.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Final, TypeVar

import numpy as np

from checkers.ragged import distinct, groups
from checkers.stream_index import Places, first_rows
from checkers.watermark_edges import Links, WatermarkEdges, watermark_edges
from checkers.watermark_versions import UNKNOWN
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

R = TypeVar("R")

BLOCK_ROWS: Final = 1 << 20  # Events and writes of one block, about: some hundred megabytes of columns.


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of the log, and of the source, that stand in one block, both ascending."""

    events: Int64s
    writes: Int64s


def blocks(deliveries: Deliveries, writes: SourceWrites, block_rows: int = BLOCK_ROWS) -> list[Block]:
    """The blocks of a log; events of keys that the source does not have stand in none. O(n)."""
    is_event = np.isin(deliveries.kind, (ROW, BACKFILL)) & (deliveries.key != NEVER)
    count = (int(np.count_nonzero(is_event)) + len(writes.op)) // block_rows + 1
    if count == 1:
        return [Block(np.arange(len(deliveries.kind)), np.arange(len(writes.op)))]
    keys = distinct(writes.key)
    places = Places(keys)
    # Several keys with all their rows make a block; ids that lie close often were written together.
    of_write = places.of(writes.key) * count // len(keys)
    rows = np.flatnonzero(is_event)
    code = places.of(deliveries.key[rows])
    rows, code = rows[code >= 0], code[code >= 0]
    of_all = _of_all(deliveries, is_event)
    return [
        Block(distinct(np.append(of_all, rows[events])), own)
        for events, own in zip(groups(code * count // len(keys), count), groups(of_write, count), strict=True)
    ]


def edges_of(deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, block: Block) -> WatermarkEdges:
    """The edges of one block, by the rows of the whole log and of the whole source."""
    inside = watermark_edges(_events_of(deliveries, block.events), _writes_of(writes, block.writes), contract)
    return replace(inside, into=_outside(inside.into, block), out=_outside(inside.out, block))


def by_block(work: Callable[[Block], R], parts: list[Block], *, threads: int) -> Iterator[R]:
    """The work on each block, in their order, by so many threads."""
    if threads == 1 or len(parts) == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, parts)


def _of_all(deliveries: Deliveries, is_event: Bools) -> Int64s:
    """The rows that stand in every block: those of no key of their own, and where sessions begin."""
    result = ~is_event
    result[first_rows(deliveries.subscriber, deliveries.session)] = True
    return np.flatnonzero(result)


def _events_of(deliveries: Deliveries, rows: Int64s) -> Deliveries:
    return Deliveries(**{field.name: getattr(deliveries, field.name)[rows] for field in fields(Deliveries)})


def _writes_of(writes: SourceWrites, rows: Int64s) -> SourceWrites:
    return SourceWrites(**{field.name: getattr(writes, field.name)[rows] for field in fields(SourceWrites)})


def _outside(links: Links, block: Block) -> Links:
    row = np.where(links.row == UNKNOWN, UNKNOWN, np.append(block.events, UNKNOWN)[links.row])
    return replace(links, version=block.writes[links.version], row=row)
