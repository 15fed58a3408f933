"""Paths: what happens on the way from one address to another, whichever connection uses it.

A path is a directed pair of names as a fault plan writes them: node ids, or "client" for all clients at once. It knows
the delay of a message and the conditions that faults lay upon it, and counts for each what it did.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from harness.core.draw import Draw, Stream
from harness.core.machine import Message

CLIENT: Final = "client"
_LATENCY_NS_MIN: Final = 100_000
_LATENCY_NS_MEAN: Final = 400_000  # Beyond the minimum: machines in one city.
# Half of the seeds have an uneven network: some paths, each direction by itself, are so many times as long.
_DISTANCES: Final = (1, 1, 2, 8, 32)
_CLOSE_NS_MIN: Final = 200_000
_CLOSE_NS_MEAN: Final = 5_000_000  # Beyond the minimum: how long until an end learns that its connection is gone.
_REORDER_NS_MIN: Final = 1_000_000
_REORDER_NS_MAX: Final = 20_000_000
_SECOND_NS: Final = 1_000_000_000
# What closes connections and lets none be made. A cut that is simulated already loses what is under way, as a reset
# does; and how an end was told, by an end of file or by an error, is the same `Closed` to a machine.
BREAKING: Final = ("cut", "reset")
_encoded = msgspec.msgpack.Encoder().encode


@dataclass(eq=False, slots=True, kw_only=True)
class Condition:
    """What one fault does to one path, by the words of a plan. `touched` counts the messages that felt it, or the
    connections that it closed; of a cut and of a reset both."""

    fault: str
    latency_ns: int = 0
    jitter_ns: int = 0
    bytes_per_s: int = 0
    bytes: int = 0
    permille: int = 0
    touched: int = 0


class Pipe(Protocol):
    """What uses a path: a connection, or the datagrams of one pair of ends."""

    number: int

    def changed(self) -> None:
        """The conditions of the path are others now."""


class Path:
    """One directed pair of names, and all that is in force there. Fields are for reading, but by `begin` and `end`."""

    def __init__(self, source: str, target: str, draw: Draw) -> None:
        name = f"{source}>{target}"
        self.name = name
        self.is_plain = True
        self.is_cut = False
        self.is_stalled = False
        self.bytes_per_s = 0  # 0: as many as you like.
        self.limit_bytes = 0  # A connection closes after so many; 0: it does not.
        self.pipes: dict[int, Pipe] = {}  # Those in use, in order of creation.
        self.latency_ns_mean = _LATENCY_NS_MEAN * _distance(name, draw)
        self.exponential = draw.stream(f"network/{name}").exponential
        self._draw = draw
        self._conditions: list[Condition] = []
        self._latency_ns = 0
        self._jitter_ns = 0

    def begin(self, condition: Condition) -> None:
        """Lay a condition upon the path."""
        self._conditions.append(condition)
        self._refresh()

    def end(self, condition: Condition) -> None:
        """Take it away again; nothing happens if it is gone already."""
        if condition in self._conditions:
            self._conditions.remove(condition)
            self._refresh()

    def delay_ns(self) -> int:
        """How long the next message takes, as it is on a plain path, and what conditions add."""
        delay_ns = plain_delay_ns(self)
        if self._latency_ns or self._jitter_ns:
            self.touch("delay")
            delay_ns += self._latency_ns + self._faults().below(self._jitter_ns + 1)
        return delay_ns

    def sending_ns(self, message: Message) -> int:
        """How long the limited bandwidth is taken by that message; 0 without a limit."""
        return len(_encoded(message)) * _SECOND_NS // self.bytes_per_s if self.bytes_per_s else 0

    def size(self, message: Message) -> int:
        """The bytes of that message, where a limit counts them; else 0."""
        return len(_encoded(message)) if self.limit_bytes else 0

    def close_delay_ns(self) -> int:
        """After what time an end learns that its connection has gone, or was refused."""
        return _CLOSE_NS_MIN + self._faults().exponential(_CLOSE_NS_MEAN)

    def copies(self) -> int:
        """How many copies of the next datagram arrive: 0, 1 or more."""
        if self._befalls("drop"):
            return 0
        return 2 if self._befalls("duplicate") else 1

    def reorder_ns(self) -> int:
        """How much later than others the next datagram arrives, if others shall overtake it; else 0."""
        return self._faults().between(_REORDER_NS_MIN, _REORDER_NS_MAX) if self._befalls("reorder") else 0

    def touch(self, *faults: str) -> None:
        """Count one message, or one connection, that felt these kinds of fault."""
        for condition in self._conditions:
            if condition.fault in faults:
                condition.touched += 1

    def _faults(self) -> Stream:
        """Faults draw from a stream of their own, so that leaving out a step moves no message that it never touched."""
        return self._draw.stream(f"network-faults/{self.name}")

    def _befalls(self, fault: str) -> bool:
        for condition in self._conditions:
            if condition.fault == fault and self._faults().chance(condition.permille, 1000):
                condition.touched += 1
                return True
        return False

    def _refresh(self) -> None:
        conditions = self._conditions
        self.is_plain = not conditions
        self.is_cut = any(condition.fault in BREAKING for condition in conditions)
        self.is_stalled = any(condition.fault == "stall" for condition in conditions)
        self.bytes_per_s = min((condition.bytes_per_s for condition in conditions if condition.bytes_per_s), default=0)
        self.limit_bytes = min((condition.bytes for condition in conditions if condition.bytes), default=0)
        self._latency_ns = sum(condition.latency_ns for condition in conditions)
        self._jitter_ns = sum(condition.jitter_ns for condition in conditions)
        for pipe in tuple(self.pipes.values()):
            pipe.changed()


def plain_delay_ns(path: Path) -> int:
    """The time that a message takes where no fault is in force."""
    return _LATENCY_NS_MIN + path.exponential(path.latency_ns_mean)


def _distance(name: str, draw: Draw) -> int:
    """How much longer that path is than the shortest ones. The choice is the same whenever it is asked."""
    is_uneven = Stream(draw.seed, "network-shape").chance(1, 2)
    return draw.stream(f"network-distance/{name}").choice(_DISTANCES) if is_uneven else 1
