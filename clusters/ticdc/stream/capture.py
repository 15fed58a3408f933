"""A capture (TiCDC): a session with each region, matchers, one sorter, and a sink that writes downstream.

Theory of operation.
1. Each start of a capture has a session number, which is on disk before it is used. Between two starts it may subscribe
   a region many times: the region begins again at its own watermark, above which the sorter keeps what it has.
2. Rows that a region sends again, at or below the start of its session, are left out.
3. The sink writes rows and watermark downstream; the checkpoint moves when they are durable there. After a crash a
   capture begins at the last watermark that the downstream has, which is not below the checkpoint.
4. A watermark that rests is looked into: locks that hold it back and whose transactions have ended, or are dead, are
   settled.
5. Errors bring the regions as stores know them. Whichever is new is subscribed where the sorter has it (sorter.py,
   invariant 3).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from clusters.ticdc import planted
from clusters.ticdc.oracle.messages import Timestamp, Upgrade
from clusters.ticdc.oracle.upgrade import is_new, upgrade
from clusters.ticdc.regions.messages import FromRegion, Region
from clusters.ticdc.rows.incarnations import incarnation, name, view
from clusters.ticdc.rows.messages import Locks, ScanLocks
from clusters.ticdc.shape import MS
from clusters.ticdc.site import Site
from clusters.ticdc.stream.matcher import Matcher, Row
from clusters.ticdc.stream.messages import (
    Entries,
    Flush,
    Initialized,
    ResolvedTs,
    SessionError,
    SessionNumber,
    Subscribe,
)
from clusters.ticdc.stream.sorter import Sorter
from clusters.ticdc.transactions.resolving import resolve
from clusters.ticdc.transactions.tasks import TIMER, Procedure, Tasks, call
from harness.core.machine import (
    Context,
    Delivery,
    Durable,
    Event,
    NodeId,
    Settings,
)

TICK_NS = 20 * MS
SILENCE_NS = 300 * MS  # After so long without a watermark a region is subscribed again.
AGAIN_NS = 40 * MS
STUCK_NS = 200 * MS  # After so long without progress a region's locks are fetched.
LOOK_NS = 100 * MS
DELETED = "deleted"  # Stands for the value of a deleted row; no workload deletes.


@dataclass(slots=True)
class Subscription:
    """The session with one region."""

    region: Region
    request: int
    store: NodeId
    after: int
    matcher: Matcher
    heard_ns: int
    resolved: int = 0
    is_over: bool = False


class Capture:
    """The machine of the captures c1 and c2; the two are independent."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        site = self._site = Site(context.node, settings.bugs, settings.parameters)
        site.context = context
        site.is_new = is_new(durable, settings)
        saved = durable.value("session")
        self._session = 1 + (saved.number if isinstance(saved, SessionNumber) else 0)
        flushes = durable.log("downstream")
        last = flushes[-1] if flushes else None
        self._checkpoint = last.watermark if isinstance(last, Flush) else 0
        self._tasks = Tasks(site)
        self._sorter = Sorter(self._checkpoint, self._tasks.table.regions, settings.bugs)
        self._subscriptions: dict[Region, Subscription] = {}
        self._by_request: dict[int, Subscription] = {}
        self._last_request = self._session << 20
        self._progress_ns = dict.fromkeys(self._tasks.table.regions, context.now_ns())
        self._looked_ns = 0
        self._flush_ns = site.parameters["sink_ms"] * MS
        if self._checkpoint:
            context.sometimes("a capture resumed from its checkpoint")
        self.receivers: dict[type, Callable[[NodeId, Any], None]] = {
            Entries: self._changed,
            Initialized: self._initialized,
            ResolvedTs: self._advanced,
            SessionError: self._failed,
            Timestamp: self._given,
            FromRegion: self._answered,
            Upgrade: partial(upgrade, site),
        }
        context.put("session", SessionNumber(self._session))
        site.sync(self._open)

    def handle(self, event: Event, context: Context) -> None:
        self._site.handle(event, context, self)

    def dump(self, context: Context) -> None:
        """Do nothing: no check needs a capture's state."""

    def _changed(self, _store: NodeId, message: Entries) -> None:
        subscription = self._by_request.get(message.request)
        if subscription is not None:
            take = subscription.matcher.take
            self._add(subscription, [row for event in message.events for row in take(event)])

    def _initialized(self, _store: NodeId, message: Initialized) -> None:
        subscription = self._by_request.get(message.request)
        if subscription is not None:
            self._add(subscription, subscription.matcher.initialized(message))

    def _advanced(self, _store: NodeId, message: ResolvedTs) -> None:
        for request, timestamp in message.resolved:
            self._resolved(request, timestamp)

    def _failed(self, _store: NodeId, message: SessionError) -> None:
        self._tasks.table.learn(message.regions)
        subscription = self._by_request.get(message.request)
        if subscription is not None:
            self._end(subscription, message.leader)

    def _given(self, _oracle: NodeId, message: Timestamp) -> None:
        self._tasks.answered(message.number, message)

    def _answered(self, _store: NodeId, message: FromRegion) -> None:
        self._tasks.answered(message.number, message.body)

    def expired(self, name: str) -> None:
        if name == TIMER:
            self._tasks.tick()
        elif name == "sink":
            self._site.context.set_timer("sink", self._flush_ns)
            self._publish()
        else:
            self._site.context.set_timer("tick", TICK_NS)
            self._watch()

    def closed(self, peer: NodeId) -> None:
        self._tasks.closed(peer)
        for subscription in tuple(self._subscriptions.values()):
            if subscription.store == peer:
                self._end(subscription)

    # Sessions with regions.

    def _open(self) -> None:
        """Begin the session of this start (invariant 1)."""
        self._site.context.deliver(Delivery(session=self._session, kind="open", position=self._checkpoint))
        for region in self._sorter.frontier:
            self._subscribe(region)
        self._site.context.set_timer("tick", TICK_NS)
        self._site.context.set_timer("sink", self._flush_ns)

    def _subscribe(self, region: Region) -> None:
        before = self._subscriptions.get(region)
        if before is not None:
            self._by_request.pop(before.request, None)
        self._last_request += 1
        after = self._sorter.frontier[region]
        store = self._tasks.leader(region)
        now_ns = self._site.now_ns()
        matcher = Matcher(self._site.bugs, is_by_row=not self._site.is_new)
        subscription = Subscription(region, self._last_request, store, after, matcher, now_ns)
        self._subscriptions[region] = self._by_request[self._last_request] = subscription
        self._site.send(store, Subscribe(self._last_request, region.id, region.version, after))

    def _cover(self, regions: Sequence[Region]) -> None:
        """Subscribe these regions, and no others (invariant 5)."""
        self._site.context.sometimes("a capture found other regions than before")
        self._sorter.cover(regions)
        now_ns = self._site.now_ns()
        self._progress_ns = {region: self._progress_ns.get(region, now_ns) for region in regions}
        for region in tuple(self._subscriptions):
            if region not in self._sorter.frontier:
                self._by_request.pop(self._subscriptions.pop(region).request, None)
        for region in regions:
            if region not in self._subscriptions:
                self._subscribe(region)

    def _end(self, subscription: Subscription, leader: NodeId | None = None) -> None:
        """End a session; the next tick but one begins another, with that store or the next one."""
        self._by_request.pop(subscription.request, None)
        self._tasks.refuted(subscription.region, subscription.store, leader)
        subscription.is_over = True
        subscription.heard_ns = self._site.now_ns()

    def _watch(self) -> None:
        """Subscribe again where a session ended or is silent; resolve locks that delay a watermark (invariant 4)."""
        now_ns = self._site.now_ns()
        regions = self._tasks.table.regions
        if regions != tuple(self._sorter.frontier):
            self._cover(regions)
        for region in regions:
            subscription = self._subscriptions[region]
            silence_ns = now_ns - subscription.heard_ns
            if subscription.is_over and silence_ns >= AGAIN_NS:
                self._subscribe(region)
            elif silence_ns >= SILENCE_NS:
                self._end(subscription)
        stuck = [region for region in regions if now_ns - self._progress_ns[region] >= STUCK_NS]
        if stuck and now_ns - self._looked_ns >= LOOK_NS and planted.ORPHAN_NEVER_RESOLVED not in self._site.bugs:
            self._looked_ns = now_ns
            for region in stuck:
                self._tasks.run(self._settle(region))

    def _settle(self, region: Region) -> Procedure[None]:
        before_ts = self._sorter.frontier[region] + 1
        answer = yield from call(region, ScanLocks(before_ts), LOOK_NS)
        if isinstance(answer, Locks) and answer.locks:
            self._site.context.sometimes("a capture looked into locks that held it back")
            yield from resolve(self._tasks, answer.locks, 0)

    # Rows and watermarks.

    def _add(self, subscription: Subscription, rows: list[Row]) -> None:
        subscription.heard_ns = self._site.now_ns()
        for row in rows:
            if row.commit_ts > subscription.after:  # Invariant 2.
                self._sorter.add(row)

    def _resolved(self, request: int, timestamp: int) -> None:
        subscription = self._by_request.get(request)
        if subscription is None:
            return
        subscription.heard_ns = self._site.now_ns()
        region = subscription.region
        if timestamp > self._sorter.frontier[region]:
            self._progress_ns[region] = self._site.now_ns()
        if timestamp < subscription.resolved:
            self._fell(subscription, timestamp)
        subscription.resolved = timestamp
        self._sorter.advance(region, timestamp)

    def _fell(self, subscription: Subscription, timestamp: int) -> None:
        """Record that a region's watermark fell within its session. The published watermark does not show that."""
        span = f"region {subscription.region.id}, request {subscription.request}"
        for position in (subscription.resolved, timestamp):
            self._site.context.deliver(Delivery(session=self._session, kind="watermark", span=span, position=position))

    # The sink.

    def _publish(self) -> None:
        """Deliver the rows up to the new watermark, and write them downstream (invariant 3)."""
        before = self._sorter.published
        rows = self._sorter.publish(self._awaited())
        if not rows and self._sorter.published == before:
            return
        context, watermark = self._site.context, self._sorter.published
        for row in rows:
            self._show(row)
        context.deliver(Delivery(session=self._session, kind="watermark", position=watermark))
        context.append(
            "downstream",
            Flush(tuple((row.commit_ts, row.start_ts, row.key, row.elements or ()) for row in rows), watermark),
        )
        if planted.CKPT_BEFORE_FLUSH in self._site.bugs:
            self._acknowledge(watermark)
        context.point("sink-before-durable")
        self._site.sync(lambda: self._acknowledge(watermark))

    def _awaited(self) -> tuple[Region, ...]:
        """The regions whose watermarks count: all, whatever the state of their sessions."""
        if planted.MIN_SKIPS_UNINIT in self._site.bugs:
            known = tuple(each.region for each in self._subscriptions.values() if each.matcher.is_initialized)
            return known or tuple(self._sorter.frontier)
        return tuple(self._sorter.frontier)

    def _show(self, row: Row) -> None:
        elements = row.elements or ()
        number = incarnation(elements)
        shown = view(elements, number)
        delivery = Delivery(
            session=self._session, kind="row", key=name(row.key, number), value=shown[-1] if shown else DELETED,
            position=row.commit_ts, unit=row.start_ts,
        )  # fmt: skip
        self._site.context.deliver(delivery)

    def _acknowledge(self, checkpoint: int) -> None:
        """Move the checkpoint: the source need not keep what is at or below it for this capture."""
        if checkpoint > self._checkpoint:
            self._checkpoint = checkpoint
            self._site.context.deliver(Delivery(session=self._session, kind="checkpoint", position=checkpoint))
