"""The orders of the harness to a node on the control channel, and the state of its failpoints."""

import time
from collections.abc import Callable
from typing import Protocol, assert_never

from harness.runtimes.host.channel import Channel
from harness.runtimes.host.control import (
    Acknowledge,
    Arm,
    AskClocks,
    AskCounters,
    AskDump,
    Clocks,
    Counters,
    Disarm,
    FromHarness,
    Open,
    Probe,
    Reached,
    Release,
    Slow,
)
from harness.runtimes.host.links import Links
from harness.runtimes.host.outbox import Outbox


class Failpoints:
    """The armed failpoints, and the one at which the node is frozen."""

    def __init__(self) -> None:
        self.frozen: Reached | None = None
        self._armed: dict[int, str] = {}

    def arm(self, number: int, point: str) -> None:
        """Arm that failpoint; several orders at one point take effect in the order of arming."""
        self._armed[number] = point

    def disarm(self, number: int) -> None:
        """Cancel that order."""
        self._armed.pop(number, None)

    def reach(self, point: str) -> Reached | None:
        """Note that the machine reached that point; returns the freeze, if one begins now."""
        for number, armed in self._armed.items():
            if armed == point:
                del self._armed[number]
                self.frozen = Reached(number, point)
                return self.frozen
        return None

    def release(self, number: int) -> None:
        """End that freeze."""
        if self.frozen is not None and self.frozen.number == number:
            self.frozen = None


class Obedient(Protocol):
    """The node as orders change it."""

    delay_ns: int
    failpoints: Failpoints
    channel: Channel
    outbox: Outbox
    links: Links

    def now_ns(self) -> int: ...
    def local_clock_ns(self) -> int: ...
    def counters(self, number: int) -> Counters: ...
    def post(self, take: Callable[[int], None], what: int) -> None: ...
    def take_dump(self, number: int) -> None: ...
    def resume(self) -> None: ...


def obey(node: Obedient, order: FromHarness) -> None:
    """Carry out an order. Outdated orders are ignored."""
    match order:
        case Open():
            pass
        case Acknowledge(sequence):
            node.outbox.acknowledge(sequence)
            node.resume()
        case Arm(number, point):
            node.failpoints.arm(number, point)
        case Disarm(number):
            node.failpoints.disarm(number)
        case Release(number):
            node.failpoints.release(number)
            node.resume()
        case Slow(delay_ns):
            node.delay_ns = delay_ns
            node.resume()
        case Probe(to, nonce):
            node.links.probe(to, nonce)
        case AskClocks(number):
            monotonic_ns, realtime_ns = time.monotonic_ns(), time.time_ns()
            node.channel.tell(Clocks(number, node.now_ns(), monotonic_ns, node.local_clock_ns(), realtime_ns))
        case AskCounters(number):
            node.channel.tell(node.counters(number))
        case AskDump(number):
            node.post(node.take_dump, number)
        case _:
            assert_never(order)
