"""The reader of the sink's topic: a subscriber that polls, and goes on after a crash where its disk has it.

Theory of operation. The place of the next batch, and the progress before it, are written to disk after a batch has been
recorded. A life of the reader is a session: it opens at that progress, and all that follows is at or above it.
"""

from msgspec import Struct

from clusters.materialize.messages import Batches, Poll, Told
from clusters.materialize.shape import MS, TOPIC_PLACE
from clusters.materialize.site import Site
from clusters.parts.procedures import TIMER, Ask, Sleep
from clusters.parts.routing import Procedure
from harness.core.machine import Closed, Context, Delivery, Durable, Event, Received, Settings, Synced, TimerFired

PAUSE_NS = 20 * MS


class Place(Struct, frozen=True, tag=True):
    """On disk: the number of batches that were read, and the progress of the last one."""

    count: int
    progress: int


class Reader:
    """The machine of s3."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        held = durable.value("place")
        self._place = held if isinstance(held, Place) else Place(0, 0)
        self._session = max(1, context.now_ns() // MS)  # No earlier life has used it.
        if self._place.count:
            context.sometimes("the reader of the sink resumed")
        context.deliver(Delivery(session=self._session, kind="open", position=self._place.progress))
        self._site.procedures.run(self._run())

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: its deliveries were recorded."""

    def _run(self) -> Procedure[None]:
        while True:
            (answer,) = yield Ask(((TOPIC_PLACE, Poll(self._place.count)),))
            if isinstance(answer, Batches) and answer.first == self._place.count and answer.batches:
                self._take(answer)
            else:
                yield Sleep(PAUSE_NS)

    def _take(self, found: Batches) -> None:
        deliver, session = self._site.context.deliver, self._session
        for batch in found.batches:
            for row in batch.rows:
                deliver(Delivery(session=session, kind="row", key=row.key, value=row.value, position=row.ts))
            deliver(Delivery(session=session, kind="watermark", position=batch.progress))
        self._place = Place(found.first + len(found.batches), found.batches[-1].progress)
        self._site.context.put("place", self._place)
