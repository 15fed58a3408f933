"""Regions, the commands and requests that change them, and the envelopes of requests to a region.

Requests travel in a `ToRegion`, answers in a `FromRegion`. Every request may come twice, or late.
"""

from typing import Literal, get_args

from msgspec import Struct

from clusters.parts.log_messages import Appended, AppendEntries, Entry, RequestVote, TimeoutNow, Vote, Voted
from clusters.ticdc.rows.messages import (
    BackupGet,
    Changing,
    CheckStatus,
    Commit,
    Get,
    Heartbeat,
    Local,
    Lock,
    PrepareFlashback,
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
    """The slots from `start` up to `end`, without it. Each change of them raises the version.

    A slot may have several owners one after the other: the versions of these rise, too.
    """

    id: int
    version: int
    start: int
    end: int

    def holds(self, key: Key) -> bool:
        """True if the region has the key's slot."""
        return self.start <= slot_of(key) < self.end


FIRST = tuple(
    Region(number, 0, -(-number * SLOTS // REGIONS), -(-(number + 1) * SLOTS // REGIONS)) for number in range(REGIONS)
)


class Contents(Struct, frozen=True, tag=True):
    """All locks, versions and records of a region. `absorbed` are the regions that have become a part of it."""

    locks: tuple[Lock, ...] = ()
    writes: tuple[tuple[Key, tuple[Write, ...]], ...] = ()
    rolled_back: tuple[tuple[tuple[Key, int], bool], ...] = ()
    absorbed: tuple[int, ...] = ()


class Found(Struct, frozen=True, tag=True):
    """The first entry in the log of a region that a split has made: its range and its contents."""

    region: Region
    contents: Contents


class Split(Struct, frozen=True, tag=True):
    """In the log: the slots from `slot` up become a new region, with the number `child`."""

    slot: int
    child: int


class Freeze(Struct, frozen=True, tag=True):
    """In the log: the region accepts no more changes, as it becomes a part of its left neighbour."""


class Absorb(Struct, frozen=True, tag=True):
    """In the log: the frozen region to the right, `source`, becomes a part of this one."""

    source: Region
    contents: Contents


RegionCommand = Found | Split | Freeze | Absorb
Command = RowCommand | RegionCommand
# What replicas of a region's log send and store: a container's codec needs the types with their commands.
WIRE = (Entry[Command], Vote, AppendEntries[Command], Appended, RequestVote, Voted, TimeoutNow)


class SplitAt(Struct, frozen=True, tag=True):
    """A request to split the region: a new one, with the number `child`, begins at the key."""

    key: Key
    child: int


class MergeLeft(Struct, frozen=True, tag=True):
    """A request to make the region a part of its left neighbour."""


class MergeInto(Struct, frozen=True, tag=True):
    """From the leader of a frozen region: a request to make it a part of the receiver's."""

    source: Region
    contents: Contents


class TransferLeader(Struct, frozen=True, tag=True):
    """A request to let that store lead the region."""

    to: NodeId


class Reshaped(Struct, frozen=True, tag=True):
    """The answer to a request to split, merge or transfer: it is carried out, or impossible here and now.

    A merge is then only begun: the region is frozen. After a transfer the leader has given up.
    """

    outcome: Literal["done", "refused"]


class NotLeader(Struct, frozen=True, tag=True):
    """The answer of a replica that does not lead the region; `leader` may."""

    leader: NodeId | None


class InFlashback(Struct, frozen=True, tag=True):
    """The answer of a leader whose region a flashback has closed: the request has to come again, later."""


class Moved(Struct, frozen=True, tag=True):
    """The answer of a store that has no such region of that version: the regions that it knows there."""

    regions: tuple[Region, ...]


Reshaping = SplitAt | MergeLeft | MergeInto
Ordered = Changing | Reshaping  # Requests that become commands of the log.
Request = Ordered | Shown | Local | TransferLeader
Reply = RowReply | Reshaped | NotLeader | InFlashback | Moved
# The same by type: `isinstance` compares with all types of a union, one after the other.
REGION_COMMANDS: frozenset[type] = frozenset(get_args(RegionCommand))
RESHAPING: frozenset[type] = frozenset(get_args(Reshaping))
SHOWN: frozenset[type] = frozenset(get_args(Shown))
LOCAL: frozenset[type] = frozenset(get_args(Local))


class ToRegion(Struct, frozen=True, tag=True):
    """A request to that version of a region."""

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
    """The keys in a request; none if it is about the region as a whole."""
    match body:
        case Prewrite():
            return tuple(mutation.key for mutation in body.mutations)
        case Commit() | Resolve() | PrepareFlashback() | Get() | StaleGet() | BackupGet():
            return body.keys
        case Heartbeat() | CheckStatus():
            return (body.primary,)
        case SplitAt():
            return (body.key,)
        case _:
            return ()
