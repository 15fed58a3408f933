"""A datagram link: messages travel independently, and a lost one is not reported.

1. Each message arrives at now + its own delay, so a later one may overtake; faults lose, duplicate and delay messages.
2. Messages to an end that is down, or over a cut path, are lost. A stall holds messages back, at most BUFFER.
3. A receiver keeps at most WINDOW unread messages of one sender; further ones are lost.
4. Limited bandwidth delays messages by at most QUEUE_NS; one that would wait longer is lost.
"""

from collections import deque
from typing import Final, Protocol

from harness.core.machine import Message, NodeId
from harness.runtimes.simulation.links.fifo import BUFFER, WINDOW, End
from harness.runtimes.simulation.links.paths import Path
from harness.runtimes.simulation.loop import VirtualLoop

QUEUE_NS: Final = 200_000_000


class Directory(Protocol):
    """The ends that are up, by address."""

    def receiver(self, address: NodeId) -> End | None:
        """The end of that address, or None if it is down."""


class Datagrams:
    """The datagrams from one end to another."""

    is_open = True

    def __init__(
        self, path: Path, number: int, *, source: NodeId, target: NodeId, directory: Directory, loop: VirtualLoop
    ) -> None:
        self.number, self.source, self.target = number, source, target
        self.path = path
        self._directory, self._loop = directory, loop
        self._unread = 0
        self._held: deque[Message] = deque()
        self._free_at_ns = 0

    def send(self, message: Message) -> None:
        """Send the message, or lose it."""
        path = self.path
        if path.is_plain:
            self._loop.schedule(self._loop.now_ns + path.delay_ns(), self._arrive, message)
        elif path.is_cut:
            path.touch("cut")
        elif path.is_stalled:
            path.touch("stall")
            if len(self._held) < BUFFER:
                self._held.append(message)
        else:
            for _ in range(path.copies()):
                self._send_copy(message)

    def queued(self, to_come: int) -> int:
        """The number of messages held back by a stall, plus those of the next `to_come` that exceed the window."""
        return len(self._held) + max(0, to_come - WINDOW)

    def consumed(self) -> None:
        """Note that the receiver has handled a message."""
        self._unread -= 1

    def changed(self) -> None:
        if self.path.is_cut:
            self._held.clear()
        elif not self.path.is_stalled:
            while self._held:
                self.send(self._held.popleft())

    def close(self) -> None:
        """Discard unsent messages: the sender is gone."""
        self._held.clear()
        self.path.pipes.pop(self.number, None)

    def _send_copy(self, message: Message) -> None:
        path, now_ns = self.path, self._loop.now_ns
        wait_ns = max(0, self._free_at_ns - now_ns)
        if path.bytes_per_s and wait_ns:
            path.touch("bandwidth")
            if wait_ns > QUEUE_NS:
                return
        self._free_at_ns = now_ns + wait_ns + path.sending_ns(message)
        self._loop.schedule(self._free_at_ns + path.delay_ns() + path.reorder_ns(), self._arrive, message)

    def _arrive(self, message: Message) -> None:
        receiver = self._directory.receiver(self.target)
        if self.path.is_cut:
            self.path.touch("cut")
        elif self.path.is_stalled:
            self.path.touch("stall")
            self._held.append(message)
        elif receiver is not None and self._unread < WINDOW:
            self._unread += 1
            receiver.receive(self, message)
