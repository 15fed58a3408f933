"""All messages, each with who sends it to whom. Every request may come twice, or late."""

from msgspec import Struct

from clusters.parts.cas_store import Cas, Get, Held, List, Listing, Next
from clusters.parts.routing import Elsewhere, Later
from clusters.pravega.records import Copied, Event, History, Segment, Span
from harness.core.machine import Message, NodeId
from harness.core.record import Json, MicroOp

# From clients to writers.


class Transact(Struct, frozen=True, tag=True):
    """Append these elements, as one transaction or as one plain event; or read the lists of these keys."""

    mops: tuple[MicroOp, ...]


class Drain(Struct, frozen=True, tag=True):
    """Find out if the readers have come to the end of the stream."""


class Done(Struct, frozen=True, tag=True):
    """It is done; reads have their results. `txn` is the transaction's id."""

    mops: tuple[MicroOp, ...] = ()
    txn: int | None = None


class Refused(Struct, frozen=True, tag=True):
    """It certainly has no effect, and will have none."""

    reason: str


class Unclear(Struct, frozen=True, tag=True):
    """It may have an effect, or get one."""

    reason: str


# From writers and readers to controllers.


class CreateTxn(Struct, frozen=True, tag=True):
    """A request for a transaction."""


class Created(Struct, frozen=True, tag=True):
    """The answer: the transaction's id, and its segments."""

    txn: int
    spans: tuple[Span, ...]


class PingTxn(Struct, frozen=True, tag=True):
    """A request for a new lease."""

    txn: int


class CommitTxn(Struct, frozen=True, tag=True):
    """A request to commit: whoever sends it has flushed all events."""

    txn: int


class AbortTxn(Struct, frozen=True, tag=True):
    """A request to abort."""

    txn: int


class Status(Struct, frozen=True, tag=True):
    """The answer to the last three, and to CheckTxn: a transaction's status, or `unknown`."""

    status: str


class GetHistory(Struct, frozen=True, tag=True):
    """A request for the epochs."""


class Epochs(Struct, frozen=True, tag=True):
    """The answer: the epochs that are in the stream."""

    history: History


class GetSuccessors(Struct, frozen=True, tag=True):
    """A request for the segments that follow a sealed one."""

    segment: Segment


class Successors(Struct, frozen=True, tag=True):
    """The answer."""

    found: tuple[Copied, ...]


class GetPending(Struct, frozen=True, tag=True):
    """A request for the transactions that are marked for commit."""


class Pending(Struct, frozen=True, tag=True):
    """The answer: their ids."""

    txns: tuple[int, ...]


# To segment stores. All but Read, Fetch and Setup are commands in the log of their container.


class Create(Struct, frozen=True, tag=True):
    """Create a segment, unless it is there."""

    segment: Segment


class Append(Struct, frozen=True, tag=True):
    """Append an event, if `previous` is the last number that the writer has there."""

    segment: Segment
    writer: str
    number: int
    previous: int
    event: Event


class Seal(Struct, frozen=True, tag=True):
    """Seal a segment."""

    segment: Segment


class Merge(Struct, frozen=True, tag=True):
    """Seal `source`, append its whole content to `target`, and delete it: one step."""

    target: Segment
    source: Segment


class Delete(Struct, frozen=True, tag=True):
    """Delete a segment."""

    segment: Segment


class Ok(Struct, frozen=True, tag=True):
    """The command was carried out, or had been."""

    length: int = 0


class Appended(Struct, frozen=True, tag=True):
    """All events of that writer up to `number` are in the segment."""

    segment: Segment
    writer: str
    number: int


class OutOfOrder(Struct, frozen=True, tag=True):
    """Events of the writer are missing before this one: the last that is there is `number`."""

    segment: Segment
    writer: str
    number: int


class Sealed(Struct, frozen=True, tag=True):
    """The segment is sealed; the last event of the writer in it is `number`."""

    segment: Segment
    writer: str
    number: int


class NoSegment(Struct, frozen=True, tag=True):
    """There is no such segment."""

    segment: Segment


class Setup(Struct, frozen=True, tag=True):
    """A request for the last event of that writer in the segment, once what it sent before is decided."""

    segment: Segment
    writer: str


class Read(Struct, frozen=True, tag=True):
    """A request for events from an offset on; the answer waits a while if there are none."""

    segment: Segment
    offset: int


class Batch(Struct, frozen=True, tag=True):
    """The answer: events, and if the segment ends behind them."""

    events: tuple[Event, ...]
    is_end: bool


class Fetch(Struct, frozen=True, tag=True):
    """A request for what segments hold of some keys, as of a moment after the request."""

    segments: tuple[Segment, ...]
    keys: tuple[Json, ...]


class Content(Struct, frozen=True, tag=True):
    """What a segment holds of these keys; `length` counts all its events."""

    segment: Segment
    length: int
    is_sealed: bool
    events: tuple[Event, ...]


class Contents(Struct, frozen=True, tag=True):
    """The answer to Fetch."""

    found: tuple[Content, ...]


# Between segment stores and the metadata node.


class Alive(Struct, frozen=True, tag=True):
    """From a segment store: it lives."""


class Placement(Struct, frozen=True, tag=True):
    """The owners of all containers; a higher version is newer."""

    version: int
    owners: tuple[NodeId, ...]


# Envelopes.

Command = Create | Append | Seal | Merge | Delete
ToStore = Create | Append | Seal | Merge | Delete | Read | Fetch | Setup
ToController = CreateTxn | PingTxn | CommitTxn | AbortTxn | GetHistory | GetSuccessors | GetPending
ToMetadata = Get | List | Cas | Next
Reply = (
    Ok | Appended | OutOfOrder | Sealed | NoSegment | Batch | Contents | Created | Status | Epochs | Successors
    | Pending | Held | Listing | Elsewhere | Later
)  # fmt: skip


class Asked(Struct, frozen=True, tag=True):
    """A request between nodes: `number` comes back with the answer."""

    number: int
    body: ToStore | ToController | ToMetadata


def asked(number: int, body: Message) -> Asked:
    """That request with its number."""
    if not isinstance(body, ToStore | ToController | ToMetadata):
        raise AssertionError(body)
    return Asked(number, body)


class Told(Struct, frozen=True, tag=True):
    """The answer to that request."""

    number: int
    body: Reply
