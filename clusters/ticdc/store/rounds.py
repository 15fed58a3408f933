"""The rounds of a store: it fetches a timestamp, confirms that it leads, asks for large transactions, then advances.

Theory of operation. The order of the steps is a part of the protocol.
1. The timestamp is fetched first: of whatever is applied here afterwards, nothing can have committed at or below it
   without a lock that was applied before.
2. A region goes on only if a quorum, this store included, follows this leader in its term, and said so after 1. So all
   that another leader could commit gets a later timestamp.
3. For the states of large transactions, one query per round goes to each store that leads primary keys of theirs.
   Without an answer the old bound stays in force.
4. A region advances when all have answered, or at the next tick with those that have. But a round lasts until a quorum
   has confirmed every region, for `AGAIN_NS` at most: where messages take longer than ticks, none would ever succeed.
   Everything applied until then has gone to its advancer, and to captures, before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from clusters.ticdc import planted
from clusters.parts.quorum_log import quorum
from clusters.ticdc.oracle.messages import Timestamp, Tso
from clusters.ticdc.rows.messages import Status
from clusters.ticdc.shape import MS, ORACLE, STORES, Key, physical_ms, slot_of
from clusters.ticdc.site import Site
from clusters.ticdc.store.replica import Replica
from clusters.ticdc.stream.messages import ResolvedTs
from clusters.ticdc.watermarks.advancer import Advancer
from clusters.ticdc.watermarks.messages import AskLarge, CheckLeader, LargeStatus, LeaderChecked, ReadState
from harness.core.machine import Dump, Message, NodeId

_QUORUM = quorum(STORES)
AGAIN_NS = 200 * MS  # After so much silence the query to the oracle, or to the other stores, is sent again.


@dataclass(slots=True)
class Round:
    """A round that has not ended. `terms` are those in which this store leads, by region."""

    number: int
    begun_ns: int
    terms: dict[int, int]
    ts0: int = 0
    followers: dict[int, int] = field(default_factory=dict)  # By region, how many stores follow this one.
    awaited: int = 0
    is_asking: bool = False  # For the states of large transactions at another store.
    least: dict[int, int | None] = field(default_factory=dict)  # For a planted bug: what locks allowed at first.


class Rounds:
    """The rounds of one store, one after the other."""

    def __init__(self, site: Site, replicas: dict[int, Replica], replica_at: Callable[[int], Replica | None]) -> None:
        self._site = site
        self._replicas = replicas
        self._replica_at = replica_at
        self._number = 0
        self._round: Round | None = None
        self._is_stuck = False  # By a planted bug only: two stores that ask each other wait for each other.
        self._states_to_read: dict[int, ReadState] = {}  # Of the regions that advanced in the last round.
        self._peers = tuple(node for node in STORES if node != site.node)

    def tick(self) -> None:
        """End the round that has not ended by itself, and begin the next one (invariant 4)."""
        if self._is_stuck:
            return
        current = self._round
        if current is not None:
            is_young = self._site.now_ns() < current.begun_ns + AGAIN_NS
            if is_young and not (current.ts0 and self._is_confirmed(current)):
                return
            if current.ts0:
                self._finish()
        terms = {
            region: replica.log.term
            for region, replica in self._replicas.items()
            if replica.advancer is not None and replica.advancer.is_ready and replica.log.is_leader
        }
        self._round = None
        if terms:
            self._number += 1
            self._round = Round(self._number, self._site.now_ns(), terms)
            if planted.TSO_AFTER_LOCKS in self._site.bugs:
                self._round.least = {region: self._advancer(region).least() for region in terms}
            self._site.send(ORACLE, Tso(self._number))

    def _is_confirmed(self, current: Round) -> bool:
        return all(current.followers.get(region, 1) >= _QUORUM for region in current.terms)

    def closed(self, peer: NodeId) -> None:
        """Give up the round if its request to the oracle may be lost: the connection to that peer ended."""
        if peer == ORACLE and self._round is not None and not self._round.ts0:
            self._round = None

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to a message from the oracle or another store."""
        if self._is_stuck:
            return
        current = self._round
        if isinstance(message, CheckLeader):
            for state in message.states:
                self._publish(state)
            followed = tuple(region for region, term in message.regions if self._follows(sender, region, term))
            self._site.send(sender, LeaderChecked(message.round, followed))
            return
        match message:
            case AskLarge(number, transactions):
                if planted.CACHE_DEADLOCK in self._site.bugs and current is not None and current.is_asking:
                    self._is_stuck = True
                self._site.send(sender, LargeStatus(number, self._states(transactions)))
            case Timestamp(number, ts0, is_new):
                self._site.has_new_rule = is_new or self._site.has_new_rule
                if current is not None and number == current.number:
                    self._fetched(current, ts0)
            case LeaderChecked(number, regions) if current is not None and number == current.number:
                for region in regions:
                    current.followers[region] = current.followers.get(region, 1) + 1
                self._answered(current)
            case LargeStatus(number, states):
                self._learn(states)  # Of an earlier round, too: what was replicated stays true.
                if current is not None and number == current.number:
                    self._answered(current)

    def _publish(self, state: ReadState) -> None:
        """Tell this store's replica how far it can be read."""
        replica = self._replicas.get(state.region)
        if replica is not None:
            replica.progress.learn(state, replica.log.applied)

    def _advancer(self, region: int) -> Advancer:
        advancer = self._replicas[region].advancer
        assert advancer is not None  # It leads there.
        return advancer

    def _follows(self, leader: NodeId, region: int, term: int) -> bool:
        replica = self._replicas.get(region)
        return replica is not None and replica.log.leader == leader and replica.log.term == term

    def _fetched(self, current: Round, ts0: int) -> None:
        """Ask the other stores, after the timestamp has come (invariants 1 to 3)."""
        self._site.context.point("tick-timestamp")
        current.ts0 = ts0
        regions = tuple(current.terms.items())
        for peer in self._peers:
            self._site.send(peer, CheckLeader(current.number, regions, tuple(self._states_to_read.values())))
        current.awaited = len(self._peers)
        for store, transactions in self._open_large().items() if self._site.has_new_rule else ():
            if store == self._site.node:
                self._learn(self._states(transactions))
            else:
                current.awaited += 1
                current.is_asking = True
                self._site.send(store, AskLarge(current.number, transactions))

    def _open_large(self) -> dict[NodeId, tuple[tuple[int, Key], ...]]:
        """The large transactions that hold watermarks back here, by the store that leads their primary key's region."""
        found: dict[NodeId, dict[tuple[int, Key], None]] = {}
        for replica in self._replicas.values():
            for start_ts, primary in replica.advancer.open_large() if replica.advancer is not None else ():
                home = self._replica_at(slot_of(primary))
                leader = home.log.leader if home is not None else None
                if leader is not None:
                    found.setdefault(leader, {})[start_ts, primary] = None
        return {store: tuple(transactions) for store, transactions in found.items()}

    def _states(self, transactions: tuple[tuple[int, Key], ...]) -> tuple[tuple[int, Status], ...]:
        """The states of those transactions whose primary keys this store leads."""
        found = []
        for start_ts, key in transactions:
            home = self._replica_at(slot_of(key))
            status = home.status(start_ts, key) if home is not None else None
            if status is None and planted.MISS_MEANS_DONE in self._site.bugs:
                status = Status("rolled-back")
            if status is not None:
                found.append((start_ts, status))
        return tuple(found)

    def _learn(self, states: tuple[tuple[int, Status], ...]) -> None:
        for replica in self._replicas.values():
            if replica.advancer is not None:
                for start_ts, status in states:
                    replica.advancer.learn(start_ts, status)

    def _record_tracked(self, replica: Replica, advancer: Advancer) -> None:
        """Record how much the advancer keeps, beside the locks, if large transactions hold several each."""
        locks = replica.rows.locks.values()
        large = [lock.start_ts for lock in locks if lock.is_large]
        transactions = len(dict.fromkeys(large))
        if len(large) > transactions:
            value = [advancer.entries(), len(locks) - len(large), transactions, len(large)]
            self._site.context.dump(Dump(object="tracked", key=replica.region.id, value=value))

    def _answered(self, current: Round) -> None:
        current.awaited -= 1
        if current.awaited == 0:
            self._finish()

    def _finish(self) -> None:
        """Advance the confirmed regions, and announce their watermarks (invariant 4)."""
        current, self._round = self._round, None
        assert current is not None
        announced: dict[NodeId, list[tuple[int, int]]] = {}
        self._states_to_read.clear()
        if planted.SLOW_SUB_BLOCKS_ALL in self._site.bugs and any(
            replica.feed.is_full() for replica in self._replicas.values()
        ):
            return
        for region, term in current.terms.items():
            replica = self._replicas.get(region)
            advancer = replica.advancer if replica is not None else None
            if replica is None or advancer is None or not advancer.is_ready or replica.log.term != term:
                continue
            if current.followers.get(region, 1) < _QUORUM and planted.NO_LEADER_QUORUM not in self._site.bugs:
                self._site.context.sometimes("a leader without a quorum advanced no watermark")
                continue
            least = current.least[region] if region in current.least else advancer.least()
            resolved = advancer.tick(current.ts0, least)
            replica.uploads.advanced(advancer.whole())
            self._record_tracked(replica, advancer)
            state = ReadState(region, replica.log.applied, resolved, advancer.hints())
            self._states_to_read[region] = state
            self._publish(state)
            for capture, request in replica.feed.listeners():
                announced.setdefault(capture, []).append((request, resolved))
        self._site.context.point("before-watermark")
        for capture, resolved_ts in announced.items():
            self._site.send(capture, ResolvedTs(tuple(resolved_ts)))
