"""Paths: the conditions between one address and another, for every connection that uses them.

A path is a directed pair of names as a fault plan writes them: node ids, or "client" for all clients at once. It has
the delay of messages and the conditions that faults impose, and counts the effect of each.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from harness.core.draw import Draw, Stream
from harness.core.machine import Message
from nemesis.plan import DatagramFault, LinkFault

_LATENCY_NS_MIN: Final = 100_000
_LATENCY_NS_MEAN: Final = 400_000  # The mean in addition to the minimum, as for machines in one city.
# Half of the seeds have an uneven network: some paths, each direction separately, are longer by one of these factors.
_DISTANCES: Final = (1, 1, 2, 8, 32)
_CLOSE_NS_MIN: Final = 200_000
_CLOSE_NS_MEAN: Final = 5_000_000  # In addition to the minimum: until an end learns that its connection is gone.
_REORDER_NS_MIN: Final = 1_000_000
_REORDER_NS_MAX: Final = 20_000_000
_SECOND_NS: Final = 1_000_000_000
# The faults that close connections and prevent new ones. A simulated cut already loses messages in transit, as a reset
# does; and a machine gets the same `Closed` for an end of file and for an error.
BREAKING: Final = ("cut", "reset")
_encoded = msgspec.msgpack.Encoder().encode


@dataclass(eq=False, slots=True, kw_only=True)
class Condition:
    """The condition that one fault imposes on one path, in the terms of a plan.

    `touched` counts the affected messages, or the connections that it closed; for a cut or a reset both.
    """

    fault: LinkFault | DatagramFault
    latency_ns: int = 0
    jitter_ns: int = 0
    bytes_per_s: int = 0
    bytes: int = 0
    permille: int = 0
    touched: int = 0


class Pipe(Protocol):
    """A user of a path: a connection, or the datagrams of one pair of ends."""

    number: int

    def changed(self) -> None:
        """Note that the conditions of the path have changed."""


class Path:
    """One directed pair of names, and all conditions in force there. Change its fields only by `begin` and `end`."""

    def __init__(self, source: str, target: str, draw: Draw) -> None:
        name = f"{source}>{target}"
        self.name = name
        self.is_plain = True
        self.is_cut = False
        self.is_stalled = False
        self.bytes_per_s = 0  # 0: no limit.
        self.limit_bytes = 0  # A connection closes after this many bytes; 0: no limit.
        self.pipes: dict[int, Pipe] = {}  # Those in use, in order of creation.
        self.latency_ns_mean = _LATENCY_NS_MEAN * _distance(name, draw)
        # The delay of a message without faults in force.
        self.plain_delay_ns = draw.stream(f"network/{name}").exponentials(_LATENCY_NS_MIN, self.latency_ns_mean)
        self._draw = draw
        self._conditions: list[Condition] = []
        self._latency_ns = 0
        self._jitter_ns = 0

    def begin(self, condition: Condition) -> None:
        """Impose a condition on the path."""
        self._conditions.append(condition)
        self._refresh()

    def end(self, condition: Condition) -> None:
        """Remove a condition; does nothing if it is already gone."""
        if condition in self._conditions:
            self._conditions.remove(condition)
            self._refresh()

    def delay_ns(self) -> int:
        """The delay of the next message: that of the plain path, plus those of conditions."""
        delay_ns = self.plain_delay_ns()
        if self._latency_ns or self._jitter_ns:
            self.touch("delay")
            delay_ns += self._latency_ns + self._faults().below(self._jitter_ns + 1)
        return delay_ns

    def sending_ns(self, message: Message) -> int:
        """The time that the message occupies the limited bandwidth; 0 without a limit."""
        return len(_encoded(message)) * _SECOND_NS // self.bytes_per_s if self.bytes_per_s else 0

    def size(self, message: Message) -> int:
        """The bytes of that message, if a limit counts them; else 0."""
        return len(_encoded(message)) if self.limit_bytes else 0

    def close_delay_ns(self) -> int:
        """The time until an end learns that its connection has gone, or was refused."""
        return _CLOSE_NS_MIN + self._faults().exponential(_CLOSE_NS_MEAN)

    def copies(self) -> int:
        """The number of copies of the next datagram that arrive: 0, 1 or more."""
        if self._befalls("drop"):
            return 0
        return 2 if self._befalls("duplicate") else 1

    def reorder_ns(self) -> int:
        """The extra delay of the next datagram, if others shall overtake it; else 0."""
        return self._faults().between(_REORDER_NS_MIN, _REORDER_NS_MAX) if self._befalls("reorder") else 0

    def touch(self, *faults: LinkFault | DatagramFault) -> None:
        """Count one message, or one connection, that was affected by these kinds of fault."""
        for condition in self._conditions:
            if condition.fault in faults:
                condition.touched += 1

    def _faults(self) -> Stream:
        """The stream of faults, separate so that leaving out a step changes no message that the step did not touch."""
        return self._draw.stream(f"network-faults/{self.name}")

    def _befalls(self, fault: DatagramFault) -> bool:
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


def _distance(name: str, draw: Draw) -> int:
    """The factor by which that path is longer than the shortest ones; the same at every call."""
    is_uneven = Stream(draw.seed, "network-shape").chance(1, 2)
    return draw.stream(f"network-distance/{name}").choice(_DISTANCES) if is_uneven else 1
