"""A subscriber: follows collections with SUBSCRIBE, and resumes after a crash where its disk has it.

Theory of operation.
1. Every update is recorded when it comes. A progress message is written to the subscriber's disk; after a crash the
   subscriber requests the updates at or above the last one.
2. Coordinators keep what a subscriber may ask for: it lets them know its progress, once that is durable.
3. A session that ends, or is silent, is followed by another one at the other compute node.
"""

from functools import partial

from msgspec import Struct

from clusters.materialize.messages import Ended, Hold, Progress, Subscribe, Updates
from clusters.materialize.shape import COMPUTE, COORDINATORS, LISTS, MS, SUBSCRIBERS
from clusters.materialize.site import Site
from harness.core.machine import Closed, Context, Delivery, Durable, Event, Received, Settings, Synced, TimerFired

LOOK = "look"
LOOK_NS = 40 * MS
SILENT_NS = 500 * MS


class Saved(Struct, frozen=True, tag=True):
    """On disk: the last progress."""

    ts: int


class Subscriber:
    """The machine of the subscribers s1 and s2; the two are independent."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        saved = durable.value("progress")
        self._ts = saved.ts if isinstance(saved, Saved) else 0
        self._session = 0
        self._durable_ts = self._ts
        self._turn = SUBSCRIBERS.index(context.node)
        self._heard_ns = context.now_ns()
        self._is_open = False
        if self._ts:
            context.sometimes("a subscriber resumed")
        self._open()
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Updates(session, updates)) if session == self._session and self._is_open:
                self._heard_ns = context.now_ns()
                for _, update in updates:
                    context.deliver(
                        Delivery(
                            session=session, kind="row", key=update.key, value=update.value, position=update.ts
                        )
                    )  # fmt: skip
            case Received(_, Progress(session, ts)) if session == self._session and self._is_open:
                self._heard_ns = context.now_ns()
                context.deliver(Delivery(session=session, kind="watermark", position=ts))
                self._ts = ts
                context.put("progress", Saved(ts))
                self._site.sync(partial(self._saved, ts))
            case Received(_, Ended(session, _)) if session == self._session:
                self._is_open = False
            case Received(_, Updates() | Progress() | Ended()):
                pass  # They belong to a session that is over.
            case TimerFired():
                self._look()
                context.set_timer(LOOK, LOOK_NS)
            case Closed(peer) if peer in COMPUTE:
                self._is_open = False
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: its deliveries were recorded."""

    def _look(self) -> None:
        """Report the progress (2), and begin another session if this one is over (3)."""
        for coordinator in COORDINATORS:
            self._site.send(coordinator, Hold(max(0, self._durable_ts - 1)))
        if not self._is_open or self._site.now_ns() >= self._heard_ns + SILENT_NS:
            self._turn += 1
            self._open()

    def _open(self) -> None:
        self._session = max(self._session + 1, self._site.now_ns() // MS)  # No earlier life has used it.
        self._is_open = True
        self._heard_ns = self._site.now_ns()
        self._site.context.deliver(Delivery(session=self._session, kind="open", position=self._ts))
        self._site.send(COMPUTE[self._turn % len(COMPUTE)], Subscribe(self._session, LISTS, self._ts))

    def _saved(self, ts: int) -> None:
        self._durable_ts = max(self._durable_ts, ts)
