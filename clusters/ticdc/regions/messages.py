"""Regions, the commands and requests that change them, and the envelopes of requests to a region.

Requests travel in a `ToRegion`, answers in a `FromRegion`. Every request may come twice, or late.
"""

from typing import Literal

from msgspec import Struct

from clusters.ticdc.rows.messages import (
    BackupGet,
    Changing,
    CheckStatus,
    Commit,
    CopyOf,
    Get,
    Heartbeat,
    Local,
    Lock,
    Prewrite,
    Resolve,
    RowCommand,
    RowReply,
    Shown,
    StaleGet,
    Write,
)
from clusters.ticdc.shape import REGIONS, SLOTS, Key, slot_of
from harness.core.machine import NodeId


class Region(Struct, frozen=True, tag=True):
    """The slots from `start` up to `end`, without it. Whatever changes them raises the version.

    Of each slot the versions of the regions that own it one after the other rise.
    """

    id: int
    version: int
    start: int
    end: int

    def holds(self, key: Key) -> bool:
        """True if the key lives here."""
        return self.start <= slot_of(key) < self.end


FIRST = tuple(
    Region(number, 0, -(-number * SLOTS // REGIONS), -(-(number + 1) * SLOTS // REGIONS)) for number in range(REGIONS)
)


class Contents(Struct, frozen=True, tag=True):
    """All that is in a region. `absorbed`: the regions that have become a part of it."""

    locks: tuple[Lock, ...] = ()
    writes: tuple[tuple[Key, tuple[Write, ...]], ...] = ()
    rolled_back: tuple[tuple[Key, int], ...] = ()
    absorbed: tuple[int, ...] = ()


class Found(Struct, frozen=True, tag=True):
    """In the log of a region that a split has made, as its first entry: its range, and what is in it."""

    region: Region
    contents: Contents


class Split(Struct, frozen=True, tag=True):
    """In the log: the slots from `slot` up become a region of that number."""

    slot: int
    child: int


class Freeze(Struct, frozen=True, tag=True):
    """In the log: nothing changes here any more, as the region becomes a part of the one to its left."""


class Absorb(Struct, frozen=True, tag=True):
    """In the log: that frozen region, which is to the right, becomes a part of this one."""

    source: Region
    contents: Contents


RegionCommand = Found | Split | Freeze | Absorb
Command = RowCommand | RegionCommand


class SplitAt(Struct, frozen=True, tag=True):
    """Split the region, so that the key begins a new one of that number."""

    key: Key
    child: int


class MergeLeft(Struct, frozen=True, tag=True):
    """Make the region a part of the one to its left."""


class MergeInto(Struct, frozen=True, tag=True):
    """From the leader of a frozen region: make it a part of the receiver's."""

    source: Region
    contents: Contents


class TransferLeader(Struct, frozen=True, tag=True):
    """Let that store lead the region."""

    to: NodeId


class Reshaped(Struct, frozen=True, tag=True):
    """The region is split, frozen for its merge, or its leader has given up; or that cannot be, here and now."""

    outcome: Literal["done", "refused"]


class NotLeader(Struct, frozen=True, tag=True):
    """This replica does not lead the region; that store may."""

    leader: NodeId | None


class Moved(Struct, frozen=True, tag=True):
    """There is no such region of that version here, but those."""

    regions: tuple[Region, ...]


Reshaping = SplitAt | MergeLeft | MergeInto
Ordered = Changing | Reshaping  # Requests that become commands of the log.
Request = Ordered | Shown | Local | TransferLeader
Reply = RowReply | Reshaped | NotLeader | Moved


class ToRegion(Struct, frozen=True, tag=True):
    """A request to a region of that version."""

    number: int
    region: int
    version: int
    body: Request


class FromRegion(Struct, frozen=True, tag=True):
    """The answer to the request of that number."""

    number: int
    body: Reply


class KnownRegions(Struct, frozen=True, tag=True):
    """On a store's disk: the regions of which it has a replica, and those that became parts of others."""

    present: tuple[int, ...]
    absorbed: tuple[int, ...]


def keys_of(body: Request) -> tuple[Key, ...]:
    """The keys that a request concerns; none if it is about the region as a whole."""
    match body:
        case Prewrite():
            return tuple(mutation.key for mutation in body.mutations)
        case Commit() | Resolve() | Get() | CopyOf() | StaleGet() | BackupGet():
            return body.keys
        case Heartbeat() | CheckStatus():
            return (body.primary,)
        case SplitAt():
            return (body.key,)
        case _:
            return ()
