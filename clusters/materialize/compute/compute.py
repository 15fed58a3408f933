"""A compute node: copies shards, maintains views over them, answers peeks, and feeds subscribers.

Theory of operation. It keeps nothing on disk.
1. A peek at `ts` is answered when every collection that it names has an upper above `ts`: then nothing can change what
   it sees. It waits until then, and the coordinator gives it up if that takes too long.
2. A peek below the since of a collection is refused: its rows have been merged with later ones.
3. A peek without a timestamp gets the newest one at which all its collections can be read.
4. A subscriber gets the updates below the lowest upper of its collections, in their order, and then that upper as
   progress, over the same link: so no update comes after a progress message that covers it.
"""

from dataclasses import dataclass, field

from clusters.materialize import planted
from clusters.materialize.collections import Row, Rows, Update
from clusters.materialize.compute.copies import Copies
from clusters.materialize.compute.maintained import Maintained
from clusters.materialize.compute.views import VIEWS
from clusters.materialize.messages import (
    Asked,
    Ended,
    Part,
    Peek,
    Peeked,
    Progress,
    SinceBeyond,
    Subscribe,
    Told,
    Unsubscribe,
    Updates,
    Wanted,
)
from clusters.materialize.shape import MS, SHARDS
from clusters.materialize.site import Site
from harness.core.machine import Closed, Context, Durable, Event, NodeId, Received, Settings, TimerFired
from harness.core.record import Json

STEP = "step"
WAITING_NS = 3000 * MS  # A peek is forgotten after so long.
QUEUE_MAX = 16  # A subscriber with more messages in the send buffer is cut off.


@dataclass(slots=True)
class Subscription:
    """A session of a subscriber. Updates below `sent` were sent to it."""

    session: int
    collections: tuple[str, ...]
    sent: int
    waiting: list[tuple[int, Update]]
    held: list[tuple[int, Update]] = field(default_factory=list)  # A planted bug sends these with the next progress.


class Compute:
    """The machine of the compute nodes q1 and q2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._peeks: list[tuple[NodeId, int, Peek, int]] = []
        self._subscriptions: dict[NodeId, Subscription] = {}
        self._begin()
        self._step_ns = settings.parameters["view_ms"] * MS
        context.set_timer(STEP, self._step_ns)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, Peek() as peek)):
                self._peeks.append((sender, number, peek, context.now_ns()))
                self._answer()
            case Received(_, Part() as part):
                self._take(part)
            case Received(sender, Subscribe() as request):
                self._subscribe(sender, request)
            case Received(sender, Unsubscribe(session)):
                if sender in self._subscriptions and self._subscriptions[sender].session == session:
                    del self._subscriptions[sender]
            case TimerFired():
                self._step()
                context.set_timer(STEP, self._step_ns)
            case Closed(peer):
                self._copies.closed(peer)
                self._subscriptions.pop(peer, None)
                self._peeks = [each for each in self._peeks if each[0] != peer]
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: data nodes show the shards."""

    def _begin(self) -> None:
        """Listen to all shards, from their beginning."""
        for subscriber, subscription in self._subscriptions.items():
            self._site.send(subscriber, Ended(subscription.session, "the compute node begins anew"))
        self._subscriptions.clear()
        self._copies = Copies(self._site)
        for shard in SHARDS:
            self._copies.copy(shard)
        self._views = {name: Maintained(view, self._copies.rows) for name, view in VIEWS.items()}

    def _take(self, part: Part) -> None:
        """Take up what was added to a shard."""
        new = self._copies.take(part)
        if new is None:
            self._site.context.sometimes("a compute node began anew")
            self._begin()
            return
        for view in self._views.values():
            if part.shard in view.inputs:
                view.feed(new)
        for subscription in self._subscriptions.values():
            self._add(subscription, part.shard, new)
        self._answer()

    def _step(self) -> None:
        for name, view in self._views.items():
            new = view.step()
            for subscription in self._subscriptions.values():
                self._add(subscription, name, new)
        for shard in tuple(self._copies.rows):
            over = [view.rows.upper - 1 for view in self._views.values() if shard in view.inputs]
            self._copies.compact(shard, min(over, default=self._copies.rows[shard].upper))
        self._copies.watch()
        self._answer()
        for subscriber, subscription in tuple(self._subscriptions.items()):
            self._feed(subscriber, subscription)

    def _rows(self, collection: str) -> Rows:
        view = self._views.get(collection)
        return view.rows if view is not None else self._copies.copy(collection)

    # Peeks.

    def _answer(self) -> None:
        """Answer the peeks whose collections are ready (1)."""
        oldest_ns = self._site.now_ns() - WAITING_NS
        left = []
        for each in self._peeks:
            sender, number, peek, since_ns = each
            reply = self._peeked(peek)
            if reply is not None:
                self._site.send(sender, Told(number, reply))
            elif since_ns > oldest_ns:
                left.append(each)
        self._peeks = left

    def _peeked(self, peek: Peek) -> Peeked | SinceBeyond | None:
        named = [self._rows(wanted.collection) for wanted in peek.wanted]
        upper, since = min(rows.upper for rows in named), max(rows.since for rows in named)
        if not upper:
            return None  # The node has just started.
        ts = max(upper - 1, peek.least) if peek.ts is None else peek.ts
        if ts < since and planted.COMPACT_PAST_HOLD not in self._site.bugs:
            self._site.context.sometimes("a read came too late for its timestamp")
            return SinceBeyond(since)
        if ts >= upper and planted.PEEK_IGNORES_UPPER not in self._site.bugs:
            return None
        return Peeked(ts, tuple(self._found(rows, each, ts) for rows, each in zip(named, peek.wanted, strict=True)))

    def _found(self, rows: Rows, wanted: Wanted, ts: int) -> tuple[tuple[Json, tuple[Json, ...], tuple[int, ...]], ...]:
        keys = rows.keys() if wanted.keys is None else wanted.keys
        return tuple((key, *_columns(rows.at(ts, key))) for key in keys)

    # Subscriptions.

    def _subscribe(self, subscriber: NodeId, request: Subscribe) -> None:
        named = [self._rows(collection) for collection in request.collections]
        if any(rows.since >= request.first > 0 for rows in named):
            self._site.send(subscriber, Ended(request.session, "its updates were compacted"))
            return
        if any(rows.upper <= request.first for rows in named) and request.first > 0:
            self._site.context.sometimes("a subscriber was ahead of a compute node")
        subscription = Subscription(request.session, request.collections, request.first, [])
        for place, rows in enumerate(named):
            subscription.waiting += [(place, update) for update in rows.updates(request.first)]
        self._subscriptions[subscriber] = subscription
        self._feed(subscriber, subscription)

    def _add(self, subscription: Subscription, collection: str, new: list[Update]) -> None:
        if collection in subscription.collections:
            place = subscription.collections.index(collection)
            subscription.waiting += [(place, update) for update in new if update.ts >= subscription.sent]

    def _feed(self, subscriber: NodeId, subscription: Subscription) -> None:
        """Send what is complete (4)."""
        upper = min(self._rows(collection).upper for collection in subscription.collections)
        if upper <= subscription.sent:
            return
        if self._site.context.queued(subscriber) > QUEUE_MAX:
            self._site.context.sometimes("a slow subscriber was cut off")
            del self._subscriptions[subscriber]
            self._site.send(subscriber, Ended(subscription.session, "too slow"))
            return
        ready = [each for each in subscription.waiting if each[1].ts < upper]
        subscription.waiting = [each for each in subscription.waiting if each[1].ts >= upper]
        subscription.sent = upper
        ready.sort(key=lambda each: (each[1].ts, each[1].rank))
        if planted.PROGRESS_BEFORE_UPDATES in self._site.bugs:
            ready, subscription.held = subscription.held, ready
        if ready:
            self._site.send(subscriber, Updates(subscription.session, tuple(ready)))
        self._site.send(subscriber, Progress(subscription.session, upper))


def _columns(rows: list[tuple[Row, int]]) -> tuple[tuple[Json, ...], tuple[int, ...]]:
    """The values of rows, repeated by their counts, and their ranks."""
    values = tuple(row[1] for row, count in rows for _ in range(count))
    return values, tuple(row[2] for row, count in rows for _ in range(count))
