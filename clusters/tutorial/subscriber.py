"""A subscriber: follows the leader, and records the events it receives.

Theory of operation. It queries one data node after the other; the primary answers with rows and watermarks. Each query
begins a new session after its progress, the last watermark on its disk; rows above that may come again.
1. The session's number is on disk before it is used, so that no two sessions share one.
2. Messages of an older session are dropped: rows of a connection that has ended may be followed by holes.
"""

from clusters.tutorial.messages import DATA_NODES, Progress, Refused, Row, Subscribe, Watermark
from harness.core.machine import (
    Closed,
    Context,
    Delivery,
    Durable,
    Event,
    Received,
    Settings,
    Synced,
    TimerFired,
)

MS = 1_000_000
SILENCE_NS = 400 * MS
SESSION_TOKEN, PROGRESS_TOKEN = 0, 1


class Subscriber:
    """The machine of a subscriber, s1 or s2; the two are independent."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        progress = durable.value("progress")
        self.progress = progress if isinstance(progress, Progress) else Progress()
        self.target = 0
        self.is_open = False
        self._begin(context)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(_, Row(session=session) as row) if session == self.progress.session:
                self._heard(context)
                delivery = Delivery(
                    session=session, kind="row", key=row.key, value=row.value, position=row.position,
                    ordinal=row.ordinal, unit=row.position, unit_rows=row.rows,
                )  # fmt: skip
                context.deliver(delivery)
            case Received(_, Watermark(session, position)) if session == self.progress.session:
                self._heard(context)
                context.deliver(Delivery(session=session, kind="watermark", position=position))
                self._save(session, position, PROGRESS_TOKEN, context)
            case Received(sender, Refused()) | Closed(sender) if sender == DATA_NODES[self.target]:
                context.set_timer("silence", 50 * MS)
            case TimerFired("silence"):
                self.target = 1 - self.target
                self._begin(context)
            case Synced(token) if token == SESSION_TOKEN:
                self._heard(context)
                context.send(DATA_NODES[self.target], Subscribe(self.progress.session, self.progress.position))
            case Received(_, message) if not isinstance(message, Row | Watermark | Refused):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: no check needs a subscriber's state."""

    def _begin(self, context: Context) -> None:
        if self.progress.position:
            context.sometimes("a subscriber resumed")
        self._save(self.progress.session + 1, self.progress.position, SESSION_TOKEN, context)
        context.deliver(Delivery(session=self.progress.session, kind="open", position=self.progress.position))

    def _save(self, session: int, position: int, token: int, context: Context) -> None:
        now_ns = context.local_clock_ns()
        if now_ns < self.progress.saved_ns:
            context.sometimes("a subscriber's clock went back")
        self.progress = Progress(session, position, now_ns)
        context.put("progress", self.progress)
        context.sync(token)

    def _heard(self, context: Context) -> None:
        """Restart the silence timer, as the node has answered."""
        context.set_timer("silence", SILENCE_NS)
