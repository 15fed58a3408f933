"""A server: sessions of clients, the logs, and the threads that replicate from its sources.

Theory of operation.
1. After a start it decides about what the crash left open, before anything new is written.
2. All that waits does so for a timer or for the disk; sessions run beside each other.
3. Reads of a replica, and the position that they come with, are from one moment.
4. The observer gets the pieces of the file log when they are durable. Nobody waits for it.
"""

from functools import partial
from typing import Final

from msgspec import Struct

from clusters.drizzle import planted, show
from clusters.drizzle.logs.engine import LOG, Engine
from clusters.drizzle.logs.file_log import FileLog
from clusters.drizzle.master.commits import Commits
from clusters.drizzle.master.sessions import Session
from clusters.drizzle.messages import (
    Done,
    Drain,
    Fetched,
    FetchPieces,
    Follow,
    Got,
    Insert,
    ListCommits,
    Listed,
    Pushed,
    ReadThere,
    Run,
)
from clusters.drizzle.replica.consumer import LATER, Consumer
from clusters.drizzle.replica.producer import QUEUE, Producer, Queued, QueuedPiece, fetched, listed
from clusters.drizzle.shape import BATCH, MS, SOURCES
from clusters.drizzle.site import Site
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
    Synced,
    TimerFired,
)
from harness.core.record import Json

POLL, SESSION = "poll", "session "
FULL, FILTERED = "file", "filtered"
BEAT_NS: Final = 100 * MS
PUSHED: Final = 40  # Pieces of one message to the observer.


class Life(Struct, frozen=True, tag=True):
    """On disk: how often the server was started."""

    number: int


class Server:
    """The machine of the masters m1 and m2, and of the replicas r1 and r2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        life = durable.value("life")
        number = life.number + 1 if isinstance(life, Life) else 0
        context.put("life", Life(number))
        self._engine = Engine(self._site, durable.log(LOG))
        self._full = FileLog(self._site, FULL, durable.log(FULL))
        self._filtered = FileLog(self._site, FILTERED, durable.log(FILTERED))
        self._commits = Commits(self._site, self._engine, self._full, self._filtered, number)
        self._sessions: dict[str, Session] = {}
        self._count = 0
        self._drains: list[tuple[NodeId, int, int]] = []
        self._followers: dict[NodeId, tuple[int, int, int]] = {}  # Session, place, and when it was last sent.
        self._got: dict[NodeId, int] = {}  # How far followers have come.
        self._full.listener = self._push
        self._consumer = Consumer(self._site, self._engine, self._commits.new_trx, durable.value)
        self._producers = {
            source: Producer(self._site, source, self._engine.positions.get(source, 0), self._consumer.queued)
            for source in SOURCES[context.node]
        }
        self._recover_queue(durable)
        self._commits.recover()
        if number:
            context.sometimes("a server was started again")
        context.set_timer(POLL, self._poll_ns())

    def _recover_queue(self, durable: Durable) -> None:
        for record in durable.log(QUEUE):
            if isinstance(record, QueuedPiece):
                self._producers[record.source].recovered(record)
                queued = Queued(record.source, record.found) if record.found is not None else None
            else:
                queued = record if isinstance(record, Queued) else None
            if queued is not None:
                producer = self._producers[queued.source]
                producer.position = max(producer.position, queued.found.commit)
                if not self._consumer.is_applied(queued):
                    self._consumer.queued(queued)

    def _poll_ns(self) -> int:
        return self._site.parameters["poll_ms"] * MS

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Call(number, body)):
                self._called(sender, number, body)
            case Received(sender, Follow(session, place)):
                self._followers[sender] = (session, place, -BEAT_NS)
                self._push()
            case Received(sender, Got(session, place)):
                if self._followers.get(sender, (0, 0, 0))[0] == session:
                    self._got[sender] = place
                    self._look_behind()
            case Received(sender, message):
                self._received(sender, message)
            case Closed(peer):
                self._got.pop(peer, None)
                self._followers.pop(peer, None)
                if peer in self._producers and planted.POSITION_IN_MEMORY in self._site.bugs:
                    self._producers[peer].position = 0
                    self._consumer.forget(peer)
            case TimerFired(name):
                self._fired(name)
            case Synced(token):
                self._site.synced(token)
            case _:
                pass

    def _received(self, sender: NodeId, message: Message) -> None:
        """A message of replication."""
        match message:
            case ListCommits():
                self._site.send(sender, listed(self._site, self._engine.readable(), message, sender, BATCH))
            case FetchPieces():
                self._site.send(sender, fetched(self._engine.readable(), message))
            case Listed() if sender in self._producers:
                self._producers[sender].listed(message)
                self._drain()
            case Fetched() if sender in self._producers:
                self._producers[sender].fetched(message)
                self._consumer.apply()
            case _:
                self._site.context.unexpected(message)

    def _called(self, sender: NodeId, number: int, body: object) -> None:
        match body:
            case Run():
                self._count += 1
                name = f"{SESSION}{self._count}"
                self._sessions[name] = Session(self._commits, name, sender, number, body)
                self._go_on(name)
            case ReadThere(keys):
                found: Json = [[key, list(self._engine.lists.get(key, ()))] for key in keys]
                positions = show.positions(self._site.node, self._engine)
                self._site.send(sender, Answer(number, Done(value=[positions, found])))
            case Insert(keys):
                self._consumer.insert(keys)
                self._site.sync(partial(self._site.send, sender, Answer(number, Done())))
            case Drain():
                self._drains.append((sender, number, self._site.now_ns()))

    def _fired(self, name: str) -> None:
        if name == POLL:
            for producer in self._producers.values():
                producer.poll()
            self._consumer.apply()
            self._drain()
            self._push()
            self._site.context.set_timer(POLL, self._poll_ns())
        elif name == LATER:
            self._consumer.go_on()
        else:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """Let a session make its next step."""
        session = self._sessions.get(name)
        if session is None:
            return
        wait = next(session.running, None)
        if wait is None:
            del self._sessions[name]
        elif isinstance(wait, int):
            self._site.context.set_timer(name, max(1, wait))
        else:
            self._site.sync(partial(self._go_on, name))

    def _drain(self) -> None:
        """Answer those who wait until all is replicated, or until replication has stopped."""
        reason = next(filter(None, self._errors()), None)
        for drain in [*self._drains]:
            sender, number, asked_ns = drain
            is_new = all(each.answered_ns > asked_ns for each in self._producers.values())
            if reason or (is_new and self._consumer.is_empty):
                self._site.send(sender, Answer(number, Done(value=reason)))
                self._drains.remove(drain)

    def _push(self) -> None:
        """Send followers what is durable (4); without anything new, a sign of life now and then."""
        pieces = self._full.pieces
        now_ns = self._site.now_ns()
        for follower, (session, place, sent_ns) in [*self._followers.items()]:
            if place == len(pieces) and now_ns < sent_ns + BEAT_NS:
                continue
            for first in range(place, max(len(pieces), place + 1), PUSHED):
                self._site.send(follower, Pushed(session, first, tuple(pieces[first : first + PUSHED])))
            self._followers[follower] = (session, len(pieces), now_ns)
        self._look_behind()

    def _look_behind(self) -> None:
        """Note how far the followers are behind."""
        self._commits.behind = max(
            (len(self._full.pieces) - self._got.get(each, 0) for each in self._followers), default=0
        )

    def dump(self, context: Context) -> None:
        """Record the logs, the rows, and how replication stands."""
        self._site.context = context
        node = context.node
        for log in (self._full, self._filtered):
            for state in show.file_log(node, log, self._site.parameters["threshold"]):
                context.dump(state)
        for state in show.table_log(node, [each for each in self._engine.log if each.commit]):
            context.dump(state)
        for state in show.rows(node, self._engine, next(filter(None, self._errors()), None)):
            context.dump(state)

    def _errors(self) -> list[str]:
        """What stopped replication, if anything did."""
        return [self._consumer.error, *(each.error for each in self._producers.values())]
