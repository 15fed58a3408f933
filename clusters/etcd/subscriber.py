"""Follows the watch of all streamed keys from a revision, and keeps its revision.

Theory of operation. A session watches from the revision behind the kept one, at one member; the next session asks the
next member, since every member has the same revisions.
1. Events are delivered as they come. The kept revision follows them: a response has whole revisions, in order.
2. Fifty times a second the subscriber requests a progress notification. Its revision is delivered as a watermark: etcd
   documents that no event at or below it is still to come. So the kept revision follows it as well.
3. etcd sends no notification below the revision at which a watch begins. So a watch that begins behind all there is
   stays silent until the next change. The session after a silent one begins at the kept revision, and drops its events.
4. A watch below the compacted revision is refused with that revision. The subscriber delivers a gap, as events before
   it are lost to it, and goes on from the compacted revision.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from clusters.etcd import planted, rows
from clusters.etcd.line import Line, Watch
from clusters.etcd.messages import message
from clusters.servers.client import Broken
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Deliver, Doors

REVISION: Final = "revision"
_CONNECTED_WITHIN_S: Final = 2.0
_CREATED_WITHIN_S: Final = 5.0
_PROGRESS_EVERY_S: Final = 0.02
_SILENT_S: Final = 3.0  # Without any response for this long the session is given up, and the next member asked.
_DELETE: Final = 1


class EtcdSubscriber:
    """One subscriber. `kept` has the revision up to which it has everything."""

    def __init__(self, node: NodeId, doors: Doors, settings: Settings, kept: dict[str, object]) -> None:
        self._doors, self._nodes, self._kept = doors, sorted(doors), kept
        self._turn = sum(node.encode()) % len(self._nodes)  # Two subscribers begin at two members.
        self._announced = 0  # The last watermark of the session.
        self._repeats = False  # The session before was silent.
        self._skips = planted.SKIP_MISSED in settings.bugs

    async def receive(self, deliver: Deliver) -> None:
        """Run one session. Raises OSError if there is no connection, and when the session ends."""
        self._turn += 1
        async with Line(self._doors[self._nodes[self._turn % len(self._nodes)]]) as line:
            await line.connected(_CONNECTED_WITHIN_S)
            watch = line.watch()
            try:
                await self._follow(watch, deliver)
            finally:
                watch.close()

    async def _follow(self, watch: Watch, deliver: Deliver) -> None:
        kept, repeats, self._repeats = self._reached(), self._repeats, False
        begin = 0 if self._skips else kept if repeats and kept else kept + 1
        await watch.tell(_creation(begin))
        created = await watch.received(_CREATED_WITHIN_S)
        if created is None:
            raise Broken("the watch was not created in time")
        await self._refused(created, deliver)
        self._announced = 0
        await deliver(Delivery(session=0, kind="open", position=self._reached()))
        watch.repeat(message("WatchRequest", progress_request=message("WatchProgressRequest")), _PROGRESS_EVERY_S)
        while (response := await watch.received(_SILENT_S)) is not None:
            await self._refused(response, deliver)
            await self._take(response, deliver, kept)
        self._repeats = True
        raise Broken("the member sends nothing more")

    async def _take(self, response: Any, deliver: Deliver, kept: int) -> None:
        """Deliver a response of a session that began with that revision kept."""
        if response.events:
            for event in deliveries([event for event in response.events if event.kv.mod_revision > kept]):
                await deliver(event)
            self._keep(response.events[-1].kv.mod_revision)
        elif not response.created and response.header.revision != self._announced:
            self._announced = response.header.revision  # The same notification comes again and again.
            await deliver(Delivery(session=0, kind="watermark", position=self._announced))
            self._keep(self._announced)

    async def _refused(self, response: Any, deliver: Deliver) -> None:
        """Return if the watch goes on. Raises Broken if the member has ended it, after the gap if there is one."""
        if response.compact_revision > self._reached() + 1:  # Below it the subscriber has everything.
            await deliver(Delivery(session=0, kind="gap", position=response.compact_revision))
            self._keep(response.compact_revision - 1)
        if response.canceled:
            raise Broken(response.cancel_reason or "the watch was cancelled")

    def _keep(self, revision: int) -> None:
        self._kept[REVISION] = max(self._reached(), revision)

    def _reached(self) -> int:
        """The kept revision: everything at or below it has been delivered, or was declared lost."""
        revision = self._kept.get(REVISION, 0)
        assert isinstance(revision, int)
        return revision


def deliveries(events: Any) -> Iterator[Delivery]:
    """The rows of a response. Each revision is the unit of one request, and its rows are numbered."""
    for revision, each in groupby(events, key=lambda event: event.kv.mod_revision):
        unit = [event for event in each if event.type != _DELETE]  # Only the preparation of a run deletes.
        for ordinal, event in enumerate(unit):
            key, value = rows.shown(event.kv.key, event.kv.value)
            yield Delivery(
                session=0,
                kind="row",
                key=key,
                value=value,
                position=revision,
                ordinal=ordinal,
                unit=revision,
                unit_rows=len(unit),
            )


def _creation(begin: int) -> Any:
    create = message("WatchCreateRequest", key=rows.STREAMED, range_end=rows.STREAMED_END, start_revision=begin)
    return message("WatchRequest", create_request=create)
