"""A cluster for tests: its machines do what a client asks for, and remember what has happened to them."""

from collections.abc import Callable
from types import MappingProxyType
from typing import assert_never

from msgspec import Struct

from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Delivery,
    Drained,
    Dump,
    Durable,
    Event,
    Machine,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.seams import Client, Connection, Node, Parameter


class Step(Struct, frozen=True, array_like=True):
    """One effect: `what` is a method of the context, or one that `_do` knows."""

    what: str
    name: str = ""
    number: int = 0


class Do(Struct, frozen=True, tag=True):
    """Carry these out in order."""

    steps: tuple[Step, ...]


class Note(Struct, frozen=True, tag=True):
    """What machines send to each other, and write down."""

    number: int
    text: str = ""


class Did(Struct, frozen=True, tag=True):
    """Up to here it has been carried out; `draws` shows a random stream."""

    draws: tuple[int, ...] = ()


class Ask(Struct, frozen=True, tag=True):
    """What has happened?"""


class Seen(Struct, frozen=True, tag=True):
    """That has: what the disk held at the start, and all events since, as words."""

    logs: dict[str, list[int]]
    values: dict[str, int]
    events: list[str]


LOGS = ("log", "other")
KEYS = ("key", "other")


class ScriptedMachine:
    """Answers the client whose `sync` step has a token when that is done."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._events: list[str] = []
        self._syncs: dict[int, tuple[NodeId, int]] = {}
        self._logs = {log: [note.number for note in durable.log(log) if isinstance(note, Note)] for log in LOGS}
        values = [(key, durable.value(key)) for key in KEYS]
        self._values = {key: value.number for key, value in values if isinstance(value, Note)}
        if "recover" in settings.bugs:
            raise ValueError("a bug in recover")

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Call(number, Ask())):
                seen = Seen(self._logs, self._values, self._events[:])
                context.send(sender, Answer(number, seen))
            case Received(sender, Call(number, Do(steps))):
                for step in steps:
                    self._do(step, sender, number, context)
            case Received(sender, Note(number)):
                self._events.append(f"received {sender} {number}")
            case Received(_, message):
                context.unexpected(message)
            case TimerFired(name):
                self._events.append(f"timer {name}")
            case Synced(token):
                self._events.append(f"synced {token}")
                client, number = self._syncs.pop(token)
                context.send(client, Answer(number, Did()))
            case Closed(peer):
                self._events.append(f"closed {peer}")
            case Drained(peer):
                self._events.append(f"drained {peer}")
            case _:
                assert_never(event)

    def dump(self, context: Context) -> None:
        for place, event in enumerate(self._events):
            context.dump(Dump(object="event", key=place, value=event))

    def _do(self, step: Step, client: NodeId, call: int, context: Context) -> None:
        peer = NodeId(step.name)
        match step.what:
            case "fill":
                while context.queued(peer) < step.number:
                    context.send(peer, Note(0, "x" * 1000))
            case "burst":
                for number in range(step.number):
                    context.send(peer, Note(number))
            case "sync":
                self._syncs[step.number] = (client, call)
                context.sync(step.number)
            case "answer":
                stream = context.draw("test")
                context.send(client, Answer(call, Did(tuple(stream.below(1000) for _ in range(step.number)))))
            case _:
                _EFFECTS[step.what](context, step.name, step.number)


_EFFECTS: dict[str, Callable[[Context, str, int], None]] = {
    "send": lambda context, name, number: context.send(NodeId(name), Note(number)),
    "huge": lambda context, name, number: context.send(NodeId(name), Note(0, "x" * number)),
    "append": lambda context, name, number: context.append(name, Note(number)),
    "truncate": lambda context, name, number: context.truncate(name, number),
    "put": lambda context, name, number: context.put(name, Note(number)),
    "timer": lambda context, name, number: context.set_timer(name, number),
    "no timer": lambda context, name, _: context.cancel_timer(name),
    "deliver": lambda context, name, number: context.deliver(Delivery(session=1, kind="row", key=name, value=number)),
    "probe": lambda context, name, number: context.probe(name, number),
    "goal": lambda context, name, _: context.sometimes(name),
    "point": lambda context, name, _: context.point(name),
    "exit": lambda context, _, number: context.exit(number),
}


class Scripted:
    """Nodes a and b."""

    name = "scripted"
    summary = "for tests"
    nodes: tuple[Node, ...] = (Node(NodeId("a"), "data"), Node(NodeId("b"), "data"))
    links = MappingProxyType({("data", "data"): "fifo", ("client", "data"): "fifo", ("data", "client"): "fifo"})
    promises: tuple[Promise, ...] = ()
    stream: StreamContract | None = None
    bugs = MappingProxyType({"recover": "raises"})
    parameters: tuple[Parameter, ...] = ()
    points: tuple[str, ...] = ("here", "there")
    goals: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ("list-append",)
    settle_ns = 0

    def machine(self, node: NodeId) -> Machine:
        return ScriptedMachine()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        raise NotImplementedError

    def bounds(self, settings: Settings) -> Bounds:
        return Bounds()
