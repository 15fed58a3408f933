"""All messages, each with who sends it to whom. Every request may come twice, or late."""

from msgspec import Struct

from clusters.parts.cas_store import Cas, Get, Held, List, Listing, Next, Write
from clusters.parts.client import Refused, Unclear
from clusters.parts.fenced_log import Add, Added, Claimed, Fenced, Open, Opened, Stored
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


class Statuses(Struct, frozen=True, tag=True):
    """Find out the status of the writer's last transactions."""


class Done(Struct, frozen=True, tag=True):
    """It is done; reads have their results. `txn` is the transaction's id, `statuses` the answer to Statuses."""

    mops: tuple[MicroOp, ...] = ()
    txn: int | None = None
    statuses: tuple[tuple[int, str], ...] = ()


# From clients to writers, which hand them on to controllers.


class SealStream(Struct, frozen=True, tag=True):
    """A request to seal the stream. A controller's answer is its status: `sealing`, and `sealed` at the end."""


class TruncateStream(Struct, frozen=True, tag=True):
    """A request to truncate the stream where it ended at the last such request."""


class TakeCheckpoint(Struct, frozen=True, tag=True):
    """A request for a checkpoint of the readers' group."""


class RestoreGroup(Struct, frozen=True, tag=True):
    """A request to have all readers begin again at the last checkpoint."""


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


class CheckTxn(Struct, frozen=True, tag=True):
    """A request for a transaction's status."""

    txn: int


class Status(Struct, frozen=True, tag=True):
    """The answer to the last four: a transaction's status, or `unknown`. `sealed`: the stream takes nothing more."""

    status: str


class GetHistory(Struct, frozen=True, tag=True):
    """A request for the epochs."""


class Epochs(Struct, frozen=True, tag=True):
    """The answer: the epochs that are in the stream, and if the stream is sealed."""

    history: History
    is_sealed: bool = False


class GetSuccessors(Struct, frozen=True, tag=True):
    """A request for the segments that follow a sealed one."""

    segment: Segment


class Successors(Struct, frozen=True, tag=True):
    """The answer."""

    found: tuple[Copied, ...]


class NoteTime(Struct, frozen=True, tag=True):
    """A writer's note: all events that it had acknowledged by that time lie before these offsets of its segments."""

    writer: str
    time_ns: int
    cut: tuple[tuple[Segment, int], ...]


class GetMark(Struct, frozen=True, tag=True):
    """A request for the newest watermark of the stream."""


class Mark(Struct, frozen=True, tag=True):
    """The answer: all events that these writers had acknowledged by that time lie before the cut."""

    time_ns: int
    cut: tuple[tuple[Segment, int], ...]
    writers: tuple[str, ...]


class GetGroup(Struct, frozen=True, tag=True):
    """A request for the state that the readers share."""


class GetPending(Struct, frozen=True, tag=True):
    """A request for the transactions that are marked for commit."""


class Pending(Struct, frozen=True, tag=True):
    """The answer: their ids."""

    txns: tuple[int, ...]


# To segment stores. All but Read and Fetch are commands in the log of their container.


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


class Truncate(Struct, frozen=True, tag=True):
    """Take away the events of a segment before an offset; all if it is negative."""

    segment: Segment
    offset: int


class Truncated(Struct, frozen=True, tag=True):
    """The segment begins at that offset: earlier events are gone."""

    segment: Segment
    start: int


class Delete(Struct, frozen=True, tag=True):
    """Delete a segment."""

    segment: Segment


class Ok(Struct, frozen=True, tag=True):
    """The command was carried out, or had been."""

    length: int = 0


class Appended(Struct, frozen=True, tag=True):
    """All events of that writer up to `number` are in the segment, which has that length."""

    segment: Segment
    writer: str
    number: int
    length: int = 0


class OutOfOrder(Struct, frozen=True, tag=True):
    """Events of the writer are missing before this one: the last that is there is `number`."""

    segment: Segment
    writer: str
    number: int


class Sealed(Struct, frozen=True, tag=True):
    """The segment is sealed, and has that length; the last event of the writer in it is `number`."""

    segment: Segment
    writer: str
    number: int
    length: int = 0


class NoSegment(Struct, frozen=True, tag=True):
    """There is no such segment."""

    segment: Segment


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
    is_whole: bool = True  # False: events of these keys were truncated.


class Contents(Struct, frozen=True, tag=True):
    """The answer to Fetch."""

    found: tuple[Content, ...]


# Between readers and segment stores.


class KeepAlive(Struct, frozen=True, tag=True):
    """From a reader to each store, and back: a connection without traffic would hide that it is dead."""


# Between segment stores and the metadata node.


class Alive(Struct, frozen=True, tag=True):
    """From a segment store: it lives."""


class Placement(Struct, frozen=True, tag=True):
    """The owners of all containers; a higher version is newer."""

    version: int
    owners: tuple[NodeId, ...]


# Envelopes.

Command = Create | Append | Seal | Merge | Delete | Truncate
ToStore = Create | Append | Seal | Merge | Delete | Truncate | Read | Fetch
ToController = (
    CreateTxn | PingTxn | CommitTxn | AbortTxn | CheckTxn | GetHistory | GetSuccessors | GetPending | SealStream
    | TruncateStream | TakeCheckpoint | RestoreGroup | NoteTime | GetMark | GetGroup
)  # fmt: skip
ToMetadata = Get | List | Cas | Next
Reply = (
    Ok | Appended | OutOfOrder | Sealed | NoSegment | Truncated | Batch | Contents | Created | Status | Epochs
    | Successors | Pending | Mark | Held | Listing | Elsewhere | Later
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


# Types of shared parts, as nodes send and store them: a container's codec needs these.
WIRE = (
    Add, Added, Cas, Claimed, Elsewhere, Fenced, Get, Held, Later, List, Listing, Next, Open, Opened, Refused, Stored,
    Unclear, Write,
)  # fmt: skip
