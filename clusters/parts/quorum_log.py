"""A replicated log: what a quorum of its members has on disk is decided, and all replicas apply it in order.

Theory of operation. The Raft protocol, without snapshots and changes of members.
1. A term has one leader at most: a vote is on disk before it is sent. A leader's log has all decided entries, since a
   vote goes only to a candidate whose log is not behind.
2. An entry is decided when a quorum has it on disk and it is of the leader's own term; then all before it are, too. So
   a leader without a quorum decides nothing.
3. A new leader applies an entry of its own term before it serves anything: by then it has applied every decided entry
   of older terms.
4. A follower that has heard from a leader votes for no one for `election_ms`, and neither does a restarted one. So
   a leader that a quorum has acknowledged within less than that has no successor: its lease.
5. Entries of one place and one term are equal everywhere. A follower cuts its log only where the leader's differs, and
   never below what is decided.
Source: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", USENIX ATC 2014; Ongaro's thesis,
sections 3.10, 4.2.3 and 6.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from clusters.parts.host import Host
from clusters.parts.log_messages import (
    Appended,
    AppendEntries,
    C,
    Entry,
    LogMessage,
    RequestVote,
    TimeoutNow,
    Vote,
    Voted,
)
from harness.core.machine import Message, NodeId

BATCH = 64  # Entries in one message.
AGAIN_NS = 500_000_000  # Without an answer entries are sent again: it may be lost where a link is cut in one direction.


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The members of log `number`, and the time without a sign of a leader after which one of them may lead.

    `noun` is the cluster's word for whatever has such a log.
    """

    number: int
    members: tuple[NodeId, ...]
    election_ns: int
    noun: str

    @property
    def quorum(self) -> int:
        """The number of members that decide."""
        return quorum(self.members)


def quorum(members: Sequence[NodeId]) -> int:
    """The least number of members of which any two such sets share one."""
    return len(members) // 2 + 1


class QuorumLog(Generic[C]):
    """One replica of a log, whose entries are commands of type C.

    `is_original`: the log is there from the beginning, and empty; any other begins with an entry that is decided.
    `is_eager`: it stands for election at once.
    """

    def __init__(
        self,
        site: Host,
        group: Group,
        vote: Vote,
        entries: Sequence[Entry[C]],
        *,
        is_original: bool,
        is_eager: bool,
        applied: Callable[[int, Entry[C]], None],
        deposed: Callable[[], None],
    ) -> None:
        self.number = group.number
        self.term = vote.term
        self.leader: NodeId | None = None
        self.commit = 0
        self.applied = 0
        self._site, self._group = site, group
        self._vote = vote.node
        self._entries = list(entries)
        self._when_applied, self._when_deposed = applied, deposed
        self._peers = tuple(node for node in group.members if node != site.node)
        self._quorum = group.quorum
        self._election_ns = group.election_ns
        self._draw = site.context.draw("election")
        self._written = self._durable = 0  # Numbers of writes, not of entries.
        self._heard_ns = site.now_ns()
        self._promised_ns = site.now_ns() if vote.term else -self._election_ns
        self._patience_ns = self._drawn_patience()
        if is_eager:
            self._patience_ns = 0
        self._is_original = is_original
        self._votes: dict[NodeId, bool] = {}
        self._first = 0  # The leader's first entry of its term.
        self._next: dict[NodeId, int] = {}
        self._match: dict[NodeId, int] = {}
        self._in_flight_ns: dict[NodeId, int | None] = {}  # Since when the follower has entries to acknowledge.
        self._acknowledged_ns: dict[NodeId, int] = {}
        self._left_ns: int | None = None  # When it gave up leading in this term,
        self._heir: NodeId | None = None  # and for whom, as long as that node has not the whole log.

    # The state, and what other parts may do.

    @property
    def is_leader(self) -> bool:
        """True if this node leads, as far as it knows."""
        return self.leader == self._site.node

    @property
    def has_caught_up(self) -> bool:
        """True if it leads, and has applied an entry of its own term (invariant 3)."""
        return self.is_leader and self.applied >= self._first

    @property
    def has_left(self) -> bool:
        """True if this node leads, and has given up for another: what it proposes now delays its successor."""
        return self._left_ns is not None

    def has_lease(self) -> bool:
        """True if it leads, is caught up, and certainly has no successor yet (invariant 4)."""
        if not self.has_caught_up or self._left_ns is not None:
            return False
        acknowledged_ns = sorted(self._acknowledged_ns.values())
        return self._site.now_ns() < acknowledged_ns[1 - self._quorum] + self._election_ns * 3 // 4

    def propose(self, command: C | None) -> int:
        """Append an entry and return its place; only for a leader.

        The entry is lost if the leader is deposed before it decides.
        """
        self._write(Entry(self.term, command))
        index = len(self._entries)
        term = self.term
        self._when_durable(lambda: self._own(term, index))
        for peer in self._peers:
            if self._in_flight_ns[peer] is None:
                self._replicate(peer)
        return index

    def transfer(self, to: NodeId) -> None:
        """Give up leadership in this term in favour of that node.

        The lease ends at once: the other may win at any time.
        """
        if self.has_caught_up and self._left_ns is None and to in self._peers:
            self._left_ns = self._site.now_ns()
            self._heir = to
            self._hand_over()

    def found(self, first: Entry[C] | None = None) -> None:
        """Apply the first entry: it is decided, since the log exists. It is written unless a leader has sent it."""
        if first is not None and not self._entries:
            self._write(first)
        if self._entries:
            self._decide(1)

    # Events.

    def tick(self) -> None:
        """Send heartbeats, or stand for election if there were none for too long."""
        now_ns = self._site.now_ns()
        if self._left_ns is not None and now_ns > self._left_ns + 2 * self._election_ns:
            self._stand()  # The successor did not win.
        elif self.is_leader:
            for peer in self._peers:
                since_ns = self._in_flight_ns[peer]
                self._replicate(peer, is_heartbeat=since_ns is not None and now_ns < since_ns + AGAIN_NS)
        elif now_ns >= self._heard_ns + self._patience_ns and (self._entries or self._is_original):
            self._stand()

    def closed(self, peer: NodeId) -> None:
        """The connection to that peer ended: send again what may be lost."""
        self._in_flight_ns[peer] = None

    def handle(self, sender: NodeId, message: LogMessage[C]) -> None:
        """React to a message from another replica."""
        if isinstance(message, AppendEntries):
            self._append(sender, message)
        elif isinstance(message, Appended):
            self._appended(sender, message)
        elif isinstance(message, RequestVote):
            self._requested(sender, message)
        elif isinstance(message, Voted):
            self._voted(sender, message)
        elif message.term == self.term and not self.is_leader:
            self._stand(is_transfer=True)

    # Followers.

    def _append(self, leader: NodeId, message: AppendEntries[C]) -> None:
        if message.term < self.term:
            self._reply(leader, Appended(self.number, self.term, False, 0, message.sent_ns))
            return
        self._adopt(message.term)
        self.leader = leader
        self._heard_ns = self._promised_ns = self._site.now_ns()
        self._patience_ns = self._drawn_patience()
        index = message.index
        if index > len(self._entries) or (index and self._entries[index - 1].term != message.index_term):
            longest = min(len(self._entries), index - 1)
            self._reply(leader, Appended(self.number, self.term, False, longest, message.sent_ns))
            return
        for entry in message.entries:
            index += 1
            if index <= len(self._entries) and self._entries[index - 1].term == entry.term:
                continue
            if index <= len(self._entries):
                self._cut(index - 1)
            self._write(entry)
        self._reply(leader, Appended(self.number, self.term, True, index, message.sent_ns))
        self._decide(min(message.commit, index))

    def _requested(self, candidate: NodeId, message: RequestVote) -> None:
        is_led = self.has_lease() if self.is_leader else self._site.now_ns() < self._promised_ns + self._election_ns
        if is_led and not message.is_transfer:
            return  # Invariant 4.
        if message.term > self.term:
            self._adopt(message.term)
        is_free = message.term == self.term and self._vote in (None, candidate)
        is_granted = is_free and (message.last_term, message.last) >= (self._last_term(), len(self._entries))
        if is_granted:
            self._vote = candidate
            self._heard_ns = self._site.now_ns()
            self._save_vote()
        self._reply(candidate, Voted(self.number, self.term, is_granted))

    def _stand(self, *, is_transfer: bool = False) -> None:
        """Stand for election in the next term."""
        site = self._site
        self._adopt(self.term + 1)
        self._vote = site.node
        self._save_vote()
        self._heard_ns = site.now_ns()
        self._patience_ns = self._drawn_patience()
        self._votes = {site.node: True}
        request = RequestVote(self.number, self.term, len(self._entries), self._last_term(), is_transfer)
        for peer in self._peers:
            self._reply(peer, request)

    def _voted(self, sender: NodeId, message: Voted) -> None:
        if message.term > self.term:
            self._adopt(message.term)
        elif message.term == self.term and message.is_granted and self.leader is None:
            self._votes[sender] = True
            if len(self._votes) >= self._quorum and self._vote == self._site.node:
                self._lead()

    # The leader.

    def _lead(self) -> None:
        site = self._site
        which = "another" if self._entries else "its first"
        site.context.sometimes(f"a {self._group.noun} got {which} leader")
        self.leader = site.node
        self._next = dict.fromkeys(self._peers, len(self._entries) + 1)
        self._match = dict.fromkeys(self._group.members, 0)
        self._in_flight_ns = dict.fromkeys(self._peers)
        self._acknowledged_ns = dict.fromkeys(self._peers, -self._election_ns)
        self._first = len(self._entries) + 1
        self.propose(None)

    def _replicate(self, peer: NodeId, *, is_heartbeat: bool = False) -> None:
        """Send the entries that the follower is not known to have. A heartbeat carries none, and renews the lease."""
        index = self._next[peer] - 1
        entries = () if is_heartbeat else tuple(self._entries[index : index + BATCH])
        if entries:
            self._in_flight_ns[peer] = self._site.now_ns()
        before = self._entries[index - 1].term if index else 0
        sent_ns = self._site.now_ns()
        message = AppendEntries(self.number, self.term, index, before, entries, self.commit, sent_ns)
        self._site.send(peer, message)

    def _appended(self, peer: NodeId, message: Appended) -> None:
        if message.term > self.term:
            self._adopt(message.term)
        if message.term != self.term or not self.is_leader:
            return
        self._acknowledged_ns[peer] = max(self._acknowledged_ns[peer], message.sent_ns)
        if not message.is_ok:
            self._in_flight_ns[peer] = None
            self._next[peer] = max(1, min(self._next[peer] - 1, message.match + 1))
            self._replicate(peer)
        elif message.match >= self._next[peer]:
            self._in_flight_ns[peer] = None
            self._next[peer] = message.match + 1
            self._matched(peer, message.match)
            if self._next[peer] <= len(self._entries):
                self._replicate(peer)
        else:
            self._matched(peer, message.match)
        if self._heir is not None:
            self._hand_over()

    def _hand_over(self) -> None:
        """Tell the successor to stand for election once it has the whole log: before, it would get no vote."""
        if self._heir is not None and self._match[self._heir] == len(self._entries):
            self._site.send(self._heir, TimeoutNow(self.number, self.term))
            self._heir = None

    def _own(self, term: int, index: int) -> None:
        if term == self.term and self.is_leader:
            self._matched(self._site.node, index)

    def _matched(self, node: NodeId, index: int) -> None:
        """Note how far that node's log is equal, and decide what a quorum now has (invariant 2)."""
        self._match[node] = max(self._match[node], index)
        held = sorted(self._match.values())[-self._quorum]
        if held > self.commit and self._entries[held - 1].term == self.term:
            self._decide(held)

    # Both.

    def _decide(self, index: int) -> None:
        self.commit = max(self.commit, index)
        while self.applied < self.commit:
            self.applied += 1
            self._when_applied(self.applied, self._entries[self.applied - 1])

    def _adopt(self, term: int) -> None:
        """Become a follower in that term, if it is later, or if this node does not lead."""
        if term > self.term:
            was_leader = self.is_leader
            self.term, self._vote, self.leader = term, None, None
            self._votes, self._left_ns, self._heir = {}, None, None
            self._save_vote()
            if was_leader:
                self._heard_ns = self._site.now_ns()  # Of its successor.
                self._site.context.sometimes("a leader was deposed")
                self._when_deposed()

    def _last_term(self) -> int:
        return self._entries[-1].term if self._entries else 0

    def _drawn_patience(self) -> int:
        return self._election_ns + self._draw.below(self._election_ns)

    # The disk.

    def _write(self, entry: Entry[C]) -> None:
        self._entries.append(entry)
        self._site.context.append(f"log-{self.number}", entry)
        self._written += 1

    def _cut(self, index: int) -> None:
        assert index >= self.applied  # Invariant 5.
        self._site.context.sometimes("a follower cut entries that were never decided")
        del self._entries[index:]
        self._site.context.truncate(f"log-{self.number}", index)
        self._written += 1

    def _save_vote(self) -> None:
        self._site.context.put(f"vote-{self.number}", Vote(self.term, self._vote))
        self._written += 1

    def _reply(self, to: NodeId, message: Message) -> None:
        """Send the message once all earlier writes are durable, as it may rest on them (invariants 1 and 2)."""
        self._when_durable(lambda: self._site.send(to, message))

    def _when_durable(self, then: Callable[[], None]) -> None:
        if self._durable == self._written:
            then()
            return
        written = self._written

        def synced() -> None:
            self._durable = max(self._durable, written)
            then()

        self._site.sync(synced)
