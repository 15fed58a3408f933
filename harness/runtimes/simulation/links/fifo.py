"""A fifo link's connection: messages in order, each at most once, with bounded buffers on both sides.

Theory of operation.
1. A message leaves the send buffer when the path allows it and fewer than WINDOW messages are in transit or unread. It
   arrives at max(arrival of the one before, now + delay): none overtakes another.
2. A slow or paused receiver keeps the window full, so that messages wait in the send buffer (`queued`); a send into a
   full buffer closes the connection. Credit returns at once: acknowledgements are not modelled.
3. A stall holds back messages in transit, and later ones; nothing is lost while the connection is open.
4. A connection ends once. Messages sent from then on are lost, until the sender has handled its `Closed`; the next
   send opens a new connection. A prefix of the messages in transit arrives: nothing after a cut, else those that
   arrive before the receiver is notified of the end. A path with a byte limit ends a connection by itself: the message
   that would exceed the limit is lost, and so are later ones.
5. The receiver's `Closed` comes before any message of the next connection, since that starts at a later arrival.
"""

from collections import deque
from typing import Final, NamedTuple, Protocol

from harness.core.machine import Message, NodeId
from harness.runtimes.simulation.links.paths import BREAKING, Path
from harness.runtimes.simulation.loop import VirtualLoop

WINDOW: Final = 128
BUFFER: Final = 1024
NOTICEABLE_NS: Final = 1_000_000  # The delay that limited bandwidth must cause a message to count as an effect.


class Unread(Protocol):
    """The source of a message, which is notified when the message has been handled."""

    source: NodeId

    def consumed(self) -> None: ...


class End(Protocol):
    """A node or a client as its links see it."""

    def receive(self, pipe: Unread, message: Message) -> None:
        """Take a message that arrived. The end calls `pipe.consumed()` once it has been handled."""

    def closed(self, peer: NodeId, ended: "tuple[Fifo, ...]") -> None:
        """Note that connections with `peer` have ended. The end calls `forget` for each once that is handled."""

    def drained(self, peer: NodeId) -> None:
        """Note that the send buffer to `peer` is half empty again."""


class Side(NamedTuple):
    """One side of a connection."""

    address: NodeId
    end: End


class Closer(Protocol):
    """The handler of connection ends."""

    def overflowed(self, pipe: "Fifo") -> None: ...
    def reached_limit(self, pipe: "Fifo") -> None: ...
    def was_cut(self, pipe: "Fifo") -> None: ...
    def forget(self, pipe: "Fifo") -> None: ...
    def lost(self, pipe: "Fifo") -> None: ...


class Fifo:
    """One connection, in one direction. Nothing may arrive before `first_ns` (5)."""

    def __init__(
        self, path: Path, number: int, *, source: Side, target: Side, closer: Closer, loop: VirtualLoop, first_ns: int
    ) -> None:
        self.number, self.source, self.target = number, source.address, target.address
        self.path = path
        self.is_open = True
        self.is_delivering = True
        self.was_refused = False
        self.was_cut = False  # True if a cut keeps messages from arriving; else the other end is down.
        self._sender, self._receiver, self._closer, self._loop = source.end, target.end, closer, loop
        self._schedule, self._plain_delay_ns = loop.schedule, path.plain_delay_ns
        self._last_ns = first_ns
        self._unread = 0  # Messages that left the buffer, and are not yet handled by the receiver.
        self._buffer: deque[Message] = deque()
        self._held: deque[Message] = deque()  # Arrived in a stall, or after one that did.
        self._was_full = False
        self._passed_bytes = 0  # Bytes sent since the limit is in force.
        self._free_at_ns = 0  # The time at which the limited bandwidth is free again.
        self._slow: list[Message] = []  # The message that was sent last under such a limit, until it arrives;
        self._before_ns = 0  # and the time before which it may not arrive.
        self._is_waiting = False  # True while waiting for that.
        self._is_clear = False
        self._clear()

    def send(self, message: Message) -> None:
        """Send, queue, or lose the message (4)."""
        if self._is_clear and self._unread < WINDOW:
            self._unread += 1
            at_ns = self._loop.now_ns + self._plain_delay_ns()
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
        """The number of messages in the send buffer once `to_come` more have been sent.

        At most WINDOW of those count as leaving at once, even if the connection has ended: a machine that sends until
        the buffer is full must stop there as well. Its messages are then lost.
        """
        room = WINDOW
        if self.is_open:
            room = WINDOW - self._unread if self._is_clear else 0
        return len(self._buffer) + max(0, to_come - room)

    def consumed(self) -> None:
        """Note that the receiver has handled a message."""
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
        if not self.path.bytes_per_s and self._free_at_ns > self._loop.now_ns:
            self._hurry()
        self._pump(None)

    def close(self) -> None:
        """Accept no more messages. Those in transit still arrive."""
        self.is_open = False
        self._buffer.clear()
        self._clear()

    def lose(self) -> None:
        """Lose the messages in transit too. This ends the connection on the receiver's side."""
        self.close()
        self.is_delivering = False
        self._held.clear()
        self.path.pipes.pop(self.number, None)
        self._closer.lost(self)

    def forget(self) -> None:
        """Note that the sender knows of the end: its next message opens another connection."""
        self._closer.forget(self)

    def _clear(self) -> None:
        """Update `_is_clear`: messages leave (within the window) and arrive without further checks."""
        self._is_clear = self.is_open and self.path.is_plain and not self._buffer and not self._held

    def _queue(self, message: Message) -> None:
        self._buffer.append(message)
        self._pump(None)
        if self._buffer:
            self._was_full |= len(self._buffer) > BUFFER // 2
            if self.path.is_stalled:
                self.path.touch("stall")
            elif self._is_waiting:  # Else the receiver holds the message up.
                self.path.touch("bandwidth")
        elif self.path.sending_ns(message) >= NOTICEABLE_NS:  # The message has left, and arrives that much later.
            self.path.touch("bandwidth")

    def _pump(self, _: None) -> None:
        """Send messages from the buffer (1)."""
        while self._buffer and not self.path.is_stalled and self._unread < WINDOW and self._has_bandwidth():
            message = self._buffer.popleft()
            self._passed_bytes += self.path.size(message)
            if self._passed_bytes > self.path.limit_bytes:
                self._closer.reached_limit(self)
                return
            sending_ns = self.path.sending_ns(message)
            self._free_at_ns = self._loop.now_ns + sending_ns
            self._unread += 1
            self._before_ns, self._slow = self._last_ns, [message]
            self._last_ns = max(self._last_ns, self._free_at_ns + self.path.delay_ns())
            self._schedule(self._last_ns, self._arrive_first, self._slow)
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

    def _hurry(self) -> None:
        """Let what is left of the message that is being sent pass at once: its narrow link is wide again."""
        self._last_ns = max(self._before_ns, self._last_ns - (self._free_at_ns - self._loop.now_ns))
        self._free_at_ns = self._loop.now_ns
        self._schedule(self._last_ns, self._arrive_first, self._slow)

    def _arrive_first(self, slow: list[Message]) -> None:
        """Let the message arrive, unless it did so before."""
        if slow:
            self._arrive(slow.pop())

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
