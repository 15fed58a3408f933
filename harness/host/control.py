"""The control channel: what the harness and a node say to each other, in frames of at most 1 MiB.

1. The harness dials, and its first frame is `Open` with the run's token. There is one connection at a time: a newer one
   ends the older.
2. The node answers with `Ready` as soon as its machine has recovered, then again with all evidence that was not
   acknowledged yet, then with `Reached` if it is frozen. A machine that raised is told as `Failed`, also each time.
3. Sequences of evidence grow over all lives of a node: the harness takes what is greater than the last that it took,
   and acknowledges either. A node acts on the outside after evidence only when that is acknowledged.
4. Questions are answered with their `number`.
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
    """Forget that, if it has not happened."""

    number: int


class Release(msgspec.Struct, frozen=True, tag=True):
    """Go on from that freeze."""

    number: int


class Slow(msgspec.Struct, frozen=True, tag=True):
    """Take so much longer for each message; 0 ends it."""

    delay_ns: int


class Probe(msgspec.Struct, frozen=True, tag=True):
    """Send a frame with that nonce to that peer, on the data connection; dial one as a send would if none is open."""

    to: NodeId
    nonce: int


class AskClocks(msgspec.Struct, frozen=True, tag=True):
    """What do your clocks show?"""

    number: int


class AskCounters(msgspec.Struct, frozen=True, tag=True):
    """What have you counted in this life?"""

    number: int


class AskDump(msgspec.Struct, frozen=True, tag=True):
    """Let the machine dump its state."""

    number: int


FromHarness = Open | Acknowledge | Arm | Disarm | Release | Slow | Probe | AskClocks | AskCounters | AskDump


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The machine has recovered. `lost_records`: what a crash was made to take from the disk."""

    node: NodeId
    life: int
    lost_records: int


class Delivered(msgspec.Struct, frozen=True, tag=True):
    """What a subscriber saw."""

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
    """What belongs into the history, in order. `time_ns`: the node's `now_ns` when it was sent for the first time."""

    sequence: int
    items: tuple[Item, ...]
    time_ns: int


class Reached(msgspec.Struct, frozen=True, tag=True):
    """The node is frozen at that failpoint, until `Release`."""

    number: int
    point: str


class ProbeSeen(msgspec.Struct, frozen=True, tag=True):
    """A probe of that peer has arrived."""

    source: NodeId
    nonce: int


class ProbeFailed(msgspec.Struct, frozen=True, tag=True):
    """It was not sent: the connection was refused, or has ended."""

    to: NodeId
    nonce: int
    reason: str


class Clocks(msgspec.Struct, frozen=True, tag=True):
    """What the clocks show: `now_ns` and `local_ns` as the machine sees them, and the system's two as they are."""

    number: int
    now_ns: int
    monotonic_ns: int
    local_ns: int
    realtime_ns: int


class LinkCounters(msgspec.Struct, frozen=True):
    """Of the connections with one peer, both directions; `queued` waits to be written now."""

    sent: int = 0
    received: int = 0
    opened: int = 0
    closed: int = 0
    refused: int = 0
    queued: int = 0


class Counters(msgspec.Struct, frozen=True, tag=True):
    """What was counted in this life. All clients together are the link "client".

    With number 0 it comes unasked, as the last word of a life that ends by `Context.exit`.
    """

    number: int
    handled: int
    unexpected: int
    delayed: int  # Messages that a consumer delay held up.
    goals: dict[str, int]  # With failpoints, as point:NAME.
    links: dict[str, LinkCounters]
    deferred: int = 0  # Events that came while the node was frozen.
    bad_frames: int = 0  # Connections that were closed for what they sent.


class Dumped(msgspec.Struct, frozen=True, tag=True):
    """The states of that dump have all been sent, as evidence before this."""

    number: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The machine, or its host, has failed: a bug of ours, which ends the run. The node handles nothing any more."""

    text: str


FromNode = Ready | Evidence | Reached | ProbeSeen | ProbeFailed | Clocks | Counters | Dumped | Failed

FROM_HARNESS: Final = msgspec.msgpack.Decoder(FromHarness)
FROM_NODE: Final = msgspec.msgpack.Decoder(FromNode)
