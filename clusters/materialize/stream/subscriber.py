"""A subscriber: follows collections with SUBSCRIBE, and resumes after a crash where its disk has it.

Theory of operation.
1. Every update is recorded when it comes. A progress message is written to the subscriber's disk; after a crash the
   subscriber requests the updates at or above the last one.
2. Coordinators keep what a subscriber may ask for: it lets them know its progress, once that is durable.
3. One of them also follows views. Their updates are logs by themselves, which have the view as their span and their
   diff as their ordinal; each progress message counts for all collections of the session.
"""

from functools import partial

from msgspec import Struct

from clusters.materialize.messages import Ended, Progress, Updates
from clusters.materialize.shape import FOLLOWED, SUBSCRIBERS
from clusters.materialize.site import Site
from clusters.materialize.stream.following import LOOK, LOOK_NS, Following
from harness.core.machine import Closed, Context, Delivery, Durable, Event, Received, Settings, Synced, TimerFired
from harness.core.record import Json


class Saved(Struct, frozen=True, tag=True):
    """On disk: the last progress."""

    ts: int


class Subscriber:
    """The machine of the subscribers s1 and s2; the two are independent."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        saved = durable.value("progress")
        self._ts = saved.ts if isinstance(saved, Saved) else 0
        self._durable_ts = self._ts
        lists, views = FOLLOWED[context.node]
        self._spans: tuple[str | None, ...] = (*(None for _ in lists), *views)  # By the place in the request.
        self._following = Following(self._site, context.node, (*lists, *views), SUBSCRIBERS.index(context.node))
        if self._ts:
            context.sometimes("a subscriber resumed")
        self._open()
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Updates(session, updates)) if self._following.hears(session):
                for place, update in updates:
                    span, value = self._spans[place], update.value
                    value = list(value) if isinstance(value, tuple) else value  # A pair of a join.
                    self._deliver("row", update.ts, span, update.key, value, None if span is None else update.diff)
            case Received(_, Progress(session, ts)) if self._following.hears(session):
                self._mark("watermark", ts)
                self._ts = ts
                context.put("progress", Saved(ts))
                self._site.sync(partial(self._saved, ts))
            case Received(_, Ended(session, _)):
                self._following.ended(session)
            case Received(_, Updates() | Progress()):
                pass  # They belong to a session that is over.
            case TimerFired():
                if self._following.look(self._durable_ts):
                    self._open()
                context.set_timer(LOOK, LOOK_NS)
            case Closed(peer):
                self._following.closed(peer)
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: its deliveries were recorded."""

    def _open(self) -> None:
        self._following.begin(self._ts)
        self._mark("open", self._ts)

    def _mark(self, kind: str, ts: int) -> None:
        """Record a mark of the lists, and one of each view."""
        for span in dict.fromkeys(self._spans):
            self._deliver(kind, ts, span)

    def _deliver(
        self, kind: str, ts: int, span: str | None, key: Json = None, value: Json = None, diff: int | None = None
    ) -> None:
        self._site.context.deliver(
            Delivery(
                session=self._following.session, kind=kind, span=span, key=key, value=value, position=ts, ordinal=diff
            )
        )

    def _saved(self, ts: int) -> None:
        self._durable_ts = max(self._durable_ts, ts)
