"""The user of a subscriber: a thread of its own, which takes events from a bounded buffer at its own pace.

It naps at times. Acknowledgements never wait for it: epochs that do not fit are discarded whole, and a gap reports
this. An epoch whose storing has begun is always finished, so the buffer may exceed its limit by one epoch.
"""

from dataclasses import replace

from clusters.ndb import planted
from clusters.ndb.shape import MS
from clusters.ndb.stream.library import Epoch
from clusters.ndb.stream.merge import merged
from harness.core.machine import Context, Delivery, Dump

WAKE = "user"
WAKE_NS = 5 * MS
NAP_NS = (500 * MS, 2000 * MS)


class User:
    """The queue of epochs, gaps and session ends, in order, from the library to the history."""

    def __init__(self, limit: int, nap_permille: int, bugs: frozenset[str] = frozenset()) -> None:
        self._limit = limit
        self._nap_permille = nap_permille
        self._waiting: list[Delivery] = []
        self._merged: dict[int, list[Dump]] = {}  # By waiting epoch.
        self._most = 0
        self._discarded: int | None = None  # The last discarded epoch, while epochs are being discarded.
        self._drops = planted.LIB_OVERFLOW_DROPS_ROWS in bugs
        self._bugs = bugs
        self._splits = planted.LIB_RESUME_MID_EPOCH in bugs
        self.is_awake = True
        self._is_called = False

    def opened(self, session: int, position: int, context: Context) -> None:
        """Queue the start of a session after that epoch."""
        self._discarded = None
        self._put(Delivery(session=session, kind="open", position=position), context)

    def ended(self, session: int, cause: str, position: int, context: Context) -> None:
        """Queue the end of a session; epochs from `position` on are missing."""
        self._put(Delivery(session=session, kind="gap", value=cause, position=position), context)
        self._put(Delivery(session=session, kind="close"), context)

    def epoch(self, session: int, epoch: Epoch, context: Context) -> None:
        """Queue a complete epoch: all of it, or only a gap."""
        number = epoch.number
        if self._discarded is not None:
            if len(self._waiting) * 5 > self._limit * 4:
                self._discarded = number
                return
            if self._splits:  # The rest of an epoch of which it has discarded the first half.
                epoch = replace(epoch, rows=epoch.rows[len(epoch.rows) // 2 :])
            self._put(Delivery(session=session, kind="open", position=self._discarded), context)
            self._discarded = None
        elif len(self._waiting) >= self._limit and self._drops:
            epoch = replace(epoch, rows=[])
        elif len(self._waiting) >= self._limit:
            context.probe("event-buffer-full", len(self._waiting))
            context.sometimes("the user's buffer was full")
            self._put(Delivery(session=session, kind="gap", value="out-of-memory", position=number), context)
            self._discarded = number
            return
        self._store(session, epoch, context)

    def tick(self, context: Context) -> None:
        """Probe the number of waiting events, and sometimes fall asleep. Called every 100 ms."""
        context.probe("event-buffer", self._most)
        self._most = len(self._waiting)
        if not self.is_awake:
            context.probe("user-lag", len(self._waiting))
        elif self._nap_permille and context.draw("user").chance(self._nap_permille, 1000):
            self.is_awake = False
            context.set_timer(WAKE, context.draw("user").between(*NAP_NS))

    def wake(self, context: Context) -> None:
        """Deliver all waiting events, and with the end of an epoch its merged ones."""
        self.is_awake = True
        self._is_called = False
        for delivery in self._waiting:
            context.deliver(delivery)
            if delivery.kind == "watermark":
                for change in self._merged.pop(delivery.position or 0, ()):
                    context.dump(change)
        self._waiting.clear()

    def _store(self, session: int, epoch: Epoch, context: Context) -> None:
        number = epoch.number
        if epoch.is_missing_data:
            self._put(Delivery(session=session, kind="gap", value="inconsistent", position=number), context)
            self._put(Delivery(session=session, kind="open", position=number), context)
        for row in epoch.rows:
            self._waiting.append(
                Delivery(
                    session=session, kind="row", key=row.key, value=row.value, position=number, epoch=number,
                    unit=row.transid,
                )
            )  # fmt: skip
        if changes := merged(session, epoch.rows, self._bugs):
            self._merged[number] = changes
        self._put(Delivery(session=session, kind="watermark", position=number), context)

    def _put(self, delivery: Delivery, context: Context) -> None:
        waiting = self._waiting
        waiting.append(delivery)
        self._most = max(self._most, len(waiting))
        if self.is_awake and not self._is_called:
            self._is_called = True
            context.set_timer(WAKE, WAKE_NS)
