"""A small cluster that uses all that the simulation has, and a run of it under drawn faults.

Three peers log numbers, gossip them over fifo links and tell a subscriber; each sends beats as datagrams to a beacon.
`python -m tests.scenario.simulation.toy FIRST LAST [allocate]` prints a digest of everything for each seed.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

import msgspec

from harness.core.draw import Draw, Stream
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Delivery,
    Drained,
    Durable,
    Event,
    Links,
    Machine,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.record import Complete, Evidence, Fault, Invoke
from harness.core.seams import CallFailed, Client, Connection, MachineCluster, Node, Option, Parameter
from harness.runtimes.simulation.world import World
from nemesis.plan import Effect, Step

MS = 1_000_000
PEERS = (NodeId("n1"), NodeId("n2"), NodeId("n3"))
BEACON, SUBSCRIBER = NodeId("b1"), NodeId("s1")
BEAT_NS, LOAD_NS, TIMEOUT_NS = 15 * MS, 1_500 * MS, 60 * MS


class Add(msgspec.Struct, frozen=True, tag=True):
    amount: int


class Gossip(msgspec.Struct, frozen=True, tag=True):
    amount: int
    position: int


class Beat(msgspec.Struct, frozen=True, tag=True):
    clock_ns: int


class Peer:
    """Logs what clients add, and tells the others once it is durable."""

    def __init__(self, node: NodeId) -> None:
        self.others = [peer for peer in PEERS if peer != node]
        self.length = 0
        self.waiting: dict[int, tuple[NodeId, int, Add]] = {}

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self.length = len(durable.log("added"))
        context.set_timer("beat", BEAT_NS)

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender=sender, message=Call(number=number, body=Add() as add)):
                context.append("added", add)
                context.point("before-sync")
                self.length += 1
                self.waiting[self.length] = (sender, number, add)
                context.sync(self.length)
            case Synced(token=token):
                sender, number, add = self.waiting.pop(token)
                for other in self.others:
                    context.send(other, Gossip(add.amount, token))
                context.point("before-answer")
                context.send(sender, Answer(number, add))
                if context.queued(SUBSCRIBER) < 100:
                    context.send(SUBSCRIBER, Gossip(add.amount, token))
            case TimerFired():
                context.set_timer("beat", BEAT_NS + context.draw("beat").below(MS))
                context.send(BEACON, Beat(context.local_clock_ns()))
            case Closed(peer=peer):
                context.sometimes("closed")
                if peer == SUBSCRIBER:
                    context.send(SUBSCRIBER, Gossip(0, self.length))
            case Received(message=message):
                if not isinstance(message, Gossip | Beat):
                    context.unexpected(message)
            case Drained():
                context.sometimes("drained")


class Beacon:
    """Sends every other beat back, and keeps their count."""

    beats = 0

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        kept = durable.value("beats")
        self.beats = kept.clock_ns if isinstance(kept, Beat) else 0

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        if isinstance(event, Received) and isinstance(event.message, Beat):
            self.beats += 1
            context.put("beats", Beat(self.beats))
            context.probe("clock", event.message.clock_ns)
            if context.draw("echo").chance(1, 2):
                context.send(event.sender, event.message)
            if self.beats % 10 == 0:
                context.sync(self.beats)


class Subscriber:
    """Delivers what peers tell it; each start is a session of its own."""

    session = 0

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self.session = context.now_ns()
        context.deliver(Delivery(session=self.session, kind="open"))

    def dump(self, context: Context) -> None:
        """Nothing to show."""

    def handle(self, event: Event, context: Context) -> None:
        if isinstance(event, Received) and isinstance(event.message, Gossip):
            row = event.message
            context.deliver(
                Delivery(session=self.session, kind="row", key=event.sender, value=row.amount, position=row.position)
            )


@dataclass
class Toy(MachineCluster):
    """The cluster. `machines` makes another machine in place of one of its own."""

    machines: Mapping[NodeId, Callable[[], Machine]] = field(default_factory=dict)
    name: str = "toy"
    summary: str = "numbers and beats"
    nodes: tuple[Node, ...] = (*(Node(peer, "peer") for peer in PEERS), Node(BEACON, "beacon"), Node(SUBSCRIBER, "sub"))
    links: Links = field(
        default_factory=lambda: {
            ("client", "peer"): "fifo",
            ("peer", "client"): "fifo",
            ("peer", "peer"): "fifo",
            ("peer", "sub"): "fifo",
            ("peer", "beacon"): "datagram",
            ("beacon", "peer"): "datagram",
        }
    )
    promises: tuple[Promise, ...] = ()
    stream: StreamContract | None = None
    bugs: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    points: tuple[str, ...] = ("before-sync", "before-answer")
    goals: tuple[str, ...] = ("closed", "drained")
    faults: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    settle_ns: int = 1000 * MS

    def machine(self, node: NodeId) -> Machine:
        if node in self.machines:
            return self.machines[node]()
        if node == BEACON:
            return Beacon()
        return Subscriber() if node == SUBSCRIBER else Peer(node)

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        raise NotImplementedError("the toy is driven by `Toy` runs of its own")

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        return self.promises

    def bounds(self, settings: Settings) -> Bounds:
        return Bounds()


@dataclass
class Outcome:
    """A run: its records, the effects of its faults by kind, and a digest of everything."""

    records: list[Evidence]
    effects: dict[str, int]
    digest: str


def run(seed: int) -> Outcome:
    """One run under faults drawn from the seed."""
    records: list[Evidence] = []
    draw = Draw(seed)
    world = World(Toy(), Settings(), draw, records.append)
    world.start()
    steps = plan(draw.stream("plan"))
    effects = world.loop.run(load(world, draw.stream("load"), steps, records))
    totals: dict[str, int] = {}
    for step, effect in zip(steps, effects, strict=True):
        totals[step.fault] = totals.get(step.fault, 0) + effect.count
    everything = (records, world.positions(), world.durable_digests(), world.handled(), world.goals())
    encoded = msgspec.msgpack.encode(everything, order="sorted")
    return Outcome(records, totals, blake2b(encoded, digest_size=16).hexdigest())


def plan(draw: Stream) -> list[Step]:
    """One to two steps of each kind, at drawn times."""
    pairs = [
        f"{a}>{b}" for a in (*PEERS, "client") for b in (*PEERS, SUBSCRIBER) if a != b and (a, b) != ("client", "s1")
    ]
    beats = [f"{peer}>{BEACON}" for peer in PEERS]
    nodes: list[str] = [node.id for node in Toy().nodes]
    peers: list[str] = list(PEERS)
    kinds: list[tuple[str, list[str], dict[str, int | str]]] = [
        ("cut", pairs, {}),
        ("stall", pairs, {}),
        ("delay", pairs, {"latency_ns": 3 * MS, "jitter_ns": 9 * MS}),
        ("bandwidth", pairs, {"bytes_per_s": 2_000}),
        ("drop", beats, {"permille": 300}),
        ("duplicate", beats, {"permille": 300}),
        ("reorder", beats, {"permille": 300}),
        ("crash", nodes, {"disk": draw.choice(["lost", "torn", "kept"])}),
        ("crash", peers, {"point": "before-answer"}),
        ("pause", nodes, {}),
        ("pause", peers, {"point": "before-sync"}),
        ("consumer", nodes, {"delay_ns": 5 * MS}),
        ("clock", nodes, {"step_ns": -40 * MS, "drift_ppm": 5000}),
        ("clock", nodes, {"freeze": 1}),
    ]
    steps = []
    for fault, targets, args in kinds:
        at_ns = draw.below(LOAD_NS)
        chosen = tuple(draw.sample(targets, draw.between(1, 3)))
        until_ns = at_ns + draw.between(50, 400) * MS
        steps.append(Step(fault=fault, package="partition", at_ns=at_ns, until_ns=until_ns, targets=chosen, args=args))
    return steps


async def load(world: World, draw: Stream, steps: list[Step], records: list[Evidence]) -> list[Effect]:
    """Three clients and the faults, then a pause in which all comes to rest."""
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(client(world, draw, number, records))
        faults = [group.create_task(fault(world, number, step, records)) for number, step in enumerate(steps)]
    await world.clock.sleep_ns(1000 * MS)
    return [task.result() for task in faults]


async def client(world: World, draw: Stream, number: int, records: list[Evidence]) -> None:
    """Add numbers, one after the other; after an unclear outcome go on under another address."""
    index = number
    connection = world.network.connect(f"client-{index}")
    while world.clock.now_ns() < LOAD_NS:
        records.append(Invoke(index, world.clock.now_ns(), 0, number, "add", index))
        try:
            await connection.call(draw.choice(PEERS), Add(index), TIMEOUT_NS)
            records.append(Complete(index, world.clock.now_ns(), "ok"))
        except CallFailed as failure:
            outcome: Literal["fail", "info"] = "fail" if failure.is_definite else "info"
            records.append(Complete(index, world.clock.now_ns(), outcome, error=str(failure)))
            await connection.close()
            connection = world.network.connect(f"client-{index}-again")
        index += 3
        await world.clock.sleep_ns(draw.below(4 * MS))
    await connection.close()


async def fault(world: World, number: int, step: Step, records: list[Evidence]) -> Effect:
    """Carry one step out."""
    await world.clock.sleep_ns(step.at_ns)
    await world.faults.apply(step)
    await world.clock.sleep_ns(step.until_ns - step.at_ns)
    await world.faults.undo(step)
    effect = await world.faults.effect(step)
    records.append(Fault(world.clock.now_ns(), number, "end", step.fault, step.targets, effect.count, effect.note))
    return effect


def allocate(stop: threading.Event) -> None:
    """Make and drop objects until told to stop, as a thread of a library would."""
    while not stop.is_set():
        [object() for _ in range(997)]


def main() -> None:
    """Print the digest of each seed."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    stop = threading.Event()
    thread = threading.Thread(target=allocate, args=(stop,))
    if "allocate" in sys.argv:
        thread.start()
    try:
        for seed in range(first, last):
            sys.stdout.write(f"{seed} {run(seed).digest}\n")
    finally:
        stop.set()


if __name__ == "__main__":
    main()
