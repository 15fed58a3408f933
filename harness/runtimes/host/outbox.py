"""Evidence on its way to the history: kept until the harness has acknowledged it.

1. Sequences grow within a life, and from life to life: (life << 40) + 1, 2, ... So a receiver that takes only greater
   sequences than the last one taken takes everything once, however often a connection breaks.
2. An event that a node acts on is never lost, and its consequences elsewhere are recorded after it: the node sends and
   writes nothing before all evidence is acknowledged (`is_settled`). Else an operation that a restart made possible
   could precede that restart in the history.
3. Unacknowledged evidence is bounded: a node whose outbox `is_full` handles nothing until it has room.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from harness.runtimes.host.control import Evidence, Item
from harness.runtimes.host.frames import CONTROL_MAX, encode_frame

_LIFE_BITS: Final = 40
_UNACKNOWLEDGED_MAX: Final = 8 << 20  # In bytes.
_ITEMS_MAX: Final = 1000  # The most items of one frame.


class _Sent(NamedTuple):
    sequence: int
    frame: bytes


class Outbox:
    """The evidence of this life. `write` passes a frame to the control channel, or drops it if there is none."""

    def __init__(self, life: int, write: Callable[[bytes], None], now_ns: Callable[[], int]) -> None:
        self._write, self._now_ns = write, now_ns
        self._last = life << _LIFE_BITS
        self._items: list[Item] = []
        self._unacknowledged: deque[_Sent] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """True if there is too much unacknowledged evidence to add more."""
        return self._bytes > _UNACKNOWLEDGED_MAX

    @property
    def is_settled(self) -> bool:
        """True if everything is acknowledged."""
        return not (self._items or self._unacknowledged)

    def add(self, item: Item) -> None:
        """Add evidence for the next `flush`."""
        self._items.append(item)

    def flush(self) -> None:
        """Send the added evidence. Raises ValueError if an item is too large for a frame."""
        while self._items:
            items = self._items[:_ITEMS_MAX]
            del self._items[:_ITEMS_MAX]
            self._send(tuple(items))

    def acknowledge(self, sequence: int) -> None:
        """Note that the history has all evidence up to that sequence."""
        while self._unacknowledged and self._unacknowledged[0].sequence <= sequence:
            self._bytes -= len(self._unacknowledged.popleft().frame)

    def send_again(self) -> None:
        """Send everything unacknowledged on a new connection, before anything else."""
        for sent in self._unacknowledged:
            self._write(sent.frame)

    def _send(self, items: tuple[Item, ...]) -> None:
        try:
            frame = encode_frame(Evidence(self._last + 1, items, self._now_ns()), CONTROL_MAX)
        except ValueError:
            if len(items) == 1:
                raise
            middle = len(items) // 2
            self._send(items[:middle])
            self._send(items[middle:])
            return
        self._last += 1
        self._unacknowledged.append(_Sent(self._last, frame))
        self._bytes += len(frame)
        self._write(frame)
