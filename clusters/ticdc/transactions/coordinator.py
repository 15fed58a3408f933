"""A coordinator (TiDB): carries out clients' transactions, and keeps nothing on disk.

A transaction that conflicts is tried again a few times, each with a new start: the client has seen nothing of it.
"""

from clusters.parts.client import Refused, Unclear
from clusters.ticdc.oracle.messages import Timestamp
from clusters.ticdc.regions.messages import FromRegion
from clusters.ticdc.shape import MS
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.flashback import flashback, restored
from clusters.ticdc.transactions.messages import Done, Flashback, Reshape, Restore, Restored, Seen, StaleRead, Transact
from clusters.ticdc.transactions.reshaping import reshape
from clusters.ticdc.transactions.restore import restore
from clusters.ticdc.transactions.stale import stale_read
from clusters.ticdc.transactions.tasks import Procedure, Sleep, Tasks
from clusters.ticdc.transactions.two_phase import TwoPhase
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Durable,
    Event,
    Message,
    NodeId,
    Received,
    Settings,
    TimerFired,
)
from harness.core.record import MicroOp

TRIES = 4
TRY_NS = 400 * MS  # No attempt begins later than this.
RETRY_NS = (2 * MS, 12 * MS)


class Coordinator:
    """The machine of the coordinators t1 and t2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings.bugs, settings.parameters)
        self._site.context = context
        self._tasks = Tasks(self._site)
        self._two_phase = TwoPhase(self._site, self._tasks)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        if isinstance(event, Received):
            self._receive(event.sender, event.message)
        elif isinstance(event, TimerFired):
            self._tasks.tick()
        elif isinstance(event, Closed):
            self._tasks.closed(event.peer)

    def _receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, FromRegion):
            self._tasks.answered(message.number, message.body)
        elif isinstance(message, Timestamp):
            self._tasks.answered(message.number, message)
        elif isinstance(message, Call):
            self._called(sender, message)
        else:
            self._site.context.unexpected(message)

    def _called(self, client: NodeId, call: Call) -> None:
        number = call.number
        match call.body:
            case Transact(mops):
                self._tasks.run(self._transact(client, number, mops))
            case StaleRead() as request:
                self._tasks.run(self._read_stale(client, number, request))
            case Restore() | Restored() | Flashback() as request:
                self._tasks.run(self._restore(client, number, request))
            case Reshape() as request:
                self._tasks.run(self._change_region(client, number, request))
            case _:
                self._site.context.unexpected(call)

    def dump(self, context: Context) -> None:
        """Do nothing: a coordinator has no state that a check needs."""

    def _read_stale(self, client: NodeId, number: int, request: StaleRead) -> Procedure[None]:
        answer = yield from stale_read(self._site, self._tasks, self._two_phase, request)
        self._site.send(client, Answer(number, answer))

    def _restore(self, client: NodeId, number: int, request: Restore | Restored | Flashback) -> Procedure[None]:
        answer: Seen | Done | Refused | Unclear
        match request:
            case Restore():
                answer = yield from restore(self._site, self._tasks, request)
            case Restored():
                answer = yield from restored(self._two_phase, request)
            case Flashback():
                answer = yield from flashback(self._site, self._tasks, self._two_phase, request)
        self._site.send(client, Answer(number, answer))

    def _change_region(self, client: NodeId, number: int, request: Reshape) -> Procedure[None]:
        answer = yield from reshape(self._site, self._tasks, request)
        self._site.send(client, Answer(number, answer))

    def _transact(self, client: NodeId, number: int, mops: tuple[MicroOp, ...]) -> Procedure[None]:
        begun_ns = self._site.now_ns()
        answer: Done | Refused | Unclear = Refused("not tried")
        for _ in range(TRIES):
            outcome = yield from self._two_phase.attempt(mops)
            if isinstance(outcome, Done | Unclear):
                answer = outcome
                break
            answer = Refused(outcome.reason)
            if not outcome.may_retry or self._site.now_ns() > begun_ns + TRY_NS:
                break
            self._site.context.sometimes("a transaction began anew after a conflict")
            yield Sleep(self._site.context.draw("retry").between(*RETRY_NS))
        self._site.context.point("before-client-answer")
        self._site.send(client, Answer(number, answer))
