"""The master of global checkpoints: leads rounds, saves checkpoints, lets nodes join. A role of the oldest member.

Theory of operation.
1. After every change of the view the master, old or new, first queries the positions of all members. A round that any
   of them had prepared is run again in full, with its number: a node that left may have committed transactions in that
   epoch, and whoever learned of them must not commit in an older one. Else the highest epoch in force anywhere is
   committed everywhere (again). So no epoch in use is dropped, and no awaited epoch is skipped.
2. A round: prepare on all, commit on all, finish of all, completion sent to all. The next begins after that.
3. When a global checkpoint is over it is saved: redo durable on all, then recorded on all. One at a time; if a change
   of the view interrupts a save, the new master begins it again.
4. Buckets are handed to a restarted node between two rounds, from the next epoch on, and all nodes know this before
   that epoch begins: so the publisher is a function of bucket and epoch.
5. A restarted node counts as started when subscribers need nothing from before the hand-over, and when a checkpoint was
   saved that it can restore. So in every group some started node can always restore the last saved checkpoint.
6. A node that does not answer in a round for `GCP_STOP_NS` counts as lost, and so is voted out.
"""

from collections.abc import Collection
from enum import Enum
from typing import assert_never

from msgspec.structs import replace

from clusters.ndb import planted
from clusters.ndb.membership.view import Member
from clusters.ndb.messages import (
    MASTER,
    CopyGci,
    CopyGciConf,
    Drained,
    GcpCommit,
    GcpComplete,
    GcpNodeFinish,
    GcpPrepare,
    GcpPrepareConf,
    GcpSave,
    GcpSaveConf,
    Handover,
    HandoverConf,
    MasterGcpConf,
    MasterGcpReq,
    Ready,
)
from clusters.ndb.parts import Site
from clusters.ndb.shape import MS, first_epoch, gci_of
from harness.core.machine import Message, NodeId

GCP_STOP_NS = 3000 * MS


class Phase(Enum):
    """The master's state: idle, or waiting for the answers of all to a request."""

    IDLE = "idle"
    COLLECTING = "collecting"
    PREPARING = "preparing"
    COMMITTING = "committing"
    HANDING_OVER = "handing over"


class Master:
    """The role of master at one node. It is idle while another node leads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._epoch_ns = site.parameters["epoch_ms"] * MS
        self._gci_ns = site.parameters["gci_ms"] * MS
        self._phase = Phase.IDLE
        self._wait: dict[NodeId, bool] = {}
        self._began_ns = 0
        self._next = 0
        self._gci_ns_began = 0
        self._states: dict[NodeId, MasterGcpConf] = {}
        self._restorable = 0
        self._saving = 0  # The checkpoint being saved; 0: none.
        self._save_wait: dict[NodeId, bool] = {}
        self._active: tuple[NodeId, ...] = ()
        self._is_copying = False
        self._handed: tuple[NodeId, int] | None = None  # The joiner that publishes again, and its first epoch.
        self._is_restorable = False  # True if a saved checkpoint exists that the joiner can restore too.

    def lead(self) -> None:
        """Begin to lead in the installed view (invariant 1)."""
        site = self._site
        if self._phase in (Phase.PREPARING, Phase.COMMITTING):
            site.context.sometimes("the view changed in mid-round")
        self._states = {}
        self._saving, self._is_copying = 0, False
        self._handed, self._is_restorable = None, False
        self._enter(Phase.COLLECTING)
        site.everyone(MasterGcpReq(site.view.number))

    def rest(self) -> None:
        """Stop leading, as another node does."""
        self._phase, self._saving = Phase.IDLE, 0
        self._wait.clear()

    def tick(self) -> None:
        """Begin a round at the end of an epoch's time, unless one is in progress or a view is being agreed on."""
        site = self._site
        now_ns = site.context.now_ns()
        if self._phase == Phase.IDLE and not site.is_frozen():
            self._begin_round(now_ns)
        elif self._phase != Phase.IDLE and now_ns - self._began_ns > GCP_STOP_NS:
            for node in self._wait:
                site.agreement.lose(node)  # Invariant 6.

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to a participant."""
        site = self._site
        if not isinstance(message, MASTER):
            site.context.unexpected(message)
            return
        if not site.is_master or message.number != site.view.number:
            return
        match message:
            case MasterGcpConf():
                self._states[sender] = message
                self._done(Phase.COLLECTING, sender, 0)
            case GcpPrepareConf(epoch=epoch):
                self._done(Phase.PREPARING, sender, epoch)
            case GcpNodeFinish(epoch=epoch):
                self._done(Phase.COMMITTING, sender, epoch)
            case HandoverConf(epoch=epoch):
                self._done(Phase.HANDING_OVER, sender, epoch)
            case GcpSaveConf(gci=gci) | CopyGciConf(gci=gci):
                self._saved(sender, gci, isinstance(message, CopyGciConf))
            case Ready(handed_over=epoch):
                self._ready(sender, epoch)
            case Drained(epoch=epoch):
                self._drained(sender, epoch)
            case _:
                assert_never(message)

    # Rounds.

    def _begin_round(self, now_ns: int) -> None:
        site = self._site
        current = site.checkpoints.current
        is_due = now_ns - self._gci_ns_began >= self._gci_ns
        if is_due and self._saving == 0:
            self._gci_ns_began = now_ns
            self._prepare(first_epoch(gci_of(current) + 1))
        else:
            self._prepare(current + 1)

    def _prepare(self, epoch: int) -> None:
        site = self._site
        self._next = epoch
        self._enter(Phase.PREPARING)
        site.context.point("before-prepare-sent")
        site.everyone(GcpPrepare(site.view.number, epoch))

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._began_ns = self._site.context.now_ns()
        self._wait = dict.fromkeys(self._site.view.nodes(), True)

    def _done(self, phase: Phase, node: NodeId, epoch: int) -> None:
        """Note one answer; continue after the last."""
        if self._phase != phase or (epoch not in (0, self._next) and phase != Phase.COLLECTING):
            return
        self._wait.pop(node, None)
        if self._wait and not self._is_enough(phase):
            return
        site = self._site
        match phase:
            case Phase.COLLECTING:
                self._collected()
            case Phase.PREPARING:
                self._enter(Phase.COMMITTING)
                site.context.point("before-epoch-commit-sent")
                site.everyone(GcpCommit(site.view.number, self._next))
            case Phase.COMMITTING:
                self._phase = Phase.IDLE
                self._complete_previous()
                self._save()
            case _:
                self._phase = Phase.IDLE
                self._gci_ns_began = -self._gci_ns  # The joiner waits for the next checkpoint.

    def _is_enough(self, phase: Phase) -> bool:
        """True if the answers that are still missing are not awaited."""
        is_hasty = phase == Phase.PREPARING and planted.UNBLOCK_BEFORE_ALL in self._site.bugs
        return is_hasty and 2 * len(self._wait) < len(self._site.view.members)

    def _collected(self) -> None:
        """Continue from the positions of all members (invariant 1)."""
        site = self._site
        states: Collection[MasterGcpConf] = self._states.values()
        if planted.MASTER_CRASH_FORGETS_COMMIT in site.bugs:
            states = [replace(self._states[site.node], prepared=0)]
        self._restorable = max(state.restorable_gci for state in states)
        highest = max(state.current for state in states)
        prepared = max(state.prepared for state in states)
        if prepared > highest:
            site.context.sometimes("a prepared epoch was run again after a failure")
            self._complete_previous()  # The round before had ended, and some may not know it.
            self._prepare(prepared)
            return
        self._next = highest
        self._enter(Phase.COMMITTING)
        site.everyone(GcpCommit(site.view.number, highest))

    def _complete_previous(self) -> None:
        site = self._site
        ended = site.checkpoints.previous
        if ended:
            site.everyone(GcpComplete(site.view.number, ended))

    # Saves.

    def _save(self) -> None:
        """Save the checkpoint before the current one, if that was not done (invariant 3)."""
        site = self._site
        over = gci_of(site.checkpoints.current) - 1
        if self._saving or over <= self._restorable:
            return
        self._saving, self._is_copying = over, False
        self._active = tuple(m.node for m in site.view.members if m.is_started or self._has_all_of(m.node, over))
        self._save_wait = dict.fromkeys(site.view.nodes(), True)
        site.everyone(GcpSave(site.view.number, over))

    def _has_all_of(self, node: NodeId, gci: int) -> bool:
        """True if a joiner can restore that checkpoint: its copy predates the hand-over, and it received the rest."""
        return self._handed is not None and self._handed[0] == node and gci_of(self._handed[1]) <= gci

    def _saved(self, node: NodeId, gci: int, is_copy: bool) -> None:
        if gci != self._saving or is_copy != self._is_copying:
            return
        self._save_wait.pop(node, None)
        site = self._site
        if self._save_wait and (self._is_copying or planted.GCI_SAVED_EARLY not in site.bugs):
            return
        if self._is_copying:
            self._restorable, self._saving = gci, 0
            self._is_restorable = self._handed is not None and self._handed[0] in self._active
            site.context.probe("saved-gci", gci)
            return
        self._is_copying = True
        self._save_wait = dict.fromkeys(site.view.nodes(), True)
        site.context.point("before-copy-gci-sent")
        site.everyone(CopyGci(site.view.number, gci, self._active))

    # Joining nodes.

    def _ready(self, node: NodeId, handed_over: int | None) -> None:
        """Hand a joiner's buckets over between two rounds, now that it has all data (invariant 4)."""
        site = self._site
        if handed_over is None and self._phase == Phase.IDLE and not site.is_frozen():
            self._next = site.checkpoints.current + 1
            self._handed = (node, self._next)
            self._enter(Phase.HANDING_OVER)
            site.everyone(Handover(site.view.number, self._next, node))

    def _drained(self, peer: NodeId, epoch: int) -> None:
        """Count the joiner as started, now that nothing older than the hand-over waits (invariant 5)."""
        site = self._site
        joiner = site.view.joiner
        if joiner is None or self._handed != (joiner.node, epoch) or not self._is_restorable:
            return
        if site.view.peer(joiner.node) == peer:
            site.agreement.wish(Member(joiner.node, joiner.since, is_started=True, life=joiner.life))
