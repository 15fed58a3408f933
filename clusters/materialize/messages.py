"""All messages, by sender and receiver. Every request may come twice, or late."""

from msgspec import Struct

from clusters.materialize.collections import Update
from clusters.parts.fenced_log import Add, Added, Claimed, Fenced, Look, Looked, Open, Opened, Stored
from clusters.parts.routing import Elsewhere, Later
from harness.core.machine import Message, NodeId
from harness.core.record import Json, MicroOp

# From clients to coordinators.


class Transact(Struct, frozen=True, tag=True):
    """Read lists, append to lists of one table, or do both: the reads first. The session has seen timestamp `seen`."""

    mops: tuple[MicroOp, ...]
    seen: int = 0


class ReadPast(Struct, frozen=True, tag=True):
    """Read these lists as they were some time ago (AS OF); without an age, at any timestamp."""

    keys: tuple[Json, ...]
    age_ms: int | None


class Change(Struct, frozen=True, tag=True):
    """Insert rows into a table (`diff` 1), or delete all rows of keys (`diff` -1)."""

    table: str
    rows: tuple[tuple[Json, Json, int], ...]


class Query(Struct, frozen=True, tag=True):
    """Read all rows of a table, source or view, as they are, or were some time ago."""

    name: str
    age_ms: int | None = None


class Count(Struct, frozen=True, tag=True):
    """Append an element to the list in the timeline of its own; without one, read it, `is_mixed` with another list."""

    element: Json = None
    is_mixed: bool = False


class Define(Struct, frozen=True, tag=True):
    """Create a table, or drop it."""

    table: str
    is_drop: bool = False


class Done(Struct, frozen=True, tag=True):
    """It is done, at these timestamps; reads have their results."""

    epoch: int
    mops: tuple[MicroOp, ...] = ()
    value: Json = None
    read_ts: int | None = None
    commit_ts: int | None = None


class Refused(Struct, frozen=True, tag=True):
    """It certainly has no effect, and never will."""

    reason: str


class Unclear(Struct, frozen=True, tag=True):
    """It may have an effect, or get one."""

    reason: str


# From clients to the upstream system.


class Produce(Struct, frozen=True, tag=True):
    """Write a record. The answer comes when it is acknowledged downstream, as with synchronous replication."""

    value: Json


class Produced(Struct, frozen=True, tag=True):
    """The record has that offset, and was acknowledged."""

    offset: int


# To storage.


class CompareAndAppend(Struct, frozen=True, tag=True):
    """A request to append updates, all below `new`, if the shard's upper is `expected`. `epoch` and `new` name it."""

    shard: str
    expected: int
    new: int
    updates: tuple[Update, ...]
    epoch: int


class AtUpper(Struct, frozen=True, tag=True):
    """The answer: the request was carried out, now or before; that is the shard's upper."""

    shard: str
    upper: int


class Mismatch(Struct, frozen=True, tag=True):
    """The answer: the shard's upper is another one, and the request was never carried out."""

    shard: str
    upper: int


class GetUpper(Struct, frozen=True, tag=True):
    """A request for a shard's upper; the answer is AtUpper."""

    shard: str


class Downgrade(Struct, frozen=True, tag=True):
    """From the leader: these shards are not read any more below `since`."""

    shards: tuple[str, ...]
    since: int


# From compute to storage, and back.


class Listen(Struct, frozen=True, tag=True):
    """A request for a copy of a shard, and then all that is added to it."""

    shard: str
    session: int


class Part(Struct, frozen=True, tag=True):
    """The updates that were added to a shard up to `upper`; the first part of a session has all."""

    shard: str
    session: int
    is_first: bool
    since: int
    upper: int
    updates: tuple[Update, ...]


# From coordinators to compute.


class Wanted(Struct, frozen=True):
    """These keys of a collection; without keys, all of it."""

    collection: str
    keys: tuple[Json, ...] | None


class Peek(Struct, frozen=True, tag=True):
    """A request for rows at a timestamp; without one, at the newest at which all can be read, but not below `least`."""

    ts: int | None
    wanted: tuple[Wanted, ...]
    least: int = 0


class Peeked(Struct, frozen=True, tag=True):
    """The answer: for each collection, its keys and their values at `ts`, with the rank of the last one."""

    ts: int
    found: tuple[tuple[tuple[Json, tuple[Json, ...], tuple[int, ...]], ...], ...]


class SinceBeyond(Struct, frozen=True, tag=True):
    """The answer: the collections can no longer be read below `since`."""

    since: int


# Between ingestion, upstream and coordinators.


class Fetch(Struct, frozen=True, tag=True):
    """A request for records from an offset on, up to `end` if that is given."""

    first: int
    end: int | None = None


class Records(Struct, frozen=True, tag=True):
    """The answer: the values from that offset on."""

    first: int
    values: tuple[Json, ...]


class Gone(Struct, frozen=True, tag=True):
    """The answer: the upstream system has dropped what lies below `first`."""

    first: int


class Acknowledge(Struct, frozen=True, tag=True):
    """A request to drop the records below that offset, and to show them as acknowledged."""

    offset: int


class Acknowledged(Struct, frozen=True, tag=True):
    """The answer."""

    offset: int


class MayAcknowledge(Struct, frozen=True, tag=True):
    """A request to wait until reads are at or above `ts`."""

    ts: int


class AckOk(Struct, frozen=True, tag=True):
    """The answer: they are."""

    ts: int


# SUBSCRIBE.


class Subscribe(Struct, frozen=True, tag=True):
    """A request for all updates of these collections at or above `first`."""

    session: int
    collections: tuple[str, ...]
    first: int


class Updates(Struct, frozen=True, tag=True):
    """Updates of a session, each with the place of its collection in the request."""

    session: int
    updates: tuple[tuple[int, Update], ...]


class Progress(Struct, frozen=True, tag=True):
    """No update below `ts` follows in that session."""

    session: int
    ts: int


class Unsubscribe(Struct, frozen=True, tag=True):
    """A follower ends that session."""

    session: int


class Ended(Struct, frozen=True, tag=True):
    """The session is over."""

    session: int
    reason: str


class Hold(Struct, frozen=True, tag=True):
    """To coordinators: the follower has all updates below `ts`, and may request those at `ts`."""

    follower: NodeId
    ts: int


class Lead(Struct, frozen=True, tag=True):
    """From the leader to the other coordinator: it lives."""

    epoch: int


# Between the sink, its topic, and the reader of that.


class Batch(Struct, frozen=True, tag=True):
    """Updates, and the progress that they bring: none below it will follow."""

    progress: int
    rows: tuple[Update, ...]


class OpenTopic(Struct, frozen=True, tag=True):
    """A request to publish to the topic in that epoch."""

    epoch: int


class Publish(Struct, frozen=True, tag=True):
    """A request to add a batch, if the topic has that epoch, and `expected` as its progress."""

    epoch: int
    expected: int
    batch: Batch


class TopicAt(Struct, frozen=True, tag=True):
    """The answer to both: the topic's epoch and progress."""

    epoch: int
    progress: int


class Poll(Struct, frozen=True, tag=True):
    """A request for the batches from that place on."""

    first: int


class Batches(Struct, frozen=True, tag=True):
    """The answer."""

    first: int
    batches: tuple[Batch, ...]


# Envelopes.

ToCatalog = Open | Add | Look
ToStorage = CompareAndAppend | GetUpper
ToUpstream = Fetch | Acknowledge
ToTopic = OpenTopic | Publish | Poll
Body = ToCatalog | ToStorage | ToUpstream | ToTopic | Peek | MayAcknowledge
Reply = (
    Opened | Added | Looked | Fenced | AtUpper | Mismatch | Peeked | SinceBeyond | Records | Gone | Acknowledged | AckOk
    | TopicAt | Batches | Elsewhere | Later
)  # fmt: skip
WIRE = (Open, Opened, Add, Added, Look, Looked, Fenced, Claimed, Stored, Elsewhere, Later)


class Asked(Struct, frozen=True, tag=True):
    """A request between nodes: `number` comes back with the answer."""

    number: int
    body: Body


def asked(number: int, body: Message) -> Asked:
    """That request with its number."""
    if not isinstance(body, Body):
        raise AssertionError(body)
    return Asked(number, body)


class Told(Struct, frozen=True, tag=True):
    """The answer to that request."""

    number: int
    body: Reply
