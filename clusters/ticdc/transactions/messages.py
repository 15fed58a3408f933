"""The requests of clients to a coordinator, and its answers."""

from msgspec import Struct

from harness.core.record import Json, MicroOp

ROLLED_BACK_ALIVE = "rolled back by others while its heartbeats were answered"


class Transact(Struct, frozen=True, tag=True):
    """A transaction: reads see one snapshot, appends take effect together."""

    mops: tuple[MicroOp, ...]


class StaleRead(Struct, frozen=True, tag=True):
    """A read of these keys as they were so many milliseconds ago, from any replica."""

    keys: tuple[Json, ...]
    age_ms: int


class Restore(Struct, frozen=True, tag=True):
    """What a restore of these keys from the log backup brings back, at the latest timestamp that it allows."""

    keys: tuple[Json, ...]


class Flashback(Struct, frozen=True, tag=True):
    """What a flashback of these keys leaves, to the latest timestamp that watermarks allow."""

    keys: tuple[Json, ...]


class Seen(Struct, frozen=True, tag=True):
    """The values of the keys at that timestamp, in the order of the request."""

    read_ts: int
    elements: tuple[tuple[Json, ...], ...]


class Done(Struct, frozen=True, tag=True):
    """It is committed; reads have their results. Without a commit timestamp it changed nothing."""

    start_ts: int
    commit_ts: int | None
    mops: tuple[MicroOp, ...]


class Refused(Struct, frozen=True, tag=True):
    """It certainly did not happen, and will not."""

    reason: str


class Unclear(Struct, frozen=True, tag=True):
    """Nobody knows: its commit was sent, and not answered."""

    reason: str
