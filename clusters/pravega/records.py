"""What is kept of a stream: segments, epochs, transactions, and the records of what is being done. All is immutable.

A segment is a number, which places it, and an epoch, in which this copy was created; that of a transaction has its id
as well. An epoch is the list of segments that were active together, which always cut the whole space of keys. It has a
reference: itself after a scale; that of the copied epoch, if a rolling transaction made it.
"""

from typing import Literal

from msgspec import Struct, msgpack

from clusters.pravega.shape import FIRST_SEGMENTS, SPACE
from harness.core.machine import NodeId
from harness.core.record import Json


class Segment(Struct, frozen=True, order=True):
    """The name of a segment. `txn` is 0 unless it holds what a transaction wrote."""

    number: int
    epoch: int
    txn: int = 0

    def of(self, txn: int) -> "Segment":
        """The segment of a transaction that was created against this one."""
        return Segment(self.number, self.epoch, txn)

    def copy(self, epoch: int) -> "Segment":
        """The duplicate of this segment in another epoch."""
        return Segment(self.number, epoch)

    def __str__(self) -> str:
        return f"{self.number}/{self.epoch}" + (f"/{self.txn}" if self.txn else "")


class Span(Struct, frozen=True, order=True):
    """A segment with its keys: those whose hashes are in [low, high)."""

    low: int
    high: int
    segment: Segment

    def meets(self, other: "Span") -> bool:
        """True if some key may belong to both."""
        return self.low < other.high and other.low < self.high


class Epoch(Struct, frozen=True):
    """The segments that were active together, in the order of keys."""

    number: int
    reference: int
    spans: tuple[Span, ...]

    def at(self, place: int) -> Segment:
        """The segment of the keys that are hashed to that place."""
        return next(span.segment for span in self.spans if span.low <= place < span.high)


class Copied(Struct, frozen=True):
    """A segment, and those that come directly before it in the stream."""

    span: Span
    before: tuple[Segment, ...]


class History(Struct, frozen=True):
    """All epochs by number. Those above `current` are partial: written, and in the stream only once `current` moves."""

    epochs: tuple[Epoch, ...]
    current: int = 0

    @property
    def active(self) -> Epoch:
        """The epoch that takes plain events."""
        return self.epochs[self.current]

    def listed(self) -> tuple[Epoch, ...]:
        """The epochs that are in the stream."""
        return self.epochs[: self.current + 1]

    def successors(self, segment: Segment) -> tuple[Copied, ...] | None:
        """The segments that follow that one, each with all its predecessors; None as long as it is active."""
        held = [epoch.number for epoch in self.listed() if any(span.segment == segment for span in epoch.spans)]
        if not held or held[-1] == self.current:
            return None
        old, new = self.epochs[held[-1]], self.epochs[held[-1] + 1]
        own = next(span for span in old.spans if span.segment == segment)
        return tuple(
            Copied(span, tuple(before.segment for before in old.spans if before.meets(span)))
            for span in new.spans
            if span.meets(own)
        )


def first_history() -> History:
    """The history of a new stream."""
    edges = [number * SPACE // FIRST_SEGMENTS for number in range(FIRST_SEGMENTS + 1)]
    spans = (Span(edges[number], edges[number + 1], Segment(number, 0)) for number in range(FIRST_SEGMENTS))
    return History((Epoch(0, 0, tuple(spans)),))


StateName = Literal["active", "scaling", "committing", "sealing", "sealed"]


class State(Struct, frozen=True):
    """What the stream's processor is doing."""

    name: StateName = "active"


class Committing(Struct, frozen=True):
    """The transactions that are being committed, in this order, all of one epoch.

    With `active` they roll: that was the active epoch when this began.
    """

    epoch: int
    txns: tuple[int, ...]
    active: int | None = None


class Cut(Struct, frozen=True):
    """A stream cut: an epoch, and for each of its segments the offset of the first event behind the cut."""

    epoch: int
    offsets: tuple[tuple[Segment, int], ...]


class Truncation(Struct, frozen=True):
    """The stream is truncated at `done`, and `next` was its end then: the next truncation is made there."""

    done: Cut | None
    next: Cut


class Transition(Struct, frozen=True):
    """A scale: these segments of that epoch are to be sealed, and the keys cut at `edges` anew."""

    epoch: int
    seal: tuple[Segment, ...]
    edges: tuple[int, ...]


TxnStatus = Literal["open", "committing", "aborting", "committed", "aborted"]
EPOCH_SHIFT = 32  # A transaction's id is the epoch against which it was created, and a counter.


class Txn(Struct, frozen=True):
    """A transaction. `host` is the controller that keeps its lease; `order` its place among those to be committed."""

    id: int
    status: TxnStatus
    host: NodeId
    order: int = 0
    pings: int = 0

    @property
    def epoch(self) -> int:
        """The epoch against which it was created."""
        return self.id >> EPOCH_SHIFT


class Lease(Struct, frozen=True):
    """Which controller works on the stream, and a number that it raises as long as it lives."""

    owner: NodeId
    beat: int


class Event(Struct, frozen=True):
    """What a stream holds. `writer` and `number` are those of the plain writer, and count over the whole stream."""

    key: Json
    value: Json
    writer: str
    number: int
    txn: int = 0


# The names under which the metadata store keeps them.
STREAM = "stream/"
STATE, HISTORY = f"{STREAM}state", f"{STREAM}history"
COMMITTING, TRANSITION = f"{STREAM}committing", f"{STREAM}transition"
TRUNCATION, MARK = f"{STREAM}truncation", f"{STREAM}mark"
# Requests to the processor.
COMMITS, ABORTS, SEAL, TRUNCATE = f"{STREAM}commits", f"{STREAM}aborts/", f"{STREAM}seal", f"{STREAM}truncate"
TXNS, ENDED, NOTES = "txn/", "ended/", "note/"
LEASE, GROUP = "lease", "group"

_STATE, _HISTORY = msgpack.Decoder(State), msgpack.Decoder(History)
_COMMITTING, _TRANSITION = msgpack.Decoder(Committing), msgpack.Decoder(Transition)
_TXN, _LEASE, _TRUNCATION = msgpack.Decoder(Txn), msgpack.Decoder(Lease), msgpack.Decoder(Truncation)
encoded = msgpack.Encoder().encode
state_of, history_of = _STATE.decode, _HISTORY.decode
committing_of, transition_of = _COMMITTING.decode, _TRANSITION.decode
txn_of, lease_of, truncation_of = _TXN.decode, _LEASE.decode, _TRUNCATION.decode
