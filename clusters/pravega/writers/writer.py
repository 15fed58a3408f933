"""A writer: what applications embed to write to a stream, here a node of its own, so that it can crash and pause.

Each incarnation takes a name that no writer ever had, so that nobody mistakes its events for those of an earlier one:
the node's, with the time of its beginning.
"""

from collections import deque

from clusters.parts.client import Refused, Unclear
from clusters.parts.procedures import TIMER, Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega.messages import (
    CheckTxn,
    Done,
    Drain,
    Epochs,
    GetHistory,
    NoteTime,
    RestoreGroup,
    SealStream,
    Status,
    Statuses,
    TakeCheckpoint,
    Told,
    Transact,
    TruncateStream,
)
from clusters.pravega.shape import CONTROLLER_PLACE, MS
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
NOTE_NS = 150 * MS
SEAL_NS = 3_000 * MS
STATUSES = 6  # Transactions in an answer to Statuses.
STATUS_NS = 800 * MS
WAITING_MAX = 64
HandedOn = TruncateStream | TakeCheckpoint | RestoreGroup
Request = Transact | SealStream | HandedOn | Statuses


class Writer:
    """The machine of the writers w1 and w2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._name = ""
        self._stream: StreamWriter | None = None
        self._txns: deque[int] = deque(maxlen=STATUSES)
        self._waiting: deque[tuple[NodeId, int, Request]] = deque()
        self._site.procedures.run(self._begin())

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Call(number, body)) if isinstance(body, Request):
                if self._stream is not None:
                    self._serve(self._stream, sender, number, body)
                elif len(self._waiting) < WAITING_MAX:
                    self._waiting.append((sender, number, body))
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
        self._name = f"{self._site.node}.{self._site.now_ns()}"
        while self._stream is None:
            (answer,) = yield Ask(((CONTROLLER_PLACE, GetHistory()),))
            if isinstance(answer, Epochs):
                self._stream = StreamWriter(self._site, self._name, answer.history.active)
            else:
                yield Sleep(AGAIN_NS)
        while self._waiting:
            self._serve(self._stream, *self._waiting.popleft())
        while True:
            noted = NoteTime(self._name, self._site.now_ns(), self._stream.cut())
            yield Ask(((CONTROLLER_PLACE, noted),))
            yield Sleep(NOTE_NS)

    def _serve(self, stream: StreamWriter, client: NodeId, number: int, request: Request) -> None:
        match request:
            case Transact():
                self._transact(stream, client, number, request)
            case SealStream():
                self._site.procedures.run(self._seal(client, number))
            case TruncateStream() | TakeCheckpoint() | RestoreGroup():
                self._site.procedures.run(self._hand_on(client, number, request))
            case Statuses():
                self._site.procedures.run(self._statuses(client, number))

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
            answer = yield from transact(self._site, self._name, request.mops, self._txns)
        self._site.context.send(client, Answer(number, answer))

    def _seal(self, client: NodeId, number: int) -> Procedure[None]:
        """Have the stream sealed, and wait for that."""
        end_ns, answer = self._site.now_ns() + SEAL_NS, None
        while answer != Status("sealed") and self._site.now_ns() < end_ns:
            (answer,) = yield Ask(((CONTROLLER_PLACE, SealStream()),), SEAL_NS)
            yield Sleep(AGAIN_NS)
        done = Done() if answer == Status("sealed") else Unclear("the stream was not sealed in time")
        self._site.context.send(client, Answer(number, done))

    def _hand_on(self, client: NodeId, number: int, request: HandedOn) -> Procedure[None]:
        """Hand a request on to a controller, which accepts it."""
        (answer,) = yield Ask(((CONTROLLER_PLACE, request),), STATUS_NS)
        done = Done() if isinstance(answer, Status) else Unclear("no controller answered")
        self._site.context.send(client, Answer(number, done))

    def _statuses(self, client: NodeId, number: int) -> Procedure[None]:
        """Ask for the status of the last transactions that this writer began."""
        txns = tuple(self._txns)
        answers = (yield Ask(tuple((CONTROLLER_PLACE, CheckTxn(txn)) for txn in txns), STATUS_NS)) if txns else ()
        found = [(txn, answer.status) for txn, answer in zip(txns, answers, strict=True) if isinstance(answer, Status)]
        self._site.context.send(client, Answer(number, Done(statuses=tuple(found))))

    def _drain(self, client: NodeId, number: int) -> Procedure[None]:
        answer = yield from drained()
        self._site.context.send(client, Answer(number, answer))
