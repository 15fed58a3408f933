"""A participant in global checkpoints: gives epochs to transactions, and reports when those of an epoch are complete.

Theory of operation. An epoch is GCI << 32 | micro GCI. The master (master.py) moves all nodes from one to the next.
1. The epoch is taken at the start of a commit, atomically with the test of the block, and travels with the
   transaction.
2. GcpPrepare blocks the start of commits. GcpCommit{next} comes when all nodes are blocked; it unblocks. So a
   transaction that begins to commit in `next`, on any node, began after no node could give the older epoch any more:
   the boundary is a consistent cut.
3. GcpNodeFinish is sent when no transaction of a lower epoch is open here, adopted ones included, and no take-over is
   still determining its adopted transactions.
4. An epoch is complete, and the publisher is notified of its end, when *all* nodes have finished. One node's own
   finish says nothing about the rows that other coordinators still commit here.
5. A new global checkpoint is on disk as "may have begun" before the node confirms its preparation, so its number is
   never reused, whatever is lost.
6. A checkpoint is saved when the redo of all nodes is durable up to it; only then is it recorded as restorable.
Source: specs N1.6 and X1; invariant 4 differs from their text, see README.md.
"""

from typing import assert_never

from clusters.ndb import planted
from clusters.ndb.membership.view import Member, View
from clusters.ndb.messages import (
    CHECKPOINT,
    CopyGci,
    CopyGciConf,
    GcpCommit,
    GcpComplete,
    GcpNodeFinish,
    GcpPrepare,
    GcpPrepareConf,
    GcpSave,
    GcpSaveConf,
    Handover,
    HandoverConf,
    LastSeen,
    MasterGcpConf,
    MasterGcpReq,
    Sysfile,
)
from clusters.ndb.parts import Site
from clusters.ndb.shape import gci_of
from harness.core.machine import Message, NodeId


class Checkpoint:
    """The checkpoint participant of one node."""

    def __init__(self, site: Site, sysfile: Sysfile, last_seen: LastSeen) -> None:
        self._site = site
        self.sysfile = sysfile
        self.last_seen = last_seen
        self.current = 0
        self.previous = 0
        self._prepared = 0  # The epoch of a GcpPrepare that awaits its GcpCommit, also in a later view; 0: none.
        self._open: dict[int, int] = {}  # Incomplete transactions, by epoch.
        self._holds = 0
        self._finishing = 0  # The epoch of a GcpCommit that awaits this node's finish; 0: none.
        self._completed = 0
        self._blocks = planted.NO_COMMIT_BLOCK not in site.bugs
        self._waits = planted.NODEFINISH_EARLY not in site.bugs
        self._counts_adopted = planted.NODEFINISH_IGNORES_ADOPTED not in site.bugs
        self._awaits_acks = planted.GCP_BLOCKS_ON_SUBSCRIBER in site.bugs
        self._is_stuck = False  # True if a master died that had blocked commits, and its block counts on.

    # Calls from the coordinator.

    def begin_commit(self, given: int = 0) -> int | None:
        """The epoch of a transaction that begins to commit; None while none may begin (invariants 1 and 2).

        No correct caller has `given` it one before.
        """
        site = self._site
        if self._is_blocked() or self.current == 0 or site.is_frozen():
            return None
        epoch = given or self.current
        self._open[epoch] = self._open.get(epoch, 0) + 1
        return epoch

    def _is_blocked(self) -> bool:
        return (self._prepared != 0 and self._blocks) or self._is_stuck

    def end_commit(self, epoch: int) -> None:
        """Count one transaction of that epoch as complete."""
        left = self._open.pop(epoch) - 1 if epoch in self._open or self._counts_adopted else 0
        if left:
            self._open[epoch] = left
        else:
            self._finish()

    def adopt(self, epoch: int) -> None:
        """Count a dead coordinator's transaction, which will be committed here."""
        if self._counts_adopted:
            self._open[epoch] = self._open.get(epoch, 0) + 1

    def hold(self) -> None:
        """Keep epochs open while a take-over determines its adopted transactions."""
        self._holds += 1

    def let_go(self) -> None:
        """End one `hold`."""
        self._holds -= 1
        self._finish()

    def drained(self) -> None:
        """Note that subscribers have acknowledged everything. No epoch waits for that."""
        if self._awaits_acks:
            self._finish()

    # Calls from the node.

    def start_with(self, epoch: int) -> None:
        """Start the cluster with that epoch."""
        self.current, self.previous, self._completed = epoch, 0, 0

    def view_changed(self, view: View, failed: tuple[Member, ...]) -> None:
        """Forget an open GcpCommit: the master will query this node's position."""
        self._finishing = 0
        if self._prepared and planted.MASTER_CRASH_LEAVES_BLOCK in self._site.bugs:
            self._is_stuck = True

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to the master."""
        site = self._site
        if not isinstance(message, CHECKPOINT):
            site.context.unexpected(message)
            return
        is_stale = sender != site.view.master or message.number != site.view.number
        if is_stale and planted.STALE_FAILURE_NO not in site.bugs:
            return  # The message belongs to an older round or view.
        match message:
            case GcpPrepare(epoch=epoch):
                self._prepare(epoch)
            case GcpCommit(epoch=epoch):
                self._commit(epoch)
            case GcpComplete(epoch=epoch):
                self._complete(epoch)
            case GcpSave(gci=gci):
                site.sync(lambda: site.send(sender, GcpSaveConf(message.number, gci)))
            case CopyGci(gci=gci, active=active):
                self.sysfile = Sysfile(gci, active)
                site.context.point("before-copy-gci")
                site.context.put("sysfile", self.sysfile)
                site.sync(lambda: site.send(sender, CopyGciConf(message.number, gci)))
            case MasterGcpReq(number):
                answer = MasterGcpConf(number, self.current, self._prepared, self.sysfile.restorable_gci)
                site.send(sender, answer)
            case Handover(epoch=epoch, node=node):
                site.node_as_whole.hand_over(epoch, node)
                site.send(sender, HandoverConf(message.number, epoch))
            case _:
                assert_never(message)

    def _prepare(self, epoch: int) -> None:
        site, number = self._site, self._site.view.number
        self._prepared = epoch
        site.context.point("after-prepare")
        answer = GcpPrepareConf(number, epoch)
        gci = gci_of(epoch)
        if gci <= self.last_seen.gci:
            site.send(site.view.master, answer)
            return
        self.last_seen = LastSeen(gci, self.last_seen.starts)
        site.context.put("last-seen", self.last_seen)  # Invariant 5.
        master = site.view.master
        site.sync(lambda: site.send(master, answer))

    def _commit(self, epoch: int) -> None:
        if epoch > self.current:
            self.previous, self.current = self.current, epoch
        self._prepared = 0
        self._finishing = epoch
        self._site.context.point("after-epoch-commit")
        self._site.node_as_whole.release()
        self._finish()

    def _finish(self) -> None:
        """Report the finish, if all transactions of lower epochs are complete (invariant 3)."""
        if self._finishing == 0 or self._holds:
            return
        if self._waits and any(epoch < self._finishing for epoch in self._open):
            return
        site = self._site
        if self._awaits_acks and not site.publisher.is_drained():
            return
        epoch, self._finishing = self._finishing, 0
        site.context.point("before-nodefinish")
        site.send(site.view.master, GcpNodeFinish(site.view.number, epoch))

    def _complete(self, epoch: int) -> None:
        if epoch > self._completed:
            self._completed = epoch
            self._site.node_as_whole.complete(epoch)
