"""A writer: what applications embed to write to a stream, here a node of its own, so that it can crash and pause.

Each incarnation takes a name that no writer ever had, so that nobody mistakes its events for those of an earlier one.
"""

from collections import deque

from clusters.parts.procedures import TIMER, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega.controller.metadata import Superseded, counted, history
from clusters.pravega.messages import Done, Drain, Refused, Told, Transact, Unclear
from clusters.pravega.shape import MS
from clusters.pravega.site import Site
from clusters.pravega.writers.scan import drained, scan
from clusters.pravega.writers.stream_writer import StreamWriter
from clusters.pravega.writers.transaction import transact
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    TimerFired,
)

AGAIN_NS = 50 * MS
WAITING_MAX = 64


class Writer:
    """The machine of the writers w1 and w2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._name = ""
        self._stream: StreamWriter | None = None
        self._waiting: deque[tuple[NodeId, int, Transact]] = deque()
        self._site.procedures.run(self._begin())

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Call(number, Transact() as request)):
                if self._stream is not None:
                    self._transact(self._stream, sender, number, request)
                elif len(self._waiting) < WAITING_MAX:
                    self._waiting.append((sender, number, request))
                else:
                    context.send(sender, Answer(number, Refused("the writer has not begun")))
            case Received(sender, Call(number, Drain())):
                self._site.procedures.run(self._drain(sender, number))
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: a writer has no state that a check needs."""

    def _begin(self) -> Procedure[None]:
        while self._stream is None:
            try:
                self._name = f"{self._site.node}.{(yield from counted('writer-names'))}"
                active = (yield from history()).active
                self._stream = StreamWriter(self._site, self._name, active)
            except Superseded:
                yield Sleep(AGAIN_NS)
        while self._waiting:
            self._transact(self._stream, *self._waiting.popleft())

    def _transact(self, stream: StreamWriter, client: NodeId, number: int, request: Transact) -> None:
        kinds = [mop.f for mop in request.mops]
        if kinds == ["append"]:
            stream.write((client, number), request.mops[0].key, request.mops[0].value)
        elif set(kinds) in ({"append"}, {"r"}):
            self._site.procedures.run(self._carry_out(client, number, request))
        else:
            refused = Refused("a stream takes appends alone or reads alone")
            self._site.context.send(client, Answer(number, refused))

    def _carry_out(self, client: NodeId, number: int, request: Transact) -> Procedure[None]:
        answer: Done | Refused | Unclear
        if request.mops[0].f == "r":
            answer = yield from scan(self._site, request.mops)
        else:
            answer = yield from transact(self._site, self._name, request.mops)
        self._site.context.send(client, Answer(number, answer))

    def _drain(self, client: NodeId, number: int) -> Procedure[None]:
        answer = yield from drained()
        self._site.context.send(client, Answer(number, answer))
