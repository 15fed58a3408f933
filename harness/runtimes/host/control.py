"""The control channel: the messages between the harness and a node, in frames of at most 1 MiB.

1. The harness dials, and its first frame is `Open` with the run's token. There is one connection at a time: a newer
   one ends the older.
2. The node answers with `Ready` as soon as its machine has recovered, then again with all evidence that was not
   acknowledged yet, then with `Reached` if it is frozen. A machine's exception is reported as `Failed`, also on each
   connection.
3. Sequences of evidence grow over all lives of a node: the harness takes a sequence greater than the last one taken,
   and acknowledges all. After evidence, a node sends or writes only once that evidence is acknowledged.
4. The answer to a query has its `number`.
"""

from typing import Final

import msgspec

from harness.core.machine import Delivery, Dump, NodeId


class Open(msgspec.Struct, frozen=True, tag=True):
    """The first frame. A wrong token closes the connection."""

    token: str


class Acknowledge(msgspec.Struct, frozen=True, tag=True):
    """All evidence up to that sequence is in the journal."""

    sequence: int


class Arm(msgspec.Struct, frozen=True, tag=True):
    """Freeze when that failpoint is next reached."""

    number: int
    point: str


class Disarm(msgspec.Struct, frozen=True, tag=True):
    """Cancel an `Arm`, if the failpoint has not been reached."""

    number: int


class Release(msgspec.Struct, frozen=True, tag=True):
    """Continue after that freeze."""

    number: int


class Slow(msgspec.Struct, frozen=True, tag=True):
    """Take `delay_ns` longer for each message; 0 ends it."""

    delay_ns: int


class Probe(msgspec.Struct, frozen=True, tag=True):
    """Send a frame with that nonce to that peer on the data connection; if none is open, dial one, as a send would."""

    to: NodeId
    nonce: int


class AskClocks(msgspec.Struct, frozen=True, tag=True):
    """A query for the readings of the clocks."""

    number: int


class AskCounters(msgspec.Struct, frozen=True, tag=True):
    """A query for the counts of this life."""

    number: int


class AskDump(msgspec.Struct, frozen=True, tag=True):
    """A request that the machine dump its state."""

    number: int


FromHarness = Open | Acknowledge | Arm | Disarm | Release | Slow | Probe | AskClocks | AskCounters | AskDump


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The machine has recovered. `lost_records` is the number of records that a crash removed from the disk."""

    node: NodeId
    life: int
    lost_records: int


class Delivered(msgspec.Struct, frozen=True, tag=True):
    """An event that a subscriber received."""

    delivery: Delivery


class Probed(msgspec.Struct, frozen=True, tag=True):
    """A metric."""

    name: str
    value: int


class Stated(msgspec.Struct, frozen=True, tag=True):
    """An object of the node's state."""

    dump: Dump


Item = Delivered | Probed | Stated


class Evidence(msgspec.Struct, frozen=True, tag=True):
    """Records for the history, in order. `time_ns` is the node's `now_ns` at the first sending."""

    sequence: int
    items: tuple[Item, ...]
    time_ns: int


class Reached(msgspec.Struct, frozen=True, tag=True):
    """The node is frozen at that failpoint, until `Release`."""

    number: int
    point: str


class ProbeSeen(msgspec.Struct, frozen=True, tag=True):
    """A probe of that peer arrived."""

    source: NodeId
    nonce: int


class ProbeFailed(msgspec.Struct, frozen=True, tag=True):
    """The probe was not sent: the connection was refused, or ended."""

    to: NodeId
    nonce: int
    reason: str


class Clocks(msgspec.Struct, frozen=True, tag=True):
    """The clock readings: `now_ns` and `local_ns` as the machine sees them, and the system's two clocks unchanged."""

    number: int
    now_ns: int
    monotonic_ns: int
    local_ns: int
    realtime_ns: int


class LinkCounters(msgspec.Struct, frozen=True):
    """The counts of the connections with one peer, both directions; `queued` messages wait to be written now."""

    sent: int = 0
    received: int = 0
    opened: int = 0
    closed: int = 0
    refused: int = 0
    queued: int = 0


class Counters(msgspec.Struct, frozen=True, tag=True):
    """The counts of this life. All clients together are the link "client".

    With number 0 it comes without a query, as the last message of a life that ends by `Context.exit`.
    """

    number: int
    handled: int
    unexpected: int
    delayed: int  # Messages delayed by a consumer delay.
    goals: dict[str, int]  # Failpoints are included, as point:NAME.
    links: dict[str, LinkCounters]
    deferred: int = 0  # Events that arrived while the node was frozen.
    bad_frames: int = 0  # Connections closed because of invalid frames.


class Dumped(msgspec.Struct, frozen=True, tag=True):
    """All states of that dump have been sent, as evidence before this message."""

    number: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The machine, or its host, failed: a bug of ours, which ends the run. The node handles nothing more."""

    text: str


FromNode = Ready | Evidence | Reached | ProbeSeen | ProbeFailed | Clocks | Counters | Dumped | Failed

FROM_HARNESS: Final = msgspec.msgpack.Decoder(FromHarness)
FROM_NODE: Final = msgspec.msgpack.Decoder(FromNode)
