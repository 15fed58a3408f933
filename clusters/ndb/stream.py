"""What data nodes and subscribers say to each other, and the nodes of a group about what subscribers have.

A session is one subscription of one subscriber, to all data nodes at once: what belongs to another one is dropped.
"""

from msgspec import Struct

from harness.core.machine import NodeId
from harness.core.record import Json

LAGGING = "lagging"
LINK = "link"


class SubStart(Struct, frozen=True, tag=True):
    """From a subscriber: send me all changes from now on, as my session `session`."""

    session: int


class SubStartConf(Struct, frozen=True, tag=True):
    """This node sends everything from `first_epoch` on; `view_number`, `generation` and `started` are of its view.

    It comes again, without being asked for, if `first_epoch` has risen.

    `publishing_from` is the epoch from which on buckets are this node's: 0 if it started with the cluster, None if it
    is still to get them.
    """

    session: int
    generation: int
    view_number: int
    started: tuple[NodeId, ...]
    first_epoch: int
    publishing_from: int | None


class Row(Struct, frozen=True, tag=True):
    """A transaction changed a row: `value` is the last element that it appended."""

    session: int
    epoch: int
    bucket: int
    transid: int
    key: Json
    value: Json


class EpochComplete(Struct, frozen=True, tag=True):
    """The sender has sent all rows of that epoch in `buckets`, which may be none.

    `is_resent`: another node had some of these buckets in that epoch, and is dead. `is_missing_data`: its rows are not
    to be had any more.
    """

    session: int
    epoch: int
    buckets: tuple[int, ...]
    is_resent: bool = False
    is_missing_data: bool = False


class EpochAck(Struct, frozen=True, tag=True):
    """The subscriber has stored what an `EpochComplete` announced."""

    session: int
    epoch: int


class GroupAck(Struct, frozen=True, tag=True):
    """To the peer: every subscriber has stored all that I had to send, up to that epoch.

    `sessions` says for whom that holds: the subscriber, its session, and the first epoch that it gets from me.
    """

    epoch: int
    sessions: tuple[tuple[NodeId, int, int], ...]


class RemoveSubscriber(Struct, frozen=True, tag=True):
    """To all data nodes: that session has ended."""

    subscriber: NodeId
    session: int
    reason: str


class Disconnected(Struct, frozen=True, tag=True):
    """To a subscriber: your session has ended."""

    session: int
    reason: str


class Sessions(Struct, frozen=True, tag=True):
    """To a peer that is starting: who must have subscribed to you before you publish."""

    sessions: tuple[tuple[NodeId, int], ...]


class SessionNumber(Struct, frozen=True, tag=True):
    """On a subscriber's disk: the highest session that it may have used."""

    number: int


PUBLISHER_MESSAGES: tuple[type, ...] = (SubStart, EpochAck, GroupAck, RemoveSubscriber, Sessions)
SUBSCRIBER_MESSAGES: tuple[type, ...] = (SubStartConf, Row, EpochComplete, Disconnected)
