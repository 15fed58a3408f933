"""A long log cut by keys: the edges of one block (checkers/stream_blocks.py), by the rows of the whole log.

Every edge of a watermark is about one key (checkers/watermark_edges.py, theory of operation), and each block has all
watermarks, by the same numbers.

Only a torn unit is about several keys: which watermark newly contains which operations is told by block, and joined.
"""

from dataclasses import replace

import numpy as np

from checkers import stream_blocks
from checkers.stream_blocks import BLOCK_ROWS, Block, events_of, writes_of
from checkers.stream_index import first_rows
from checkers.watermark_edges import Links, WatermarkEdges, watermark_edges
from checkers.watermark_versions import NO_PLACES, UNKNOWN
from harness.core.columns import Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


def blocks(deliveries: Deliveries, writes: SourceWrites, block_rows: int = BLOCK_ROWS) -> list[Block]:
    """The blocks of a log, each with the rows with which sessions begin."""
    begins = first_rows(deliveries.subscriber, deliveries.session)
    return stream_blocks.blocks(deliveries, writes, block_rows, also=begins)


def edges_of(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, block: Block, elsewhere: Int64s = NO_PLACES
) -> WatermarkEdges:
    """The edges of one block, by the rows of the whole log and of the whole source; `elsewhere` are places of these."""
    inside = inner_edges(deliveries, writes, contract, block, elsewhere)
    return replace(inside, into=_outside(inside.into, block), out=_outside(inside.out, block))


def inner_edges(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, block: Block, elsewhere: Int64s = NO_PLACES
) -> WatermarkEdges:
    """The edges of one block, by its own rows, but for operations and watermarks."""
    places = elsewhere[block.writes] if len(elsewhere) else elsewhere
    return watermark_edges(events_of(deliveries, block.events), writes_of(writes, block.writes), contract, places)


def _outside(links: Links, block: Block) -> Links:
    row = np.where(links.row == UNKNOWN, UNKNOWN, np.append(block.events, UNKNOWN)[links.row])
    return replace(links, version=block.writes[links.version], row=row)
