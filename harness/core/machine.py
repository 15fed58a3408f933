"""The machine interface: protocol code without input and output.

A node is a machine. `recover` is called once after each start, with the content of the disk; `handle` for each event;
`dump` once, when the run has come to rest at the end. They act through a `Context` only, and run to their end without
interruption.

1. Effects are collected in order, and carried out after the method returns.
2. An append or put is durable once its `Synced(token)` arrives, and not before: an answer that promises durability is
   sent then. A crash loses all unsynced writes, and all memory.
3. `handle` is total: a message that it does not expect is dropped (`context.unexpected(message)` counts it).
4. A machine reads no clock but the context's, draws from no stream but the context's, and iterates over no set.
5. On a `fifo` link messages arrive in order, each at most once, up to a `Closed`; messages sent before and not yet
   received are then lost. The next send opens the link anew. `Closed(peer)` always comes before anything of the new
   connection.
"""

from collections.abc import Mapping, Sequence
from typing import NewType, Protocol

import msgspec

NodeId = NewType("NodeId", str)

Message = msgspec.Struct  # Frozen and tagged: simulated links pass it by reference, containers as msgpack.


class Received(msgspec.Struct, frozen=True):
    """A message arrived."""

    sender: NodeId
    message: Message


class TimerFired(msgspec.Struct, frozen=True):
    """The timer of that name expired."""

    name: str


class Synced(msgspec.Struct, frozen=True):
    """Everything appended, truncated and put before `sync(token)` is durable."""

    token: int


class Closed(msgspec.Struct, frozen=True):
    """A connection with `peer` ended, in either direction; its messages in transit are lost."""

    peer: NodeId


class Drained(msgspec.Struct, frozen=True):
    """The send buffer to `peer`, which had been more than half full, is half empty again."""

    peer: NodeId


Event = Received | TimerFired | Synced | Closed | Drained


class Call(msgspec.Struct, frozen=True, tag=True):
    """A request by a client: `number` comes back with the answer."""

    number: int
    body: Message


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The answer to the call of that number."""

    number: int
    body: Message


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a subscriber received, to be written to the history before it is acknowledged upstream.

    `kind` is open, row, watermark, begin, commit, gap, error, close, checkpoint, end, backfill, successors or hash: for
    the last two see `checkers.lineage.logs`. `position` is in the domain that the stream's contract declares; `unit`
    names the transaction, epoch or batch that must not be torn, and `unit_rows` is its row count, where the stream
    reports it.
    """

    session: int
    kind: str
    span: str | None = None
    key: object = None
    value: object = None
    position: int | None = None
    ordinal: int | None = None
    epoch: int | None = None
    unit: int | None = None
    unit_rows: int | None = None


Shown = object  # Any value that Json can represent; under this name because a field of Dump is called `object`.


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """One object of a node's state: `object` is its kind, `position` and `txn` identify its last change."""

    object: str
    key: Shown
    value: Shown
    position: int | None = None
    txn: int | None = None


class Durable(Protocol):
    """The content of the disk after a start: all synced writes, and perhaps some unsynced ones."""

    def log(self, name: str) -> Sequence[Message]:
        """The records of a log, in order; empty if it was never written."""

    def value(self, key: str) -> Message | None:
        """The value last put under that key, or None."""


class Randomness(Protocol):
    """The random draws that a machine may use; `harness.core.draw.Stream` implements them."""

    def below(self, bound: int) -> int: ...
    def between(self, low: int, high: int) -> int: ...
    def chance(self, numerator: int, denominator: int) -> bool: ...


class Context(Protocol):
    """A machine's only access to the world: what it may know and do."""

    node: NodeId

    def now_ns(self) -> int:
        """Time since the start of the run, in nanoseconds; the same on all nodes."""

    def local_clock_ns(self) -> int:
        """This node's own wall clock, which may be skewed, drift, step and freeze."""

    def draw(self, name: str) -> Randomness:
        """This node's own random stream of that name."""

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message over the link. If the send buffer is full the connection ends: see `queued`."""

    def queued(self, to: NodeId) -> int:
        """Messages waiting in the send buffer to `to`, not counting those in transit."""

    def set_timer(self, name: str, after_ns: int) -> None:
        """Fire `name` once, `after_ns` from now; an earlier timer of that name is replaced."""

    def cancel_timer(self, name: str) -> None:
        """Forget the timer of that name, if there is one."""

    def append(self, log: str, record: Message) -> None:
        """Add a record to the end of a log."""

    def truncate(self, log: str, index: int) -> None:
        """Keep the first `index` records of a log."""

    def put(self, key: str, value: Message) -> None:
        """Set a durable value."""

    def sync(self, token: int) -> None:
        """Make all earlier writes durable; `Synced(token)` follows."""

    def deliver(self, delivery: Delivery) -> None:
        """Record an event that this subscriber received."""

    def probe(self, name: str, value: int) -> None:
        """Record a metric, for promises about liveness and memory."""

    def sometimes(self, goal: str) -> None:
        """Count that a goal was reached. A campaign that never reaches one has tested less than it claims."""

    def point(self, name: str) -> None:
        """A failpoint. Effects before it are carried out; the nemesis may crash, pause or cut the node here."""

    def dump(self, state: Dump) -> None:
        """Record one object of this node's state."""

    def exit(self, after_ns: int) -> None:
        """End this process: earlier effects are carried out, later ones are not, and memory is lost.

        Earlier writes, even unsynced ones, survive in the operating system's cache. The supervisor starts the node
        again `after_ns` from now.
        """

    def unexpected(self, message: Message) -> None:
        """Count a message that the machine dropped because it did not expect it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A run's settings for its cluster, by name: planted bugs, parameters drawn from the seed, and chosen options."""

    bugs: frozenset[str] = frozenset()
    parameters: dict[str, int] = {}
    options: dict[str, str] = {}


class Machine(Protocol):
    """One node. A crash discards the object; a start makes a new one and calls `recover`."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        """Load the durable state, set timers, greet peers."""

    def handle(self, event: Event, context: Context) -> None:
        """React to one event. Total: no event raises."""

    def dump(self, context: Context) -> None:
        """Record, with `context.dump`, the parts of this node's state that checks need. Called at the end of a run."""


Links = Mapping[tuple[str, str], str]  # (role, role) -> "fifo" or "datagram"; between servers of others "direct".
