"""Prints how many microseconds of processor time the simulation takes for each delivered message, all in all.

Run as `python -m tests.bench.messages`. *Empty*: a machine whose handler does nothing, sent bursts of messages by
another end. *Small*: machines in a ring, each of which sets a field and sends one message on, so that the figure holds
the context, the effects and the timing of a whole step as well. The least of five rounds is printed: what else the
computer does can only add to it.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine

import msgspec

from harness.core.draw import Draw
from harness.core.machine import Context, Durable, Event, Machine, Message, NodeId, Received, Settings
from harness.runtimes.simulation.host import Host, Surroundings
from harness.runtimes.simulation.links.fifo import Fifo, Unread
from harness.runtimes.simulation.links.links import Links, Port
from harness.runtimes.simulation.loop import VirtualLoop

ROUNDS = 5
MESSAGES = 200_000
BURST = 100
NODES = 8
TOKENS = 64
MUST_US = 4.0


class Token(msgspec.Struct, frozen=True, tag=True):
    """What goes around."""

    hops: int


class Empty:
    """Does nothing with any event."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        """Nothing is to be taken up."""

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        """Nothing is done."""


class Small:
    """Remembers the last message, and sends one to the next node."""

    def __init__(self, following: NodeId) -> None:
        self.following = following
        self.hops = 0

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        """Nothing is to be taken up."""

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        """Send the token on."""
        if isinstance(event, Received) and isinstance(event.message, Token):
            self.hops = event.message.hops
            context.send(self.following, Token(self.hops + 1))


class Source:
    """The end that the bursts come from."""

    def receive(self, pipe: Unread, message: Message) -> None:
        """Nothing comes back."""

    def closed(self, peer: NodeId, ended: tuple[Fifo, ...]) -> None:
        """Nothing closes."""

    def drained(self, peer: NodeId) -> None:
        """Nothing waits."""


def nodes(make_machine: Callable[[NodeId], Machine]) -> tuple[VirtualLoop, list[Host], Port]:
    """Eight nodes that have started, and a port for a source."""
    loop, draw = VirtualLoop(), Draw(0)
    ids = [NodeId(f"n{number}") for number in range(NODES)]
    links = Links({("node", "node"): "fifo", ("client", "node"): "fifo"}, dict.fromkeys(ids, "node"), loop, draw)
    around = Surroundings(
        loop=loop, links=links, draw=draw, settings=Settings(), make_machine=make_machine, record=lambda _: None
    )
    hosts = [Host(node, around) for node in ids]
    for host in hosts:
        host.start()
    return loop, hosts, links.attach(NodeId("source"), Source())


def empty_us() -> float:
    """Microseconds for a message to a machine that does nothing."""
    loop, hosts, port = nodes(lambda _: Empty())

    async def bursts() -> None:
        while hosts[0].handled < MESSAGES:
            for number in range(BURST):
                port.send(hosts[0].node, Token(number))
            await asyncio.sleep(0.01)

    return measured_us(loop, bursts, hosts)


def small_us() -> float:
    """Microseconds for a message to a machine that sends one on."""
    loop, hosts, port = nodes(lambda node: Small(NodeId(f"n{(int(node[1:]) + 1) % NODES}")))

    async def ring() -> None:
        for number in range(TOKENS):
            port.send(hosts[number % NODES].node, Token(0))
        while hosts[0].handled < MESSAGES // NODES:
            await asyncio.sleep(0.1)

    return measured_us(loop, ring, hosts)


def measured_us(loop: VirtualLoop, main: Callable[[], Coroutine[object, object, None]], hosts: list[Host]) -> float:
    """Run `main`; microseconds of this process for each event that was handled."""
    before = time.process_time_ns()
    loop.run(main())
    return (time.process_time_ns() - before) / 1000 / sum(host.handled for host in hosts)


def bench() -> None:
    """Print both figures, with the garbage collector off, as in a run."""
    gc.disable()
    for name, measure in (("empty", empty_us), ("small", small_us)):
        least = min(measure() for _ in range(ROUNDS))
        print(f"{name} handler: {least:.2f} us for each delivered message (must: {MUST_US})")


if __name__ == "__main__":
    bench()
