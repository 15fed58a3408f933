"""The requests of clients to a coordinator, and its answers."""

from typing import Literal

from msgspec import Struct

from clusters.parts.client import Refused, Unclear
from harness.core.record import Json, MicroOp

BOUND_TOO_HIGH = "its bound stayed above all timestamps"
ROLLED_BACK_ALIVE = "rolled back by others while its heartbeats were answered"


class Transact(Struct, frozen=True, tag=True):
    """A request to carry out a transaction: reads see one snapshot, appends take effect together."""

    mops: tuple[MicroOp, ...]


class StaleRead(Struct, frozen=True, tag=True):
    """A request for the values of these keys so many milliseconds ago, from any replica."""

    keys: tuple[Json, ...]
    age_ms: int


class Restore(Struct, frozen=True, tag=True):
    """A request for the values of these keys in the log backup, at the latest timestamp to which it can be restored."""

    keys: tuple[Json, ...]


class Flashback(Struct, frozen=True, tag=True):
    """A request to bring back the values of an earlier timestamp, the latest that watermarks allow.

    For each row a read of its present incarnation, which shows what is undone, and an append to the next one, which
    begins it (rows/incarnations.py).
    """

    mops: tuple[MicroOp, ...]


class Restored(Struct, frozen=True, tag=True):
    """A request for what the flashbacks have brought back which began these incarnations."""

    keys: tuple[Json, ...]


class Reshape(Struct, frozen=True, tag=True):
    """Change the region of that key: split it there, merge it with its left neighbour, or let another store lead."""

    kind: Literal["split", "merge", "transfer"]
    key: Json


class Begun(Struct, frozen=True, tag=True):
    """The region is split, or frozen for its merge, or its leader has given up."""


class Seen(Struct, frozen=True, tag=True):
    """The answer to these reads: the values of these keys at that timestamp."""

    read_ts: int
    keys: tuple[Json, ...]
    elements: tuple[tuple[Json, ...], ...]


class Done(Struct, frozen=True, tag=True):
    """The transaction is committed; its reads have their results. Without a commit timestamp it changed nothing."""

    start_ts: int
    commit_ts: int | None
    mops: tuple[MicroOp, ...]


# Types of shared parts that clients get: a container's codec needs these.
WIRE = (Refused, Unclear)
