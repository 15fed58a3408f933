"""A segment store: runs the containers that are placed on it, each over a durable log.

Theory of operation. A command goes to the container's log first, and is applied and answered when the log has it. So
what a store shows is durable, and what a new owner finds in the log is what the old one may have answered.
1. A store opens the log under the placement's version, and has all records before it serves anything. From then on the
   log refuses what the old owner appends.
2. If the log refuses the store's own records, or does not answer, nobody knows what it has: the store opens it anew,
   and forgets what it had not applied. Those who asked ask again.
3. Reads of events show what is applied; a store that was replaced may still serve them, as they never change. Fetch
   waits until the log has confirmed that the store still owns it.
"""

from collections import deque

from msgspec import msgpack

from clusters.parts.fenced_log import Add, Added, Fenced, Open, Opened
from clusters.parts.routing import Elsewhere, Later
from clusters.pravega import planted
from clusters.pravega.messages import (
    Alive,
    Append,
    Asked,
    Batch,
    Command,
    Contents,
    Create,
    Delete,
    Fetch,
    KeepAlive,
    Merge,
    Placement,
    Read,
    Reply,
    Seal,
    Told,
    ToStore,
    Truncate,
)
from clusters.pravega.records import Segment
from clusters.pravega.segments.container import Container
from clusters.pravega.shape import CONTAINERS, LOG, METADATA, MS, container_of
from harness.core.machine import Closed, Context, Dump, Durable, Event, NodeId, Received, Settings, TimerFired

TICK = "tick"
TICK_NS = 50 * MS
PARKED_NS = 100 * MS  # A read without events is answered after so long.
IDLE_NS = 100 * MS  # With a planted bug: idle segments are looked up.
SILENT_NS = 400 * MS  # A log that has not answered for so long is opened anew.
_COMMANDS: msgpack.Decoder[Command] = msgpack.Decoder(Command)
_encode = msgpack.Encoder().encode

Waiting = tuple[NodeId, int, Command | Fetch]


class _Running:
    """A container that this store runs. It is open if it has a token."""

    def __init__(self, claim: int, now_ns: int) -> None:
        self.claim = claim
        self.token: int | None = None
        self.length = 0  # Of the log, with all that was sent to it.
        self.waiting: deque[tuple[int, Waiting]] = deque()  # By the length that the log must have.
        self.heard_ns = now_ns
        self.parked: dict[Segment, list[tuple[NodeId, int, int, int]]] = {}
        self.container: Container


class Store:
    """The machine of the segment stores s1 to s3. It keeps nothing on its own disk."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._bugs = settings.bugs
        self._placement = Placement(0, ())
        self._used_ns: dict[Segment, int] = {}
        self._running: dict[str, _Running] = {}
        context.send(METADATA, Alive())
        context.set_timer(TICK, TICK_NS)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Asked(number, body)):
                self._asked(sender, number, body, context)
            case Received(_, Added() | Opened() | Fenced() as reply):
                self._from_log(reply, context)
            case Received(reader, KeepAlive()):
                context.send(reader, KeepAlive())
            case Received(_, Placement() as placement):
                self._placed(placement, context)
            case TimerFired():
                self._tick(context)
            case Closed(peer) if peer == LOG:
                for log in tuple(self._running):
                    self._open(log, context)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        for log, running in sorted(self._running.items()):
            if running.token is not None and self._owner(log) == context.node:
                for segment, is_sealed, events, start in running.container.shown():
                    shown = [[each.key, each.value, each.txn, each.writer, each.number] for each in events]
                    context.dump(Dump(object="segment", key=str(segment), value=[is_sealed, shown, start]))

    # Requests.

    def _owner(self, place: str) -> NodeId | None:
        return self._placement.owners[int(place)] if self._placement.owners else None

    def _asked(self, sender: NodeId, number: int, body: object, context: Context) -> None:
        if not isinstance(body, ToStore):
            return
        place = _place_of(body)
        running = self._running.get(place)
        if running is None:
            context.send(sender, Told(number, Elsewhere(self._owner(place))))
        elif running.token is None:
            context.send(sender, Told(number, Later()))
        elif isinstance(body, Read):
            self._read(running, (sender, number, body), context)
        elif self._is_cold(body, context):
            context.send(sender, Told(number, Later()))
        else:
            records = () if isinstance(body, Fetch) else (_encode(body),)
            context.send(LOG, Add(place, running.token, running.length, records))
            if not running.waiting:
                running.heard_ns = context.now_ns()
            running.length += len(records)
            running.waiting.append((running.length, (sender, number, body)))

    def _is_cold(self, body: ToStore, context: Context) -> bool:
        """With a planted bug: True for the first merge of a segment that was idle, which must be looked up."""
        if planted.BATCH_UNCHAINED not in self._bugs or not isinstance(body, Append | Merge):
            return False
        segment = body.source if isinstance(body, Merge) else body.segment
        used_ns, self._used_ns[segment] = self._used_ns.get(segment), context.now_ns()
        return isinstance(body, Merge) and (used_ns is None or used_ns < context.now_ns() - IDLE_NS)

    def _read(self, running: _Running, asked: tuple[NodeId, int, Read], context: Context) -> None:
        sender, number, read = asked
        reply = running.container.read(read.segment, read.offset)
        if reply is not None:
            context.send(sender, Told(number, reply))
        else:
            parked = (sender, number, read.offset, context.now_ns())
            running.parked.setdefault(read.segment, []).append(parked)

    def _from_log(self, reply: Added | Opened | Fenced, context: Context) -> None:
        running = self._running.get(reply.log)
        if running is None:
            return
        match reply:
            case Opened():
                self._opened(reply, running, context)
            case Added(_, token, length) if running.token == token:
                self._added(running, length, context)
            case Fenced(log, token) if token == (running.token or 0):
                self._fenced(log, running, context)
            case _:
                pass

    def _added(self, running: _Running, length: int, context: Context) -> None:
        """Apply and answer what the log has."""
        running.heard_ns = context.now_ns()
        touched: dict[Segment, None] = {}
        while running.waiting and running.waiting[0][0] <= length:
            _, (client, number, body) = running.waiting.popleft()
            reply: Reply
            match body:
                case Fetch(segments, keys):
                    reply = Contents(tuple(running.container.content(each, keys) for each in segments))
                case _:
                    reply = running.container.apply(body)
                    touched[body.target if isinstance(body, Merge) else body.segment] = None
            context.point("container-before-answer")
            context.send(client, Told(number, reply))
        for segment in touched:
            self._serve_parked(running, segment, context)

    def _serve_parked(self, running: _Running, segment: Segment, context: Context, *, before_ns: int = -1) -> None:
        """Answer reads that have something to show, and those that were parked before that time."""
        parked = running.parked.pop(segment, [])
        for sender, number, offset, since_ns in parked:
            reply = running.container.read(segment, offset)
            if reply is None and since_ns < before_ns:
                reply = Batch((), is_end=False)
            if reply is None:
                running.parked.setdefault(segment, []).append((sender, number, offset, since_ns))
            else:
                context.send(sender, Told(number, reply))

    # Ownership.

    def _placed(self, placement: Placement, context: Context) -> None:
        if placement.version <= self._placement.version:
            return
        self._placement = placement
        for container in range(CONTAINERS):
            log = str(container)
            if placement.owners[container] != context.node:
                self._running.pop(log, None)
            elif log not in self._running:
                self._open(log, context)

    def _open(self, log: str, context: Context) -> None:
        """Open the log, under the newest placement that this store knows."""
        self._running[log] = _Running(self._placement.version, context.now_ns())
        context.send(LOG, Open(log, self._placement.version))

    def _opened(self, opened: Opened, running: _Running, context: Context) -> None:
        if running.claim != opened.claim or opened.token <= (running.token or 0):
            return
        running.token, running.length, running.heard_ns = opened.token, len(opened.records), context.now_ns()
        running.waiting.clear()
        running.container = Container(opened.log, self._bugs)
        for record in opened.records:
            running.container.apply(_COMMANDS.decode(record))
        if opened.token > 1:
            context.sometimes("a store took over a log")
        context.point("container-open")

    def _fenced(self, log: str, running: _Running, context: Context) -> None:
        context.sometimes("a store was fenced")
        if self._placement.version > running.claim:
            self._open(log, context)
        else:  # Another owner has been named: wait until the metadata node names it here, too.
            running.token = None
            running.waiting.clear()

    def _tick(self, context: Context) -> None:
        context.send(METADATA, Alive())
        now_ns = context.now_ns()
        for log, running in tuple(self._running.items()):
            is_waiting = running.token is None or running.waiting
            if is_waiting and running.heard_ns < now_ns - SILENT_NS:
                self._open(log, context)
            for segment in tuple(running.parked):
                self._serve_parked(running, segment, context, before_ns=now_ns - PARKED_NS)
        context.set_timer(TICK, TICK_NS)


def _place_of(body: ToStore) -> str:
    """The container of a request."""
    match body:
        case Merge(target, _):
            return container_of(target.number)
        case Fetch(segments, _):
            return container_of(segments[0].number)
        case Create(segment) | Seal(segment) | Delete(segment) | Truncate(segment, _):
            return container_of(segment.number)
        case Read(segment, _):
            return container_of(segment.number)
        case Append(segment=segment):
            return container_of(segment.number)
