"""Messages between stores and captures, and a capture's records on disk.

A capture's request is a session with one region: messages of another request are dropped.
"""

from typing import Literal

from msgspec import Struct

from clusters.ticdc.rows.messages import Elements
from clusters.ticdc.shape import Key


class Subscribe(Struct, frozen=True, tag=True):
    """Send this region's changes above `after`, as that request."""

    request: int
    region: int
    after: int


class RowEvent(Struct, frozen=True, tag=True):
    """A change of a key, as it was applied; `committed` is a version found by the scan, with its value.

    `elements` None: the lock was written again without its value, by a heartbeat.
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
    """The scan is over: watermarks may follow.

    `determined`: large transactions whose first commit was applied before this session, and which have locks left.
    """

    request: int
    determined: tuple[tuple[int, int], ...] = ()


class ResolvedTs(Struct, frozen=True, tag=True):
    """For each request: everything at or below that timestamp has been sent. (request, timestamp)"""

    resolved: tuple[tuple[int, int], ...]


class SessionError(Struct, frozen=True, tag=True):
    """The session of that request is over."""

    request: int
    reason: str


class Flush(Struct, frozen=True, tag=True):
    """In the downstream's log: rows in their order, as (commit_ts, start_ts, key, value), up to a watermark."""

    rows: tuple[tuple[int, int, Key, Elements], ...]
    watermark: int


class SessionNumber(Struct, frozen=True, tag=True):
    """On a capture's disk: the highest session that it may have used."""

    number: int


NOT_LEADER = "not-leader"
CONGESTED = "congested"
