"""A replica: it applies one of two binlogs to its own tables, and answers reads of them.

Theory of operation. Transactions are committed one after the other: on disk, synced, then visible.
1. A state that was shown is durable, so no restart takes it back; and it is the state of the source after an epoch.
2. After a temporary error the whole transaction is tried again. No part of it was visible or on disk.
3. A replica fetches no more while transactions wait. A switch leaves the waiting ones: they come before whatever the
   new channel gives, as its question has the epoch after them.
"""

from collections import deque

from clusters.ndb.binlog.messages import (
    Applied,
    CatchUp,
    Fetched,
    Located,
    NotYet,
    ReplicaRead,
    Shown,
    SwitchChannel,
)
from clusters.ndb.replica.applier import Applier
from clusters.ndb.replica.channel import Channel
from clusters.ndb.replica.tables import Tables, every, unknown
from clusters.ndb.shape import MS
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Dump,
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

LOG = "applied"
STREAM = "stream"  # The source's log is what the injectors received.
POLL, RETRY = "poll", "retry"
RETRY_NS = 30 * MS


class Replica:
    """The machine of a replica."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        drawn = settings.parameters
        self._poll_ns = drawn["poll_ms"] * MS
        self._error_permille = drawn["error_permille"]
        is_idempotent = bool(drawn["idempotent"])
        self._tables = Tables(durable.log(LOG), unknown if is_idempotent else every)
        self._applier = Applier(self._tables.latest, settings.bugs, is_idempotent=is_idempotent)
        self._channel = Channel(context, drawn["switch_ms"] * MS)
        self._waiting: deque[Applied] = deque()
        self._is_committing = False
        self._token = 0
        self._drains: list[tuple[NodeId, int, int]] = []  # Client, number of its call, epoch.
        self._covered = 0  # Everything up to that epoch is in the tables.
        if self._tables.latest:
            context.sometimes("a replica went on from its position")
        context.set_timer(POLL, self._poll_ns)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Call(number, CatchUp(epoch))):
                self._drains.append((sender, number, epoch))
                self._drained(context)
            case Received(sender, Call(number, body)):
                context.send(sender, Answer(number, self._answer(body, context)))
            case Received(message=(Located() | Fetched()) as message):
                self._answered(message, context)
            case Received(message=message):
                context.unexpected(message)
            case Synced(token):
                self._synced(token, context)
            case TimerFired("poll"):
                context.set_timer(POLL, self._poll_ns)
                self._ask(context)
            case TimerFired():
                self._is_committing = False
                self._commit(context)
            case Closed(peer):
                self._channel.closed(peer)
            case _:
                pass

    def dump(self, context: Context) -> None:
        lists: list[Json] = [[key, list(elements)] for key, elements in self._tables.lists.items()]
        state = [[[STREAM, self._tables.latest]], lists]
        context.dump(Dump(object="replica-state", key=context.node, value=state))
        is_at_end = self._channel.is_at_end(self._applier.latest)
        status = [[server, epoch] for server, epoch in sorted(self._tables.status.items())]
        context.dump(Dump(object="replica", key=context.node, value=[is_at_end, status, self._tables.schema]))

    def _answer(self, body: Message, context: Context) -> Message:
        match body:
            case ReplicaRead(keys):
                lists: list[Json] = [[key, list(self._tables.lists.get(key, ()))] for key in keys]
                return Shown([[[STREAM, self._tables.latest]], lists])
            case SwitchChannel():
                self._switch(context)
                return Shown()
            case _:
                context.unexpected(body)
                return NotYet()

    def _drained(self, context: Context) -> None:
        """Answer the clients whose epoch is there now, or never will be."""
        if not self._waiting:
            is_at_end = self._channel.is_at_end(self._applier.latest)
            done = [each for each in self._drains if is_at_end or self._covered >= each[2]]
            self._drains = [each for each in self._drains if each not in done]
            for client, number, _ in done:
                context.send(client, Answer(number, Shown()))

    def _switch(self, context: Context) -> None:
        context.sometimes("a channel was switched under load")
        self._channel.switch(context)
        self._applier.opened()

    def _ask(self, context: Context) -> None:
        if not self._waiting:
            before = self._channel.source
            self._channel.ask(self._applier.latest, context)
            if self._channel.source != before:
                self._applier.opened()

    def _answered(self, message: Located | Fetched, context: Context) -> None:
        fetched = self._channel.answered(message, context)
        if fetched is None:
            if isinstance(message, Located):
                self._ask(context)
            return
        for record in fetched.records:
            transactions = self._applier.transactions(record)
            if transactions is None:
                self._channel.stop(self._applier.latest, context)
                self._applier.opened()
                break
            self._waiting.extend(transactions)
        if not fetched.records and not self._waiting:
            self._covered = max(self._covered, fetched.complete)
        self._drained(context)
        self._commit(context)

    def _commit(self, context: Context) -> None:
        """Commit the next transaction that waits (invariant 2)."""
        if self._is_committing or not self._waiting:
            return
        self._is_committing = True
        if self._error_permille and context.draw("apply").chance(self._error_permille, 1000):
            context.sometimes("an epoch was tried again")
            context.set_timer(RETRY, RETRY_NS)
            return
        context.point("before-apply")
        context.append(LOG, self._waiting[0])
        self._token += 1
        context.sync(self._token)

    def _synced(self, token: int, context: Context) -> None:
        if token == self._token and self._waiting:
            self._tables.commit(self._waiting.popleft())
            self._is_committing = False
            context.point("applied")
            self._commit(context)
            if not self._waiting:
                self._ask(context)
