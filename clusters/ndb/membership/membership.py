"""Membership of the cluster: heartbeats, suspicion, and agreement on the next view.

Theory of operation. Every member sends heartbeats to every other. A member silent for `suspect_ms` is suspected. The
oldest of the others proposes a view without the suspects; all others in it must vote for it.
1. A number is used by one proposer once, and a node votes for rising numbers only. It votes for another proposer only
   after the first has withdrawn, or has become suspect: then either the first never installs its view, or the nodes
   that installed it are not in the new one, and rule 3 stops them.
2. A node that has voted begins no commit until a view is installed or the proposal withdrawn. So no node commits under
   the old view after another acts on the new one.
3. A proposed view that lacks a whole node group ends the processes in it. One that contains a whole group continues.
   Any other needs the consent of the arbitrator, and ends without it.
4. A link that has ended may have lost messages, so one of its ends must leave: each treats the other as silent.
5. Lease: a node answers reads only while every other member has, by its echo, heard a heartbeat that was sent less
   than `suspect_ms` ago. A member is voted out only after the proposer received nothing for that long, so its lease has
   expired by then.
6. A node that learns that it is no longer in a view ends its process.
Source of the rules of survival: specs N1.9. The agreement is a decision of this model.
"""

from clusters.ndb import planted
from clusters.ndb.membership.view import Member, View, has_every_group, has_whole_group
from clusters.ndb.messages import (
    AreYouThere,
    Behind,
    Cancel,
    Choose,
    Chosen,
    Excluded,
    FailRep,
    HeartBeat,
    IAmHere,
    Install,
    Propose,
    Vote,
)
from clusters.ndb.parts import Site
from clusters.ndb.shape import ARBITRATOR, DATA_NODES, MS
from harness.core.machine import Message, NodeId

RANKS = 8  # The numbers of views are unique for each proposer: their remainder is its rank.
NEVER_HEARD = -(1 << 62)


class Proposal:
    """A proposal of this node, with its votes."""

    def __init__(self, view: View, began_ns: int) -> None:
        self.view = view
        self.began_ns = began_ns
        self.votes: dict[NodeId, bool] = {}
        self.is_asking = False  # True once the arbitrator has been queried.


class Membership:
    """This node's part in the agreement. It calls `install` and `end` of the data node."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._suspect_ns = site.parameters["suspect_ms"] * MS
        self._rank = DATA_NODES.index(site.node)
        self.highest = 0  # The highest number seen.
        self._heard: dict[NodeId, int] = {}
        self._last_sent: dict[NodeId, int] = {}  # The sending time of the latest heartbeat from each node.
        self._echoed: dict[NodeId, int] = {}  # The sending time of our latest heartbeat that each node received.
        self._beat_ns = 0
        self._gone: dict[NodeId, bool] = {}  # Members whose link has ended, or who have restarted.
        self._proposal: Proposal | None = None
        self._voted: tuple[int, NodeId] | None = None
        self._voted_ns = 0
        self._wish: Member | None = None  # A member to let join, or to declare started, when nothing else is due.

    # Calls from the rest of the node.

    @property
    def is_frozen(self) -> bool:
        """True if no commit may begin here (invariant 2)."""
        return self._voted is not None or self._proposal is not None

    def may_serve(self) -> bool:
        """True if every member has received a recent heartbeat of this node (invariant 5)."""
        low = self._site.context.now_ns() - self._suspect_ns
        return all(self._echoed[node] > low for node in self._site.others)

    def next_number(self) -> int:
        """A view number that no node has used."""
        self.highest = self.number_above(self.highest)
        return self.highest

    def number_above(self, number: int) -> int:
        """A higher number, which only this node may use."""
        return (number // RANKS + 1) * RANKS + self._rank

    def wish(self, member: Member) -> None:
        """Let that member join (its `since` is -1), or declare it started, once nothing else is to be done."""
        if self._wish is None:
            self._wish = member

    def expects(self, view: View) -> bool:
        """True if this node has voted for that view."""
        return self._voted is not None and self._voted[0] == view.number

    def begin(self, view: View) -> None:
        """Note that a view is in force here from now on."""
        now_ns = self._site.context.now_ns()
        voted_ns = self._voted_ns if self._voted is not None else now_ns
        for member in view.members:
            if self._site.view.since(member.node) != member.since:
                self._heard[member.node] = now_ns
                self._echoed[member.node] = min(voted_ns, now_ns)
                self._last_sent[member.node] = NEVER_HEARD
                self._gone.pop(member.node, None)
        self._proposal = self._voted = None
        self.highest = max(self.highest, view.number)

    def lose(self, peer: NodeId) -> None:
        """Note that the link with a member has ended, or that it has restarted (invariant 4)."""
        if self._site.view.since(peer) is not None:
            self._gone[peer] = True

    def has_lost(self, peer: NodeId) -> bool:
        """True if the link with that member has ended, and no later view has decided which of the two leaves."""
        return peer in self._gone

    def restarted(self, peer: NodeId) -> None:
        """Note that a member's earlier life is certainly over, so that its lease need not be awaited."""
        if self._site.view.since(peer) is not None:
            self._gone[peer] = True
            self._heard[peer] = NEVER_HEARD

    def beat(self) -> None:
        """Send heartbeats; check for silent members. Called about eight times within `suspect_ms`."""
        site = self._site
        now_ns = site.context.now_ns()
        if now_ns - self._beat_ns > self._suspect_ns // 2:
            for node in self._heard:  # This node itself stood still: messages from that time may wait to be handled.
                if node not in self._gone:
                    self._heard[node] = now_ns
        self._beat_ns = now_ns
        site.context.send(ARBITRATOR, AreYouThere(now_ns))
        for node in site.others:
            if node not in self._gone:
                site.context.send(node, HeartBeat(site.view.number, now_ns, self._last_sent[node]))
        self._look(now_ns)

    # Messages.

    def handle(self, sender: NodeId, message: Message) -> None:
        site = self._site
        match message:
            case HeartBeat():
                self._heartbeat(sender, message)
            case Propose(base, view):
                self._proposed(sender, base, view)
            case Vote():
                self._vote(sender, message)
            case Cancel(number):
                if self._voted == (number, sender):
                    self._voted = None
                    site.node_as_whole.release()
            case Install(view):
                if view.number > site.view.number and view.since(site.node) is not None:
                    site.node_as_whole.install(view)
            case Behind(number):
                self._tell(sender, number)
            case FailRep(number, suspects):
                self._reported(sender, number, suspects)
            case Excluded(number, base):
                if number > site.view.number and site.view.members and not site.is_for_earlier_life(base):
                    site.node_as_whole.end("excluded")
            case _:
                site.context.unexpected(message)

    def advised(self, message: Chosen | IAmHere) -> None:
        """React to the arbitrator."""
        site = self._site
        if isinstance(message, Chosen):
            self._chosen(message.number, message.is_granted, message.highest)
        elif site.context.now_ns() - message.sent_ns > self._suspect_ns:
            site.context.sometimes("the arbitrator was out of reach for a while")

    def _heartbeat(self, sender: NodeId, message: HeartBeat) -> None:
        site, number = self._site, message.number
        if site.view.since(sender) is None:
            if site.view.members:
                self._tell(sender, number)
            return
        if number > site.view.number:
            site.context.send(sender, Behind(site.view.number))
        if sender not in self._gone and not site.is_for_earlier_life(number):
            self._heard[sender] = site.context.now_ns()
            self._last_sent[sender] = message.sent_ns
            self._echoed[sender] = max(self._echoed[sender], message.echo_ns)

    def _reported(self, sender: NodeId, number: int, suspects: tuple[NodeId, ...]) -> None:
        """Make one of two members leave that cannot reach each other, even if this node reaches both (invariant 4)."""
        for suspect in suspects:
            if number == self._site.view.number and suspect not in self._gone and sender not in self._gone:
                left = tuple(node for node in self._site.view.started() if node != suspect)
                self.lose(suspect if has_every_group(left) else sender)

    def _tell(self, node: NodeId, number: int) -> None:
        """Send the view in force to a node with an older view, or report that it is not in it."""
        site = self._site
        if number < site.view.number:
            is_in = site.view.since(node) is not None
            site.context.send(node, Install(site.view) if is_in else Excluded(site.view.number, number))

    def _proposed(self, sender: NodeId, base: int, view: View) -> None:
        site = self._site
        if base < site.view.number:
            self._tell(sender, base)
            return
        if base > site.view.number and site.view.members:
            site.context.send(sender, Behind(site.view.number))
            return
        if not site.view.members and not view.begins(site.node, site.life):
            return  # The message is meant for an earlier life of this node.
        given_to = self._vote_given_to(sender)
        if given_to is not None or view.number < self.highest or sender in self._suspects(site.context.now_ns()):
            site.context.send(sender, Vote(view.number, base, False, self.highest, given_to))
            return
        self.highest = view.number
        self._voted = (view.number, sender)
        self._voted_ns = site.context.now_ns()
        site.context.send(sender, Vote(view.number, base, True, self.highest))

    def _vote_given_to(self, sender: NodeId) -> NodeId | None:
        """The node that this node would vote for before `sender`, or None (invariant 1).

        Itself, if it proposes and is older.
        """
        site = self._site
        order = site.view.nodes()
        if not order:
            return None  # A node that waits to join votes for any node that lets it join.
        if self._proposal is not None:
            is_younger = sender in order and order.index(sender) < order.index(site.node)
            if not is_younger or self._proposal.is_asking:
                return site.node
            self._withdraw()
        if self._voted is not None and self._voted[1] != sender:
            holder = self._voted[1]
            if holder not in self._suspects(site.context.now_ns()):
                return holder
        return None

    def _vote(self, sender: NodeId, vote: Vote) -> None:
        if self._site.is_for_earlier_life(vote.base):
            return
        self.highest = max(self.highest, vote.highest)
        proposal = self._proposal
        if proposal is None or vote.number != proposal.view.number:
            return
        if vote.is_yes:
            proposal.votes[sender] = True
            self._count(proposal)
            return
        order = self._site.view.nodes()
        holder = vote.given_to
        is_older = holder in order and order.index(holder) < order.index(self._site.node) if holder else False
        if is_older and holder not in self._gone and not proposal.is_asking:
            self._withdraw()
        elif holder is None and vote.highest >= proposal.view.number and not proposal.is_asking:
            self._propose(proposal.view.members)

    def _chosen(self, number: int, is_granted: bool, highest: int) -> None:
        self.highest = max(self.highest, highest)
        proposal = self._proposal
        if proposal is None or not proposal.is_asking or proposal.view.number != number:
            return
        if is_granted:
            self._carry(proposal.view)
        elif self._is_growth(proposal.view):
            self._withdraw()
        else:
            self._give_up(proposal.view)

    # This node's proposals.

    def _look(self, now_ns: int) -> None:
        site = self._site
        self._wait_no_longer(now_ns)
        if not site.view.members:
            return  # The proposal has ended.
        suspects = self._suspects(now_ns)
        left = tuple(member for member in site.view.members if member.node not in suspects)
        if suspects and left[0].node != site.node:
            site.context.send(left[0].node, FailRep(site.view.number, suspects))
        if suspects and left[0].node == site.node:
            proposal = self._proposal
            if proposal is None or (proposal.view.members != left and not proposal.is_asking):
                self._propose(left)
            else:
                self._ask_again(proposal)
        elif self._proposal is not None and not self._is_growth(self._proposal.view):
            if not self._proposal.is_asking:
                self._withdraw()
        elif self._proposal is not None:
            self._ask_again(self._proposal)
        elif self._wish is not None and not suspects and site.is_master and self._voted is None:
            wish = self._wish
            others = tuple(member for member in site.view.members if member.node != wish.node)
            old = next((member for member in site.view.members if member.node == wish.node), None)
            if old is None:
                self._propose((*others, wish))
            elif not old.is_started:
                self._propose(tuple(wish if member is old else member for member in site.view.members))

    def _suspects(self, now_ns: int) -> tuple[NodeId, ...]:
        low = now_ns - self._suspect_ns
        site = self._site
        return tuple([node for node in site.others if self._heard[node] < low])

    def _propose(self, members: tuple[Member, ...]) -> None:
        site = self._site
        number = self.next_number()
        lives = tuple(Member(m.node, number if m.since < 0 else m.since, m.is_started, m.life) for m in members)
        view = View(number, site.view.generation, lives)
        self._proposal = Proposal(view, site.context.now_ns())
        self._voted = None
        site.context.point("before-propose")
        for node in view.nodes():
            if node != site.node:
                site.context.send(node, Propose(site.view.number, view))
        self._count(self._proposal)

    def _ask_again(self, proposal: Proposal) -> None:
        """Send requests again, as messages may be lost."""
        for node in proposal.view.nodes():
            if node != self._site.node and node not in proposal.votes:
                self._site.context.send(node, Propose(self._site.view.number, proposal.view))
        self._count(proposal)

    def _count(self, proposal: Proposal) -> None:
        """Continue once all have voted: install, query the arbitrator, or end (invariant 3)."""
        site, view = self._site, proposal.view
        if len(proposal.votes) + 1 < len(view.members):
            return
        is_majority = 2 * len(view.members) > len(site.view.members)
        if not has_every_group(view.started()) and not (planted.MAJORITY_NOT_VIABILITY in site.bugs and is_majority):
            self._give_up(view)
        elif self._is_growth(view) or not has_whole_group(view.nodes()):
            if planted.NO_ARBITRATION in site.bugs and not self._is_growth(view):
                self._carry(view)
                return
            proposal.is_asking = True
            site.context.send(ARBITRATOR, Choose(view.number, site.view.nodes(), view.nodes(), site.life))
        else:
            self._carry(view)

    def _is_growth(self, view: View) -> bool:
        """True if the view only adds a member, or declares one started."""
        return set(view.nodes()) >= set(self._site.view.nodes())

    def _carry(self, view: View) -> None:
        site = self._site
        site.context.point("before-install")
        for node in view.nodes():
            if node != site.node:
                site.context.send(node, Install(view))
        self._wish = None
        site.node_as_whole.install(view)

    def _withdraw(self) -> None:
        proposal = self._proposal
        if proposal is not None:
            self._proposal = None
            self._wish = None
            for node in proposal.view.nodes():
                if node != self._site.node:
                    self._site.context.send(node, Cancel(proposal.view.number))
            self._site.node_as_whole.release()

    def _give_up(self, view: View) -> None:
        """End all nodes of the view, since they cannot continue."""
        for node in view.nodes():
            if node != self._site.node:
                self._site.context.send(node, Excluded(view.number, self._site.view.number))
        self._site.node_as_whole.end("not viable")

    def _wait_no_longer(self, now_ns: int) -> None:
        """End this node if an awaited agreement does not come: then the others can agree without it."""
        proposal = self._proposal
        limit_ns = 3 * self._suspect_ns
        if proposal is not None and now_ns - proposal.began_ns > limit_ns:
            if self._is_growth(proposal.view):
                self._withdraw()
            else:
                self._site.node_as_whole.end("no agreement came")
        elif self._voted is not None and now_ns - self._voted_ns > 2 * limit_ns:
            self._site.node_as_whole.end("no agreement came")
