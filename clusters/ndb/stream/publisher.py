"""The publisher of a data node (SUMA): sends changes to subscribers, and keeps those that its peer has to send.

Theory of operation. Both nodes of a group see every change in it. A bucket has one owner in an epoch, which sends the
changes at once; the other node keeps them until it learns that every subscriber has them.
1. The owner of a bucket is a function of bucket and epoch (buckets.py), and changes only from an epoch on that has not
   begun here. So no row of a current epoch changes its owner, however late it comes.
2. `EpochComplete` follows the last row of its epoch, by the same link, and names the buckets that it covers.
3. A subscriber's ack means that it has stored the epoch, the group's ack that all have. Only the latter frees the rows
   that the peer keeps: with the former, rows would be lost if a node died after its peer had freed them.
4. A node that takes over begins after the last group ack and sends the epochs in order: complete ones at once, the
   others when they are complete. So for each bucket a subscriber gets an unbroken run of complete epochs, whichever
   node sends it.
5. No subscriber delays others: with too many unacknowledged epochs it is removed, on all nodes, and notified. A node
   that loses its link to a subscriber removes it as well, before acknowledging anything to the group on its behalf.
6. Rows that do not fit are dropped, up to an epoch that is remembered: a take-over that needs them reports missing
   data.
"""

from collections import deque
from typing import NamedTuple, cast

from clusters.ndb import planted
from clusters.ndb.membership.view import Member, View
from clusters.ndb.parts import Site
from clusters.ndb.shape import GROUPS, MS, Key, bucket_of, buckets_of, first_epoch, gci_of, group_of
from clusters.ndb.stream.buckets import Ownership
from clusters.ndb.stream.messages import EpochComplete, GroupAck, Row, Sessions
from clusters.ndb.stream.subscriptions import Subscriptions
from harness.core.machine import Dump, Message, NodeId
from harness.core.record import Json

TICK = "suma-tick"
TICK_NS = 100 * MS


class Change(NamedTuple):
    """A row kept for a bucket of the peer."""

    bucket: int
    transid: int
    key: Json
    value: Json
    old_value: Json


class Publisher:
    """The publisher of one life of a node. All of its state is in memory."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._group = group_of(site.node)
        self._other = next(node for node in GROUPS[self._group] if node != site.node)
        self._peer: Member | None = None
        self._is_begun = False
        self._ownership = Ownership.from_start(self._group, GROUPS[self._group])
        self._publishing_from: int | None = 0  # None: this node is joining, and has no buckets yet.
        self._switch = 0  # Below this epoch this node publishes all buckets of its group.
        self._max_seen = 0
        self._last_complete = 0
        self._out_of_buffer = 0
        self._at_once = 4 if planted.COMPLETE_BEFORE_ROWS in site.bugs else 1
        self._unsent: list[tuple[int, Change]] = []  # Rows to be sent together, fewer than that, with their epochs.
        self._kept: dict[int, list[Change]] = {}  # By epoch: rows of the peer's buckets.
        self._kept_rows = 0
        self._kept_rows_most = 0
        self._freed = 0  # Every subscriber has the peer's rows up to that epoch.
        self._open: deque[int] = deque()  # Complete epochs that the peer has not acknowledged, ascending.
        self._subscriptions = Subscriptions(site, self._drained)

    # Calls from other parts.

    def row(self, epoch: int, transid: int, key: object, value: object, old_value: object = 0) -> None:
        """Publish a row that a transaction changed here. For one key, calls come in the order of commits."""
        self._max_seen = max(self._max_seen, epoch)
        row_key = cast("Key", key)
        bucket = bucket_of(row_key)
        change = Change(bucket, transid, row_key, cast("Json", value), cast("Json", old_value))
        if self._ownership.owner(bucket, epoch) == self._site.node and not self._is_in_hole(epoch):
            self._unsent.append((epoch, change))
            if len(self._unsent) >= self._at_once:
                self._flush()
        elif epoch > self._out_of_buffer:
            self._keep(epoch, change)

    def complete(self, epoch: int) -> None:
        """Announce an epoch that is complete on all nodes: no row of it can come any more.

        Epochs come in ascending order.
        """
        if epoch <= self._last_complete:
            return
        self._last_complete = epoch
        self._site.context.point("before-complete-rep")
        if epoch < self._switch:
            send = self._announce if planted.RESEND_RANGE_SHORT in self._site.bugs else self._resend
            send(epoch, tuple(buckets_of(self._group)))
        else:
            is_missing = planted.OOB_FLAG_ALWAYS in self._site.bugs and epoch <= self._out_of_buffer
            self._announce(epoch, self._ownership.owned(self._site.node, epoch), is_missing_data=is_missing)
            if self._peer is not None and epoch > self._freed:  # The peer's ack may come before this notice does.
                self._open.append(epoch)
        self._subscriptions.limit(epoch)

    def hand_over(self, from_epoch: int, joiner: NodeId) -> None:
        """Let the joiner publish the buckets that prefer it from that epoch on. No row of the epoch may exist yet."""
        if joiner == self._site.node:
            self._publishing_from = from_epoch
        elif planted.HANDOVER_DOUBLE in self._site.bugs:
            # It continues through the first epoch of the next checkpoint, as it does not know which epoch is next.
            from_epoch = first_epoch(gci_of(from_epoch) + 1) + 1
        self._ownership = self._ownership.handed_over(joiner, from_epoch)

    def is_connected(self) -> bool:
        """True if all subscribers that the peer knows have subscribed here."""
        return self._subscriptions.has_expected()

    def is_drained(self) -> bool:
        """True if every subscriber has everything that this node announced."""
        return self._subscriptions.oldest_record() is None

    def drained_below(self, epoch: int) -> bool:
        """True if every subscriber has all rows of this node below that epoch. Never before the epoch is complete."""
        oldest = self._subscriptions.oldest_record()
        return self._last_complete >= epoch and (oldest is None or oldest >= epoch)

    # Events.

    def handle(self, sender: NodeId, message: Message) -> None:
        match message:
            case GroupAck(epoch=epoch):
                if self._peer is not None and sender == self._peer.node:
                    self._subscriptions.compare(message, self._is_of_peer, self._publishing_from)
                    self._free(epoch)
            case _:
                self._subscriptions.handle(sender, message, self._next_epoch(), self._publishing_from)

    def closed(self, peer: NodeId) -> None:
        """Handle the end of the link to a subscriber."""
        self._subscriptions.closed(peer)

    def timer(self, name: str) -> None:
        """Probe the number of kept rows, and send a joining peer the list of subscribers. Every 100 ms."""
        context = self._site.context
        context.set_timer(TICK, TICK_NS)
        self._subscriptions.tick()
        context.probe("buffered-rows", self._kept_rows_most)
        self._kept_rows_most = self._kept_rows
        if self._peer is not None and not self._peer.is_started:
            self._site.send(self._peer.node, Sessions(self._site.view.number, self._subscriptions.names()))

    def view_changed(self, view: View, failed: tuple[Member, ...]) -> None:
        if not self._is_begun:
            self._begin(view)
        before = self._peer
        self._peer = next((member for member in view.members if member.node == self._other), None)
        if before is not None and view.since(before.node) != before.since:
            self._take_over()

    def _begin(self, view: View) -> None:
        """Handle the first view of this life: either the whole cluster starts, or this node joins."""
        self._is_begun = True
        started = view.started()
        if self._site.node not in started:
            self._publishing_from = None
            started = (*started, self._other)
        self._ownership = Ownership.from_start(self._group, started)
        self._site.context.set_timer(TICK, TICK_NS)

    # Rows that this node sends.

    def _flush(self) -> None:
        """Send the rows that wait (invariant 2)."""
        unsent, self._unsent = self._unsent, []
        for epoch, change in unsent:
            self._send(epoch, change)

    def _is_in_hole(self, epoch: int) -> bool:
        """True if no node publishes that epoch: buckets are handed to this one in it, which begins with the next."""
        since = self._publishing_from
        if not since or planted.HANDOVER_HOLE not in self._site.bugs:
            return False
        return since <= epoch <= first_epoch(gci_of(since) + 1)

    def _send(self, epoch: int, change: Change) -> None:
        bucket, transid, key, value, old_value = change
        send = self._site.context.send
        for subscriber, subscription in self._subscriptions.items():
            if subscription.first_epoch <= epoch:
                send(subscriber, Row(subscription.session, epoch, bucket, transid, key, value, old_value))

    def _announce(
        self, epoch: int, buckets: tuple[int, ...], *, is_resent: bool = False, is_missing_data: bool = False
    ) -> None:
        """Announce to all subscribers that they have all rows of these buckets (invariant 2)."""
        waiting = []
        for subscriber, subscription in self._subscriptions.items():
            if subscription.first_epoch <= epoch:
                waiting.append(subscriber)
                message = EpochComplete(subscription.session, epoch, buckets, is_resent, is_missing_data)
                self._site.context.send(subscriber, message)
        self._subscriptions.await_acks(epoch, waiting, self._last_complete)

    def _resend(self, epoch: int, buckets: tuple[int, ...]) -> None:
        """Send the kept rows of a complete epoch, and announce its buckets (invariant 4)."""
        context = self._site.context
        context.point("resend-epoch")
        context.sometimes("an epoch was resent")
        changes = self._kept.pop(epoch, [])
        self._kept_rows -= len(changes)
        taken = self._ownership.owned(self._other, epoch)
        is_lost = bool(taken) and self._is_lost(epoch)
        if is_lost and planted.OOB_SILENT not in self._site.bugs:
            context.sometimes("an epoch was marked as missing")
            for bucket in taken:
                context.dump(Dump(object="missing", key=bucket, value=None, position=epoch))
            self._announce(epoch, buckets, is_resent=True, is_missing_data=True)
            return
        for change in changes:
            self._send(epoch, change)
        self._announce(epoch, buckets, is_resent=True)

    def _is_lost(self, epoch: int) -> bool:
        """True if rows of the peer's buckets may be missing here: they did not fit, or are older than this life."""
        return epoch <= self._out_of_buffer or self._publishing_from is None or epoch < self._publishing_from

    # Rows that this node keeps for its peer.

    def _keep(self, epoch: int, change: Change) -> None:
        self._kept.setdefault(epoch, []).append(change)
        self._kept_rows += 1
        self._kept_rows_most = max(self._kept_rows_most, self._kept_rows)
        if self._kept_rows > self._site.parameters["max_buffered_rows"]:
            self._out_of_buffer = self._max_seen
            self._kept.clear()
            self._kept_rows = 0
            self._site.context.probe("out-of-buffer", self._out_of_buffer)
            self._site.context.sometimes("buffered rows were dropped")

    def _free(self, epoch: int) -> None:
        """Free the peer's rows up to that epoch, as every subscriber has them."""
        self._freed = max(self._freed, epoch)
        while self._open and self._open[0] <= epoch:
            self._open.popleft()
        # Below the switch this node publishes; the peer, joining again during such an epoch, sends nothing for it.
        for kept in [kept for kept in self._kept if self._switch <= kept <= epoch]:
            self._kept_rows -= len(self._kept.pop(kept))

    def _drained(self, epoch: int) -> None:
        """Note that every subscriber has all rows of this node up to that epoch."""
        self._site.checkpoints.drained()
        if self._peer is not None:
            self._site.context.point("before-group-ack")
            view = self._site.view.number
            self._site.send(self._peer.node, GroupAck(view, epoch, self._subscriptions.sessions()))
            if planted.FREE_ON_OWN_ACK in self._site.bugs:
                self._free(epoch)

    def _take_over(self) -> None:
        """Take over the dead peer's buckets (invariants 1 and 4)."""
        bugs = self._site.bugs
        switch = self._last_complete + 1 if planted.SWITCH_EPOCH_TOO_LOW in bugs else self._next_epoch()
        owed = [(epoch, taken) for epoch in self._open if (taken := self._ownership.owned(self._other, epoch))]
        if owed or self._kept:
            self._site.context.sometimes("buckets were taken over with unacknowledged epochs")
        for epoch, taken in owed if planted.NO_RESEND not in bugs else ():
            self._resend(epoch, taken)
        self._open.clear()
        self._switch = switch
        self._ownership = self._ownership.taken_over(self._site.node, switch)
        if self._publishing_from is None:
            self._publishing_from = switch
        self._subscriptions.limit(self._last_complete)

    def _is_of_peer(self, epoch: int) -> bool:
        """True if the peer publishes anything in that epoch. For an earlier life of the peer, this node publishes."""
        return epoch >= self._switch and bool(self._ownership.owned(self._other, epoch))

    def _next_epoch(self) -> int:
        """The lowest possible number of an epoch that has not begun here."""
        return max(self._max_seen, self._site.checkpoints.current) + 1
