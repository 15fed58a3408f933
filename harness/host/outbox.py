"""Evidence on its way to the history: kept until the harness has acknowledged it.

1. Sequences grow within a life, and from life to life: (life << 40) + 1, 2, ... So who takes only what is greater than
   the last that it took takes everything once, however often a connection breaks.
2. Nothing that a node has seen is lost while it acts on it, and what others do because of it is recorded after it:
   the node sends and writes nothing before all is acknowledged (`is_settled`). Else an operation that a restart made
   possible could stand before that restart in the history.
3. What is not acknowledged is bounded: a node whose outbox `is_full` handles nothing until that is over.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from harness.host.control import Evidence, Item
from harness.host.frames import CONTROL_MAX, encode_frame

_LIFE_BITS: Final = 40
_UNACKNOWLEDGED_MAX: Final = 8 << 20  # Bytes.
_ITEMS_MAX: Final = 1000  # Of one frame.


class _Sent(NamedTuple):
    sequence: int
    frame: bytes


class Outbox:
    """What this life has to tell. `write` hands a frame to the control channel, or drops it if there is none."""

    def __init__(self, life: int, write: Callable[[bytes], None], now_ns: Callable[[], int]) -> None:
        self._write, self._now_ns = write, now_ns
        self._last = life << _LIFE_BITS
        self._items: list[Item] = []
        self._unacknowledged: deque[_Sent] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Is so much unacknowledged that nothing may be added?"""
        return self._bytes > _UNACKNOWLEDGED_MAX

    @property
    def is_settled(self) -> bool:
        """Is everything acknowledged?"""
        return not (self._items or self._unacknowledged)

    def add(self, item: Item) -> None:
        """Evidence for the next `flush`."""
        self._items.append(item)

    def flush(self) -> None:
        """Send what was added. Raises ValueError if an item is too large for a frame."""
        while self._items:
            items = self._items[:_ITEMS_MAX]
            del self._items[:_ITEMS_MAX]
            self._send(tuple(items))

    def acknowledge(self, sequence: int) -> None:
        """The history has all up to that sequence."""
        while self._unacknowledged and self._unacknowledged[0].sequence <= sequence:
            self._bytes -= len(self._unacknowledged.popleft().frame)

    def send_again(self) -> None:
        """A new connection: everything that is not acknowledged goes there first."""
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
