"""The subscriptions at one data node: the session of each subscriber, and the epochs that it has yet to acknowledge.

A record is an announced epoch that not all subscribers have acknowledged.
1. A session ends on all nodes, or on none: the node that ends it notifies the others, and each of them notifies the
   subscriber. The number of an ended session is never used again here.
2. A node notifies its peer of a session's end before it acknowledges anything on its behalf, even if another node
   notified it: else a peer without that notice could take over a session without the epochs that it has freed
   meanwhile.
3. A session may reach one node of a group later than the other, which in between frees the epochs that the first
   acknowledged without the session. So the group's ack lists the sessions that it covers, and their first epochs: for
   other sessions no node has the epochs any more, and this node's own promise begins after them. A session that relied
   on them is notified, and ends.
"""

from collections.abc import Callable, ItemsView
from dataclasses import dataclass

from clusters.ndb import planted
from clusters.ndb.parts import Site
from clusters.ndb.stream.messages import (
    LAGGING,
    LINK,
    Disconnected,
    EpochAck,
    GroupAck,
    RemoveSubscriber,
    Sessions,
    SubStart,
    SubStartConf,
)
from harness.core.machine import Dump, Message, NodeId


@dataclass(slots=True)
class Subscription:
    """One session: it gets everything from `first_epoch` on, and last acknowledged something at `acked_ns`."""

    session: int
    first_epoch: int
    acked_ns: int


class Subscriptions:
    """All subscriptions.

    `drained(epoch)` is called when every subscriber has acknowledged everything up to that epoch.
    """

    def __init__(self, site: Site, drained: Callable[[int], None]) -> None:
        self._site = site
        self._drained = drained
        self._live: dict[NodeId, Subscription] = {}
        self._ended: dict[NodeId, int] = {}  # The highest ended session of each subscriber.
        self._expected: dict[NodeId, int] | None = None  # The peer's sessions, if this node is joining.
        self._records: dict[int, dict[NodeId, int]] = {}  # By epoch, ascending: the number of acks awaited from each.
        self._records_most = 0
        self._last_complete = 0

    def items(self) -> ItemsView[NodeId, Subscription]:
        """The live subscriptions, by subscriber."""
        return self._live.items()

    def names(self) -> tuple[tuple[NodeId, int], ...]:
        """The live sessions, in the form for a joining node."""
        return tuple((subscriber, live.session) for subscriber, live in self._live.items())

    def sessions(self) -> tuple[tuple[NodeId, int, int], ...]:
        """The live sessions, with the first epoch of each."""
        return tuple((subscriber, live.session, live.first_epoch) for subscriber, live in self._live.items())

    def has_expected(self) -> bool:
        """True if every subscriber that the peer named has subscribed here, unless its session has ended since."""
        return self._expected is not None and all(
            self._has(subscriber, session) for subscriber, session in self._expected.items()
        )

    def oldest_record(self) -> int | None:
        """The lowest epoch that is not yet acknowledged by all, or None."""
        return next(iter(self._records), None)

    def await_acks(self, epoch: int, waiting: list[NodeId], last_complete: int) -> None:
        """Await acks of a completed epoch from these subscribers; without any, the epoch is drained at once."""
        self._last_complete = last_complete
        if waiting:
            is_late = bool(self._records) and epoch < next(reversed(self._records))
            record = self._records.setdefault(epoch, {})
            for subscriber in waiting:
                record[subscriber] = record.get(subscriber, 0) + 1
            if is_late:
                self._records = dict(sorted(self._records.items()))
        elif not self._records:
            self._drained(last_complete)

    def compare(self, ack: GroupAck, is_of_peer: Callable[[int], bool], publishing_from: int | None) -> None:
        """End sessions that the peer's ack does not cover, as they may lack epochs that it frees (invariant 3)."""
        known = {subscriber: (session, first) for subscriber, session, first in ack.sessions}
        for subscriber, live in self._live.items():
            session, first = known.get(subscriber, (0, 0))
            rest = min(first, ack.epoch + 1) if session == live.session else ack.epoch + 1
            if live.first_epoch < rest and is_of_peer(rest - 1):
                live.first_epoch = rest
                self._confirm(subscriber, live, publishing_from)

    def limit(self, epoch: int) -> None:
        """Remove subscribers that are so late that too many records wait. `epoch` is the latest complete one."""
        while len(self._records) > self._site.parameters["max_records"]:
            if planted.NO_LAG_CHECK in self._site.bugs:
                break
            self._site.context.sometimes("a lagging subscriber was disconnected")
            late = self._records[next(iter(self._records))]
            for subscriber in tuple(self._live if planted.DISCONNECT_WRONG in self._site.bugs else late):
                self._end(subscriber, LAGGING, epoch)
        self._records_most = max(self._records_most, len(self._records))

    def tick(self) -> None:
        """Probe the largest number of records since the last call."""
        self._site.context.probe("records", self._records_most)
        self._records_most = len(self._records)

    def closed(self, subscriber: NodeId) -> None:
        """End the session of a closed link: its messages in transit are lost."""
        if subscriber in self._live:
            self._end(subscriber, LINK, self._last_complete)

    def handle(self, sender: NodeId, message: Message, next_epoch: int, publishing_from: int | None) -> None:
        """React to a subscriber, to another node, or to the peer."""
        match message:
            case EpochAck(session, epoch):
                self._acknowledged(sender, session, epoch)
            case SubStart(session):
                self._subscribe(sender, session, next_epoch, publishing_from)
            case RemoveSubscriber(subscriber=subscriber, session=session, reason=reason):
                view = self._site.view
                if view.since(sender) is not None:
                    peer = view.peer(self._site.node)
                    self._remove(subscriber, session, reason, () if peer is None else (peer,))
            case Sessions(sessions=sessions):
                self._expected = dict(sessions)
            case _:
                self._site.context.unexpected(message)

    def _subscribe(self, subscriber: NodeId, session: int, next_epoch: int, publishing_from: int | None) -> None:
        view, context = self._site.view, self._site.context
        live = self._live.get(subscriber)
        if session <= self._ended.get(subscriber, 0):
            context.send(subscriber, Disconnected(session, LINK))
            return
        if view.since(self._site.node) is None or (live is not None and session < live.session):
            return
        if live is None or session > live.session:
            if live is not None:
                self._forget(subscriber, live.session)
            live = self._live[subscriber] = Subscription(session, next_epoch, context.now_ns())
        self._confirm(subscriber, live, publishing_from)

    def _confirm(self, subscriber: NodeId, live: Subscription, publishing_from: int | None) -> None:
        view = self._site.view
        conf = SubStartConf(
            session=live.session,
            generation=view.generation,
            view_number=view.number,
            started=view.started(),
            first_epoch=live.first_epoch,
            publishing_from=publishing_from,
        )
        self._site.context.send(subscriber, conf)

    def _acknowledged(self, subscriber: NodeId, session: int, epoch: int) -> None:
        subscription = self._live.get(subscriber)
        record = self._records.get(epoch)
        if subscription is None or subscription.session != session or record is None:
            return
        subscription.acked_ns = self._site.context.now_ns()
        awaited = record.get(subscriber, 0) - 1
        if awaited > 0:
            record[subscriber] = awaited
            return
        record.pop(subscriber, None)
        if not record or planted.ACK_ONE_SUBSCRIBER in self._site.bugs:
            is_oldest = epoch == next(iter(self._records))
            del self._records[epoch]
            if is_oldest:
                self._advance()

    def _advance(self) -> None:
        """Report the epochs that are drained once the oldest record is gone: all below the next record, or all."""
        self._drained(next(iter(self._records)) - 1 if self._records else self._last_complete)

    def _end(self, subscriber: NodeId, reason: str, epoch: int) -> None:
        """End a session by this node's decision."""
        subscription = self._live[subscriber]
        context = self._site.context
        unacknowledged = sum(subscriber in record for record in self._records.values())
        silence_ns = context.now_ns() - subscription.acked_ns
        value = [reason, unacknowledged, silence_ns]
        context.dump(Dump(object="disconnect", key=subscriber, value=value, position=epoch))
        others = tuple(node for node in self._site.view.nodes() if node != self._site.node)
        self._remove(subscriber, subscription.session, reason, others)

    def _remove(self, subscriber: NodeId, session: int, reason: str, others: tuple[NodeId, ...]) -> None:
        """Remove a session that ended here or elsewhere: notify those others (invariant 2), and the subscriber."""
        live = self._live.get(subscriber)
        if live is not None and live.session <= session:
            for node in others:
                self._site.context.send(node, RemoveSubscriber(self._site.view.number, subscriber, session, reason))
            self._site.context.send(subscriber, Disconnected(live.session, reason))
            self._forget(subscriber, session)
        self._ended[subscriber] = max(session, self._ended.get(subscriber, 0))

    def _forget(self, subscriber: NodeId, session: int) -> None:
        """Count all unacknowledged epochs of the subscriber as acknowledged."""
        del self._live[subscriber]
        self._ended[subscriber] = max(session, self._ended.get(subscriber, 0))
        oldest = self.oldest_record()
        for record in self._records.values():
            record.pop(subscriber, None)
        self._records = {epoch: record for epoch, record in self._records.items() if record}
        if oldest != self.oldest_record():
            self._advance()

    def _has(self, subscriber: NodeId, session: int) -> bool:
        live = self._live.get(subscriber)
        return (live is not None and live.session >= session) or self._ended.get(subscriber, 0) >= session
