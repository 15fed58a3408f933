"""Small parts for tests of the simulation: ends that remember, machines that are functions, a cluster of them."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from harness.core.draw import Draw
from harness.core.machine import Context, Durable, Event, Machine, Message, NodeId, Settings
from harness.core.record import Evidence
from harness.core.seams import Node
from harness.runtimes.simulation.links.fifo import Fifo, Unread
from harness.runtimes.simulation.links.links import Links, Port
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.world import World
from tests.scenario.simulation.toy import Toy

MS = 1_000_000
A, B = NodeId("a"), NodeId("b")
T = TypeVar("T")


class Text(msgspec.Struct, frozen=True, tag=True):
    """A message, and a record."""

    number: int
    padding: str = ""


class Memory:
    """An end that remembers what reached it. While `is_slow`, it leaves messages unread."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.seen: list[tuple[int, str | int]] = []  # When, and the message's number, or what happened.
        self.is_slow = False
        self.unread: list[Unread] = []

    def receive(self, pipe: Unread, message: Message) -> None:
        assert isinstance(message, Text)
        self.seen.append((self.loop.now_ns, message.number))
        self.unread.append(pipe)
        if not self.is_slow:
            self.read_all()

    def closed(self, peer: NodeId, ended: tuple[Fifo, ...]) -> None:
        self.seen.append((self.loop.now_ns, f"closed {peer}"))
        for pipe in ended:
            pipe.forget()

    def drained(self, peer: NodeId) -> None:
        self.seen.append((self.loop.now_ns, f"drained {peer}"))

    def read_all(self) -> None:
        unread, self.unread = self.unread, []
        for pipe in unread:
            pipe.consumed()

    @property
    def numbers(self) -> list[int]:
        return [what for _, what in self.seen if isinstance(what, int)]

    @property
    def news(self) -> list[str]:
        return [what for _, what in self.seen if isinstance(what, str)]


EVEN = 3  # A seed whose network is even: no path is longer than others.


class Pair:
    """Two ends, a and b, with links of one kind."""

    def __init__(self, kind: str, seed: int = EVEN) -> None:
        self.loop = VirtualLoop()
        self.links = Links(
            {("node", "node"): kind, ("node", "client"): kind}, {A: "node", B: "node"}, self.loop, Draw(seed)
        )
        self.a, self.b = Memory(self.loop), Memory(self.loop)
        self.port_a: Port = self.links.attach(A, self.a)
        self.port_b: Port = self.links.attach(B, self.b)
        self.path = self.links.path("a", "b")

    def at(self, when_ns: int, act: Callable[[], object]) -> None:
        """Call `act` at that time."""
        self.loop.schedule(when_ns, lambda _: act(), None)

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.port_a.send(B, Text(number))

    def go(self, duration_ns: int) -> None:
        """Let so much time pass."""
        done = self.loop.create_future()
        self.loop.schedule(self.loop.now_ns + duration_ns, done.set_result, None)
        self.loop.run_until_complete(done)


Handler = Callable[[Event, Context], None]


class Actor:
    """A machine that remembers its events and does what a function says."""

    def __init__(
        self, on_event: Handler | None = None, on_start: Callable[[Durable, Context], None] | None = None
    ) -> None:
        self.events: list[tuple[int, Event]] = []
        self._on_event, self._on_start = on_event, on_start

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        if self._on_start is not None:
            self._on_start(durable, context)

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        self.events.append((context.now_ns(), event))
        if self._on_event is not None:
            self._on_event(event, context)


class Stage:
    """A world of actors: nodes a and b with fifo links. `lives` are the machines of each, in order of their starts."""

    def __init__(self, make: Callable[[NodeId], Actor], seed: int = 0) -> None:
        self.records: list[Evidence] = []
        self.lives: dict[NodeId, list[Actor]] = {A: [], B: []}

        def born(node: NodeId) -> Callable[[], Machine]:
            def machine() -> Machine:
                self.lives[node].append(make(node))
                return self.lives[node][-1]

            return machine

        cluster = Toy(
            machines={A: born(A), B: born(B)},
            nodes=(Node(A, "node"), Node(B, "node")),
            links={("node", "node"): "fifo", ("client", "node"): "fifo", ("node", "client"): "fifo"},
            points=("here",),
        )
        self.world = World(cluster, Settings(), Draw(seed), self.records.append)
        self.world.start()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run(main)

    def events(self, node: NodeId) -> list[Event]:
        """All that the last life of a node has handled."""
        return [event for _, event in self.lives[node][-1].events]
