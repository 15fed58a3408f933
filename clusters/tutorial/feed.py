"""The primary's end of the change stream, with the position of each subscriber.

A transaction is sent whole, when the send buffer has room, and a watermark names the last one sent (invariant 5 of
data_node.py). A connection's end also ends its subscription: the subscriber subscribes again.
"""

from collections.abc import Sequence

from clusters.tutorial import planted
from clusters.tutorial.messages import Entry, Row, Watermark
from harness.core.machine import Context, NodeId, Settings

QUEUE_MAX = 16  # With more messages in a subscriber's send buffer no transaction is begun.


class Feed:
    """The subscriptions of one view."""

    def __init__(self, settings: Settings) -> None:
        self._is_torn = planted.TORN_WATERMARK in settings.bugs
        self._is_late = planted.LATE_ROW in settings.bugs
        self._sessions: dict[NodeId, int] = {}
        self._sent: dict[NodeId, int] = {}  # Position up to which all rows were sent.
        self._part: dict[NodeId, int] = {}  # Rows sent of the next transaction, if it is torn.

    def open(self, subscriber: NodeId, session: int, after: int) -> None:
        """Serve that subscriber from the position after `after`."""
        self._sessions[subscriber], self._sent[subscriber], self._part[subscriber] = session, after, 0

    def drop(self, peer: NodeId) -> None:
        """End the subscription of a connection that ended; does nothing if there is none."""
        self._sessions.pop(peer, None)

    def close(self) -> None:
        """End all subscriptions: this node no longer leads."""
        self._sessions.clear()

    def pump(self, log: Sequence[Entry], committed: int, context: Context) -> None:
        """Send committed, unsent transactions while there is room."""
        for subscriber, session in self._sessions.items():
            while self._sent[subscriber] < committed and context.queued(subscriber) < QUEUE_MAX:
                position = self._sent[subscriber] + 1
                if self._send(subscriber, session, position, log[position - 1], context):
                    self._sent[subscriber] = position

    def announce(self, committed: int, context: Context) -> None:
        """Send each subscriber the position up to which it has everything."""
        for subscriber, session in self._sessions.items():
            position = self._sent[subscriber]
            if position < committed:
                context.sometimes("a watermark waited for a full buffer")
            if self._is_late:
                position = committed
            elif self._part[subscriber]:
                position += 1
            if context.queued(subscriber) < 2 * QUEUE_MAX:
                context.send(subscriber, Watermark(session, position))

    def _send(self, subscriber: NodeId, session: int, position: int, entry: Entry, context: Context) -> bool:
        """Send the rows of one transaction; returns False if the buffer was full before the last of them."""
        writes = [mop for mop in entry.mops if mop.f != "r"]
        for ordinal in range(self._part[subscriber], len(writes)):
            if self._is_torn and context.queued(subscriber) >= QUEUE_MAX:
                self._part[subscriber] = ordinal
                return False
            mop = writes[ordinal]
            context.send(subscriber, Row(session, position, ordinal, len(writes), mop.key, mop.value))
        self._part[subscriber] = 0
        return True
