"""Messages between data nodes and subscribers, and between the nodes of a group about the progress of subscribers.

Messages between data nodes carry the number of the sender's view in `view`: see invariant 4 of data_node.py.
A session is one subscription of one subscriber, to all data nodes at once: messages of another session are dropped.
"""

from msgspec import Struct

from harness.core.machine import NodeId
from harness.core.record import Json

LAGGING = "lagging"
LINK = "link"


class SubStart(Struct, frozen=True, tag=True):
    """From a subscriber: send all changes from now on, as its session `session`."""

    session: int


class SubStartConf(Struct, frozen=True, tag=True):
    """This node sends everything from `first_epoch` on; `view_number`, `generation` and `started` are of its view.

    It is repeated, without a request, if `first_epoch` has risen.

    `publishing_from` is the epoch from which on buckets are this node's: 0 if it started with the cluster, None if it
    has yet to get them.
    """

    session: int
    generation: int
    view_number: int
    started: tuple[NodeId, ...]
    first_epoch: int
    publishing_from: int | None


class Row(Struct, frozen=True, tag=True):
    """A transaction changed a row: `value` is the last element that it appended.

    `old_value` is the before-image of an imaged key, None if there was no row; 0 for any other key.
    """

    session: int
    epoch: int
    bucket: int
    transid: int
    key: Json
    value: Json
    old_value: Json = 0


class EpochComplete(Struct, frozen=True, tag=True):
    """The sender has sent all rows, if any, of that epoch in `buckets`.

    `is_resent`: a dead node had some of these buckets in that epoch. `is_missing_data`: its rows are no longer
    available.
    """

    session: int
    epoch: int
    buckets: tuple[int, ...]
    is_resent: bool = False
    is_missing_data: bool = False


class EpochAck(Struct, frozen=True, tag=True):
    """The subscriber has stored the rows that an `EpochComplete` announced."""

    session: int
    epoch: int


class GroupAck(Struct, frozen=True, tag=True):
    """To the peer: every subscriber has stored all rows of the sender, up to that epoch.

    `sessions` lists those covered: the subscriber, its session, and the first epoch that it gets from the sender.
    """

    view: int
    epoch: int
    sessions: tuple[tuple[NodeId, int, int], ...]


class RemoveSubscriber(Struct, frozen=True, tag=True):
    """To all data nodes: that session has ended."""

    view: int
    subscriber: NodeId
    session: int
    reason: str


class Disconnected(Struct, frozen=True, tag=True):
    """To a subscriber: its session has ended."""

    session: int
    reason: str


class Sessions(Struct, frozen=True, tag=True):
    """To a starting peer: the sessions that must subscribe to it before it publishes."""

    view: int
    sessions: tuple[tuple[NodeId, int], ...]


class SessionNumber(Struct, frozen=True, tag=True):
    """On a subscriber's disk: the highest session that it may have used."""

    number: int


PUBLISHER_MESSAGES: tuple[type, ...] = (SubStart, EpochAck, GroupAck, RemoveSubscriber, Sessions)
SUBSCRIBER_MESSAGES: tuple[type, ...] = (SubStartConf, Row, EpochComplete, Disconnected)
