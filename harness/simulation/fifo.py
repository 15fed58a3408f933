"""A fifo link's connection: messages in order, each at most once, with bounded buffers on both sides.

Theory of operation.
1. A message leaves the send buffer when the path lets it and fewer than WINDOW messages are under way or unread. It
   arrives at max(arrival of the one before, now + delay): none overtakes another.
2. A slow or paused receiver keeps the window full, so that messages wait in the send buffer (`queued`); a send into a
   full buffer closes the connection. Credit comes back at once: what acknowledges a message is not modelled.
3. A stall holds back what is under way, and what comes after it; nothing is lost while the connection stands.
4. A connection ends once. From then on what is sent is lost, until the sender has handled its `Closed`; the next send
   opens a new connection. Of what was under way a prefix arrives: nothing after a cut, else what comes before the
   receiver hears of the end. A path with a limit of bytes ends a connection by itself: the message that would pass
   the limit is lost, and what is sent after it.
5. The receiver's `Closed` comes before anything of the next connection, since that starts at a later arrival.
"""

from collections import deque
from typing import Final, NamedTuple, Protocol

from harness.core.machine import Message, NodeId
from harness.simulation.loop import VirtualLoop
from harness.simulation.paths import BREAKING, Path, plain_delay_ns

WINDOW: Final = 128
BUFFER: Final = 1024
NOTICEABLE_NS: Final = 1_000_000  # What limited bandwidth must cost a message to be an effect.


class Unread(Protocol):
    """Where a message came from; it is told when the message has been handled."""

    source: NodeId

    def consumed(self) -> None: ...


class End(Protocol):
    """A node or a client, as its links see it."""

    def receive(self, pipe: Unread, message: Message) -> None:
        """A message has arrived. The end calls `pipe.consumed()` once it has been handled."""

    def closed(self, peer: NodeId, ended: "tuple[Fifo, ...]") -> None:
        """Connections with `peer` have ended. The end calls `forget` for each once it has been handled."""

    def drained(self, peer: NodeId) -> None:
        """The send buffer to `peer` is half empty again."""


class Side(NamedTuple):
    """Who is at one side of a connection."""

    address: NodeId
    end: End


class Closer(Protocol):
    """Who carries out what the end of a connection means."""

    def overflowed(self, pipe: "Fifo") -> None: ...
    def reached_limit(self, pipe: "Fifo") -> None: ...
    def was_cut(self, pipe: "Fifo") -> None: ...
    def forget(self, pipe: "Fifo") -> None: ...
    def lost(self, pipe: "Fifo") -> None: ...


class Fifo:
    """One connection, in one direction. `first_ns` is the time before which nothing may arrive (5)."""

    def __init__(
        self, path: Path, number: int, *, source: Side, target: Side, closer: Closer, loop: VirtualLoop, first_ns: int
    ) -> None:
        self.number, self.source, self.target = number, source.address, target.address
        self.path = path
        self.is_open = True
        self.is_delivering = True
        self.was_refused = False
        self.was_cut = False  # Whether a cut is what keeps messages from arriving; else the other end is down.
        self._sender, self._receiver, self._closer, self._loop = source.end, target.end, closer, loop
        self._schedule = loop.schedule
        self._last_ns = first_ns
        self._unread = 0  # Messages that have left the buffer, and that the receiver has not handled.
        self._buffer: deque[Message] = deque()
        self._held: deque[Message] = deque()  # Arrived in a stall, or behind one that did.
        self._was_full = False
        self._passed_bytes = 0  # Since a limit is in force.
        self._free_at_ns = 0  # When the limited bandwidth is free again.
        self._is_waiting = False  # For that.
        self._is_clear = False
        self._clear()

    def send(self, message: Message) -> None:
        """Send, or queue, or lose the message (4)."""
        if self._is_clear and self._unread < WINDOW:
            self._unread += 1
            at_ns = self._loop.now_ns + plain_delay_ns(self.path)
            if at_ns < self._last_ns:  # noqa: PLR1730  Runs for each message; `max` costs several times as much.
                at_ns = self._last_ns
            self._last_ns = at_ns
            self._schedule(at_ns, self._arrive, message)
        elif not self.is_open:
            self._lost()
        elif len(self._buffer) >= BUFFER:
            self._closer.overflowed(self)
        else:
            self._queue(message)

    def queued(self, to_come: int) -> int:
        """Messages in the send buffer, once `to_come` more have been sent.

        However the connection is, no more than WINDOW of them leave at once: so a machine that sends until its buffer
        is full comes to an end, and the rest is lost if the connection has ended.
        """
        room = WINDOW
        if self.is_open:
            room = WINDOW - self._unread if self._is_clear else 0
        return len(self._buffer) + max(0, to_come - room)

    def consumed(self) -> None:
        """The receiver has handled a message."""
        self._unread -= 1
        if self._buffer:
            self._pump(None)

    def changed(self) -> None:
        if self.path.is_cut:
            self.was_cut = True
            self._closer.was_cut(self)
        elif self._held and not self.path.is_stalled:
            self._schedule(self._loop.now_ns, self._release, None)
        if not self.path.limit_bytes:
            self._passed_bytes = 0
        self._pump(None)

    def close(self) -> None:
        """Take no more messages. What is under way still arrives."""
        self.is_open = False
        self._buffer.clear()
        self._clear()

    def lose(self) -> None:
        """Lose what is under way, too. This is the end of the connection on the receiver's side."""
        self.close()
        self.is_delivering = False
        self._held.clear()
        self.path.pipes.pop(self.number, None)
        self._closer.lost(self)

    def forget(self) -> None:
        """The sender has heard that this connection has ended: its next message opens another."""
        self._closer.forget(self)

    def _clear(self) -> None:
        """Find out whether messages leave (but for the window) and arrive without further questions."""
        self._is_clear = self.is_open and self.path.is_plain and not self._buffer and not self._held

    def _queue(self, message: Message) -> None:
        self._buffer.append(message)
        self._pump(None)
        if self._buffer:
            self._was_full |= len(self._buffer) > BUFFER // 2
            if self.path.is_stalled:
                self.path.touch("stall")
            elif self._is_waiting:  # Else it is the receiver who holds the message up.
                self.path.touch("bandwidth")
        elif self.path.sending_ns(message) >= NOTICEABLE_NS:  # It has left, and arrives that much later.
            self.path.touch("bandwidth")

    def _pump(self, _: None) -> None:
        """Let messages leave the buffer (1)."""
        while self._buffer and not self.path.is_stalled and self._unread < WINDOW and self._has_bandwidth():
            message = self._buffer.popleft()
            self._passed_bytes += self.path.size(message)
            if self._passed_bytes > self.path.limit_bytes:
                self._closer.reached_limit(self)
                return
            sending_ns = self.path.sending_ns(message)
            self._free_at_ns = self._loop.now_ns + sending_ns
            self._unread += 1
            self._last_ns = max(self._last_ns, self._free_at_ns + self.path.delay_ns())
            self._schedule(self._last_ns, self._arrive, message)
        if self._was_full and len(self._buffer) <= BUFFER // 2:
            self._was_full = False
            self._schedule(self._loop.now_ns, self._tell_drained, None)
        self._clear()

    def _has_bandwidth(self) -> bool:
        if not self.path.bytes_per_s or self._free_at_ns <= self._loop.now_ns:
            return True
        if not self._is_waiting:
            self._is_waiting = True
            self._schedule(self._free_at_ns, self._pump_again, None)
        return False

    def _pump_again(self, _: None) -> None:
        self._is_waiting = False
        self._pump(None)

    def _tell_drained(self, _: None) -> None:
        if self.is_open:
            self._sender.drained(self.target)

    def _arrive(self, message: Message) -> None:
        if self._is_clear:
            self._receiver.receive(self, message)
        elif not self.is_delivering:
            self._lost()
        elif self.path.is_stalled or self._held:
            self._held.append(message)
            self.path.touch("stall")
        else:
            self._receiver.receive(self, message)

    def _lost(self) -> None:
        if self.was_cut:
            self.path.touch(*BREAKING)

    def _release(self, _: None) -> None:
        while self._held and not self.path.is_stalled:
            self._receiver.receive(self, self._held.popleft())
        self._clear()
