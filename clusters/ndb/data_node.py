"""A data node: one process made of parts, which crash together.

Theory of operation. An event goes to the part that it concerns; messages of parts to their own node are handled after
it, in order, before the next event. A node without a view waits (start.py); one with a view serves until it is voted
out.
1. `install` is the only place where a view comes into force: first membership, then storage and coordinator, then the
   publisher, then checkpoints, whose master queries all nodes again.
2. A node that is not started yet ends when another one fails: so no node has to deal with a half-done hand-over.
3. A member whose link has ended is not heard until a view decides which of the two leaves, even if it is connected
   again. Else: the master's GcpComplete of epoch 3 is lost when its link to d1 is cut for a moment; over the next
   connection d1 completes epoch 4, and subscribers wait for its buckets of epoch 3 for good.
4. A message to an earlier life of this node changes nothing. Else: d3 has not yet installed the view without d4, and
   sends a Prepare to the next life of d4, which keeps it until it joins; it locks the key, and is not in the chain
   along which d3 aborts. A sender learns of the new life by a view, and ends its transactions with the earlier one.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from clusters.ndb import planted
from clusters.ndb.backup import backup
from clusters.ndb.backup.messages import BACKUP_MESSAGES, StartBackup
from clusters.ndb.epochs.checkpoint import Checkpoint
from clusters.ndb.epochs.master import Master
from clusters.ndb.membership.membership import Membership
from clusters.ndb.membership.start import Start
from clusters.ndb.membership.view import View
from clusters.ndb.messages import (
    CHECKPOINT,
    MASTER,
    MEMBERSHIP,
    STARTING,
    Chosen,
    Drained,
    IAmHere,
    LastSeen,
    Ready,
    Sysfile,
)
from clusters.ndb.parts import Site
from clusters.ndb.shape import DATA_NODES, INJECTORS, MS, SUBSCRIBERS
from clusters.ndb.stream.messages import PUBLISHER_MESSAGES, GroupAck, RemoveSubscriber, Sessions
from clusters.ndb.stream.publisher import Publisher
from clusters.ndb.transactions.coordinator import Coordinator
from clusters.ndb.transactions.messages import COORDINATOR_MESSAGES, NOT_STARTED, STORAGE_MESSAGES, Refused, Transact
from clusters.ndb.transactions.storage import Storage
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Dump,
    Durable,
    Event,
    Message,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)

START_NS = 50 * MS  # The time between two requests to join.
CONNECT_NS = 2000 * MS  # The longest that a restarted node waits for subscribers.
END_NS = 100 * MS  # The time until the supervisor starts an ended process again.
TICK_NS = 50 * MS


class Addressed(Protocol):
    """A message for a member of a view."""

    @property
    def view(self) -> int: ...


class DataNode:
    """The machine of the data nodes d1 to d4."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        site = self._site = Site(context.node, settings.bugs, parameters_of(settings))
        site.context, site.life = context, context.now_ns()
        site.node_as_whole = self
        sysfile, last_seen = durable.value("sysfile"), durable.value("last-seen")
        self._redo: Sequence[Message] = durable.log("redo")
        self._is_over = False
        self._handed_over: int | None = None
        self._joined_ns = 0
        self._early: list[tuple[NodeId, Message]] = []  # Messages from before the view in which this node joins.
        self._membership = site.agreement = Membership(site)
        self._checkpoint = site.checkpoints = Checkpoint(
            site,
            sysfile if isinstance(sysfile, Sysfile) else Sysfile(),
            last_seen if isinstance(last_seen, LastSeen) else LastSeen(),
        )
        self._master = Master(site)
        self._start = Start(site, self._membership, self._checkpoint)
        self._storage = Storage(site)
        self._coordinator = Coordinator(site)
        self._publisher = site.publisher = Publisher(site)
        self._backup = site.backups = backup.Backup(site, self._storage.keys, self._storage.read)
        self._parts: dict[type, Callable[[NodeId, Message], None]] = {
            **dict.fromkeys(STARTING, self._start.handle),
            **dict.fromkeys(MEMBERSHIP, self._membership.handle),
            **dict.fromkeys(CHECKPOINT, self._checkpoint.handle),
            **dict.fromkeys(MASTER, self._master.handle),
            **dict.fromkeys(COORDINATOR_MESSAGES, self._coordinator.handle),
            **dict.fromkeys(STORAGE_MESSAGES, self._storage.handle),
            **dict.fromkeys(PUBLISHER_MESSAGES, self._publisher.handle),
            **dict.fromkeys(BACKUP_MESSAGES, self._backup.handle),
        }
        context.set_timer("start", site.parameters["suspect_ms"] * MS // 4)

    def handle(self, event: Event, context: Context) -> None:
        if isinstance(event, Received):
            self._receive(event.sender, event.message)
        elif isinstance(event, TimerFired):
            self._timer(event.name, context)
        elif isinstance(event, Synced):
            self._site.synced(event.token)
        elif isinstance(event, Closed):
            self._closed(event.peer)
        local = self._site.local
        while local and not self._is_over:
            message = local.popleft()
            self._dispatch(self._site.node, message)

    def dump(self, context: Context) -> None:
        if self._site.view.members and self._storage.is_copied:
            for key, elements, epoch in self._storage.rows_dump():
                context.dump(Dump(object="row", key=key, value=elements, position=epoch))

    # Events.

    def _receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Call):
            self._call(sender, message)
        elif not self._is_over:
            self._dispatch(sender, message)

    def _dispatch(self, sender: NodeId, message: Message) -> None:
        kind, site = type(message), self._site
        part = self._parts.get(kind)
        if self._membership.has_lost(sender) and kind not in BEFORE_VIEW:
            return  # Messages lost with the link may precede this one, and are never sent again (invariant 3).
        if kind in ADDRESSED and site.is_for_earlier_life(cast("Addressed", message).view):
            return  # Invariant 4.
        if part is not None and (site.view.members or kind in BEFORE_VIEW):
            part(sender, message)
        elif isinstance(message, Chosen | IAmHere):
            self._arbitrated(message)
        elif part is not None and kind not in PUBLISHER_MESSAGES:
            self._early.append((sender, message))
        else:
            site.context.unexpected(message)

    def _arbitrated(self, message: Chosen | IAmHere) -> None:
        """React to the arbitrator, unless it chose an earlier life of this node."""
        if isinstance(message, IAmHere):
            self._membership.advised(message)
        elif message.life != self._site.life:
            return
        elif self._site.view.members:
            self._membership.advised(message)
        else:
            self._start.chosen(message)

    def _call(self, client: NodeId, call: Call) -> None:
        body = call.body
        is_serving = bool(self._site.view.members) and not self._is_over
        if isinstance(body, Transact) and is_serving:
            self._coordinator.transact(client, call.number, body.mops)
        elif isinstance(body, StartBackup) and is_serving:
            self._backup.begin(client, call.number)
        else:
            self._site.context.send(client, Answer(call.number, Refused(NOT_STARTED)))

    def _timer(self, name: str, context: Context) -> None:
        site = self._site
        if name == "start":
            if not site.view.members:
                context.set_timer(name, START_NS)
                self._start.tick()
        elif name == "beat":
            context.set_timer(name, site.parameters["suspect_ms"] * MS // 8)
            self._membership.beat()
        elif name == "epoch":
            context.set_timer(name, site.parameters["epoch_ms"] * MS)
            if site.is_master:
                self._master.tick()
        elif name == "join":
            context.set_timer(name, TICK_NS)
            self._join()
        elif name.startswith("suma-"):
            self._publisher.timer(name)
        elif name == backup.TIMER:
            self._backup.timer()
        else:
            self._coordinator.timer(name)

    def _closed(self, peer: NodeId) -> None:
        if peer in DATA_NODES:
            self._membership.lose(peer)
        elif peer in SUBSCRIBERS or peer in INJECTORS:
            self._publisher.closed(peer)

    def _join(self) -> None:
        """Continue joining: a joining node reports when it is ready; its peer, when older epochs are drained."""
        site = self._site
        joiner = site.view.joiner
        if joiner is None:
            return
        if joiner.node == site.node:
            is_late = site.context.now_ns() - self._joined_ns > CONNECT_NS
            is_late |= planted.HANDOVER_BEFORE_CONNECT in site.bugs
            if self._storage.is_copied and (is_late or self._publisher.is_connected()):
                site.send(site.view.master, Ready(site.view.number, self._handed_over))
        elif site.view.peer(joiner.node) == site.node:
            epoch = self._handed_over
            if epoch is not None and self._publisher.drained_below(epoch):
                site.send(site.view.master, Drained(site.view.number, epoch))

    # Calls from parts to the node as a whole.

    def install(self, view: View) -> None:
        """Put that view into force (invariant 1)."""
        site, before = self._site, self._site.view
        if not before.members and not (self._start.expects(view) or self._membership.expects(view)):
            return  # The view is for an earlier life of this node.
        failed = tuple(member for member in before.members if view.since(member.node) != member.since)
        own = next(member for member in view.members if member.node == site.node)
        if failed and not own.is_started:
            self.end("a node that was not started saw another fail")
            return
        self._membership.begin(view)
        site.install(view)
        self._start.installed(view)
        highest = max(self._checkpoint.current, self._checkpoint.previous)
        site.context.dump(Dump(object="view", key=view.number, value=list(view.nodes()), position=highest))
        if not before.members:
            self._enter(view)
        joiner = view.joiner
        is_new = joiner is not None and before.since(joiner.node) is None
        if joiner is None or is_new:
            self._handed_over = None
        self._storage.view_changed(view, failed)
        self._coordinator.view_changed(view, failed)
        self._publisher.view_changed(view, failed)
        self._backup.view_changed()
        if joiner is not None and is_new and view.peer(joiner.node) == site.node:
            self._storage.copy_to(joiner.node)
        self._checkpoint.view_changed(view, failed)
        if site.is_master:
            if before.members and before.master != site.node:
                site.context.sometimes("the master changed")
            self._master.lead()
        else:
            self._master.rest()
        self.release()
        early, self._early = self._early, []
        for sender, message in early:
            self._dispatch(sender, message)

    def end(self, why: str) -> None:
        """End the process; the supervisor starts it again."""
        if not self._is_over:
            self._is_over = True
            site = self._site
            site.context.sometimes(f"a node ended itself: {why}")
            site.install(View(site.view.number, 0, ()))
            site.context.exit(END_NS)

    def release(self) -> None:
        """Allow commits to begin again."""
        self._coordinator.release()

    def complete(self, epoch: int) -> None:
        """Note that no further row of that epoch will come."""
        self._publisher.complete(epoch)
        self._backup.complete(epoch)

    def hand_over(self, epoch: int, node: NodeId) -> None:
        """Note that `node` publishes its buckets again from that epoch on."""
        site = self._site
        if site.node == node or site.view.peer(node) == site.node:
            self._handed_over = epoch
            site.context.point("at-handover")
            self._publisher.hand_over(epoch, node)
            if site.node == node:
                site.context.sometimes("buckets were handed back to a restarted node")

    def restore(self, gci: int) -> None:
        """Restore that global checkpoint from the disk."""
        self._storage.restore(self._redo, gci)
        self._storage.is_copied = True

    def _enter(self, view: View) -> None:
        """Enter this life's first view: with the data restored, or to be copied."""
        site, context = self._site, self._site.context
        for name in ("beat", "epoch", "join"):
            context.set_timer(name, TICK_NS)
        self._joined_ns = context.now_ns()
        restart = self._start.restart
        if restart is None:
            self._storage.restore((), 0)
            self._storage.is_copied = False
            self._checkpoint.sysfile = Sysfile(-1)
            context.put("sysfile", self._checkpoint.sysfile)
            context.truncate("redo", 0)
            return
        number = restart.starts - 1  # 0: the initial start.
        # Each node says so: the master may have died before it installed the view in which the others serve.
        context.dump(Dump(object="restart", key=number, value=[restart.gci, self._checkpoint.current]))
        if number and site.is_master:
            context.sometimes("the whole cluster was restarted")
        if number:
            for key, elements, epoch in self._storage.rows_dump():
                context.dump(Dump(object="restored", key=key, value=elements, position=epoch, txn=number))


BEFORE_VIEW = frozenset((*STARTING, *MEMBERSHIP))
# A dict is as fast as a set, and has an order, in which tests go through the messages.
ADDRESSED: dict[type[Message], None] = dict.fromkeys(
    (*COORDINATOR_MESSAGES, *STORAGE_MESSAGES, *BACKUP_MESSAGES, GroupAck, RemoveSubscriber, Sessions)
)


def parameters_of(settings: Settings) -> dict[str, int]:
    """The parameters of the run, and further values computed from them."""
    drawn = settings.parameters
    return {**drawn, "max_records": max(8, drawn["lag_ms"] // drawn["epoch_ms"])}
