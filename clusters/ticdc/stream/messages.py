"""Messages between stores and captures, and a capture's records on disk.

Each subscription of a region is a request with a number of its own; messages of an earlier request are dropped.
"""

from typing import Literal

from msgspec import Struct

from clusters.ticdc.regions.messages import Region
from clusters.ticdc.rows.messages import Elements
from clusters.ticdc.shape import Key
from harness.core.machine import NodeId


class Subscribe(Struct, frozen=True, tag=True):
    """Send the changes of the region of that version above `after`, as that request."""

    request: int
    region: int
    version: int
    after: int


class RowEvent(Struct, frozen=True, tag=True):
    """A change of a key. `committed` is a version that the scan found, with its value.

    `elements` is None if a heartbeat wrote the lock again, without its value.
    """

    kind: Literal["prewrite", "commit", "rollback", "committed"]
    key: Key
    start_ts: int
    commit_ts: int = 0
    elements: Elements | None = None
    generation: int = 0


class Entries(Struct, frozen=True, tag=True):
    """Changes, in order."""

    request: int
    events: tuple[RowEvent, ...]


class Initialized(Struct, frozen=True, tag=True):
    """From a store: the scan is over, and watermarks may follow.

    `determined`: large transactions whose first commit was applied before this session, and which have locks left.
    """

    request: int
    determined: tuple[tuple[int, int], ...] = ()


class ResolvedTs(Struct, frozen=True, tag=True):
    """From a store: for each request (request, timestamp), everything at or below that timestamp has been sent."""

    resolved: tuple[tuple[int, int], ...]


class SessionError(Struct, frozen=True, tag=True):
    """The session of that request is over. `regions`: as the store knows them; that store may lead the request's."""

    request: int
    reason: str
    regions: tuple[Region, ...] = ()
    leader: NodeId | None = None


class Flush(Struct, frozen=True, tag=True):
    """In the downstream's log: rows in their order, as (commit_ts, start_ts, key, value), up to a watermark."""

    rows: tuple[tuple[int, int, Key, Elements], ...]
    watermark: int


class SessionNumber(Struct, frozen=True, tag=True):
    """On a capture's disk: the highest session that it may have used."""

    number: int


NOT_LEADER = "not-leader"
CONGESTED = "congested"
RESHAPED = "reshaped"
