"""A node without a view: it waits to join the running nodes, or takes part in a restart of the whole cluster.

Theory of operation. It repeatedly sends the state of its disk to all data nodes.
1. If a view is in force, the master lets it join as a member without data, one node at a time.
2. If no node runs, the first in rank of those waiting queries the arbitrator, which agrees only if all nodes that may
   have run last are present. Then no other node can be running.
3. The restored checkpoint is the highest that any of them has recorded: all nodes active at that time saved it, and
   those present restore it. The others join later, as after a restart of their own.
4. Redo beyond it is discarded from the disk before the node confirms the restore, and the new epochs skip every
   checkpoint that may have begun: neither can reappear.
Source: specs N1.9 and N1.11.
"""

from msgspec.structs import replace

from clusters.ndb import planted
from clusters.ndb.epochs.checkpoint import Checkpoint
from clusters.ndb.membership.membership import Membership
from clusters.ndb.membership.view import Member, View, by_rank, has_every_group
from clusters.ndb.messages import (
    Chosen,
    Install,
    LastSeen,
    Running,
    StartChoose,
    StartConf,
    StartOrder,
    StartReq,
    Sysfile,
)
from clusters.ndb.parts import Site
from clusters.ndb.shape import ARBITRATOR, DATA_NODES, MS, first_epoch
from harness.core.machine import Message, NodeId

NUMBER_BITS = 16  # How many view numbers one life of the cluster may use; no later life uses them again.
FRESH_NS = 300 * MS  # A node silent for this long may not be waiting any more.
PATIENCE_NS = 400 * MS  # The time for one attempt before the next.
RUNNING_NS = 500 * MS  # After a sign of a view, no node starts the whole cluster for this long.


class Start:
    """This node's part in starts: its own, and while it leads those of others."""

    def __init__(self, site: Site, membership: Membership, checkpoint: Checkpoint) -> None:
        self._site, self._membership, self._checkpoint = site, membership, checkpoint
        self._waiting: dict[NodeId, tuple[int, StartReq]] = {}
        self._ran_ns = -RUNNING_NS
        self._tried = 0  # The highest number with which a restart of the whole cluster was tried.
        self._ordered: tuple[int, tuple[NodeId, ...]] | None = None
        self._ordered_ns = -PATIENCE_NS
        self._order: StartOrder | None = None  # The restart that this node leads,
        self._sources: tuple[NodeId, ...] = ()
        self._lives: dict[NodeId, int] = {}
        self._restored: dict[NodeId, bool] = {}
        self._obeyed: StartOrder | None = None  # and the one for which it has restored.
        self.restart: StartOrder | None = None  # The restart that led to the view in force.

    def tick(self) -> None:
        """Announce that this node waits; consider a restart of the whole cluster."""
        site = self._site
        request = self._request()
        for node in DATA_NODES:
            if node != site.node:
                site.context.send(node, request)
        now_ns = site.context.now_ns()
        fresh = self._fresh(now_ns)
        is_quiet = now_ns - self._ran_ns >= RUNNING_NS and now_ns - self._ordered_ns >= PATIENCE_NS
        if is_quiet and fresh[0] == site.node and has_every_group(fresh):
            self._ask(fresh)

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to other starting nodes, and to nodes that know of a view."""
        site = self._site
        match message:
            case StartReq():
                if site.view.members:
                    self._let_in(sender, message)
                else:
                    self._waiting[sender] = (site.context.now_ns(), message)
                    self._tried = max(self._tried, message.highest)
            case Running():
                self._ran_ns = site.context.now_ns()
            case StartOrder():
                is_newer = self._obeyed is None or message.number > self._obeyed.number
                if not site.view.members and is_newer and message.life == site.life:
                    self._obey(sender, message)
            case StartConf(number, life):
                if life == site.life:
                    self._confirmed(sender, number)
            case _:
                site.context.unexpected(message)

    def chosen(self, chosen: Chosen) -> None:
        """React to the arbitrator's answer about starting the whole cluster."""
        self._tried = max(self._tried, chosen.highest)
        if self._ordered is None or self._ordered[0] != chosen.number:
            return
        number, nodes = self._ordered
        self._ordered = None
        if chosen.is_granted:
            self._lead(number, nodes)

    def expects(self, view: View) -> bool:
        """True if this node has restored the state with which that view starts."""
        return self._obeyed is not None and view.number == self._obeyed.number

    def installed(self, view: View) -> None:
        """Note that this node is in a view."""
        obeyed = self._obeyed
        self.restart = obeyed if obeyed is not None and view.generation == obeyed.number else None
        self._obeyed = self._order = self._ordered = None
        self._waiting.clear()

    def _request(self) -> StartReq:
        sysfile, seen = self._checkpoint.sysfile, self._checkpoint.last_seen
        return StartReq(sysfile.restorable_gci, sysfile.active, seen.gci, seen.starts, self._tried, self._site.life)

    def _fresh(self, now_ns: int) -> tuple[NodeId, ...]:
        """The nodes waiting now, this node included, by rank."""
        waiting = [node for node, (heard_ns, _) in self._waiting.items() if now_ns - heard_ns < FRESH_NS]
        return by_rank((*waiting, self._site.node))

    def _let_in(self, node: NodeId, request: StartReq) -> None:
        """Let a waiting node join the view in force here."""
        site = self._site
        site.context.send(node, Running(site.view.number))
        member = next((member for member in site.view.members if member.node == node), None)
        if member is not None:
            if member.life < request.life:
                self._membership.restarted(node)
        elif site.is_master and site.view.joiner is None:
            site.agreement.wish(Member(node, since=-1, is_started=False, life=request.life))

    # A restart of the whole cluster.

    def _ask(self, nodes: tuple[NodeId, ...]) -> None:
        requests = [self._request(), *(self._waiting[node][1] for node in nodes if node != self._site.node)]
        starts = max(request.starts for request in requests) + 1
        self._tried = max(self._tried, starts << NUMBER_BITS)
        number = self._tried = self._membership.number_above(self._tried)
        self._ordered, self._ordered_ns = (number, nodes), self._site.context.now_ns()
        self._site.context.send(ARBITRATOR, StartChoose(number, nodes, self._site.life))

    def _lead(self, number: int, nodes: tuple[NodeId, ...]) -> None:
        """Choose the checkpoint from which these nodes start (invariant 3), and order it."""
        site = self._site
        requests = {node: self._request() if node == site.node else self._waiting[node][1] for node in nodes}
        best = max(requests.values(), key=lambda request: request.restorable_gci)
        if planted.OLD_MASTER_NO_COPY in site.bugs:
            best = requests[site.node]
        gci = max(0, best.restorable_gci)
        have_it = best.active if best.active and planted.RESTART_MAX_OF_NODES not in site.bugs else nodes
        sources = tuple(node for node in nodes if requests[node].restorable_gci >= 0 and node in have_it)
        if not has_every_group(sources):
            return
        seen = max(request.last_seen_gci for request in requests.values())
        starts = max(request.starts for request in requests.values()) + 1
        first_gci = (gci if planted.EPOCH_REUSE in site.bugs else seen) + 1
        self._order = StartOrder(number, gci, sources, first_gci, starts, site.life, site.life)
        self._sources, self._restored = sources, {}
        self._lives = {node: requests[node].life for node in sources}
        for node in sources:
            site.send(node, replace(self._order, life=self._lives[node]))

    def _obey(self, leader: NodeId, order: StartOrder) -> None:
        """Restore; answer once the restore, and the numbers never to be reused, are on disk (invariant 4)."""
        site = self._site
        self._obeyed = order
        site.context.point("before-restore")
        site.node_as_whole.restore(order.gci)
        self._checkpoint.last_seen = LastSeen(order.first_gci, order.starts)
        self._checkpoint.sysfile = Sysfile(order.gci, order.active)
        self._checkpoint.start_with(first_epoch(order.first_gci))
        site.context.put("last-seen", self._checkpoint.last_seen)
        site.context.put("sysfile", self._checkpoint.sysfile)
        site.sync(lambda: site.send(leader, StartConf(order.number, order.leader_life)))

    def _confirmed(self, node: NodeId, number: int) -> None:
        order, site = self._order, self._site
        if order is None or order.number != number or site.view.members:
            return
        self._restored[node] = True
        if len(self._restored) == len(self._sources):
            view = View(
                number, number, tuple(Member(source, number, life=self._lives[source]) for source in self._sources)
            )
            for source in self._sources:
                if source != site.node:
                    site.send(source, Install(view))
            site.node_as_whole.install(view)
