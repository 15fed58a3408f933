"""Publishers of four data nodes and two subscribers, connected by queues that are served in an order drawn from a seed.

Transactions, epochs, views and hand-overs are made here, as publishers may expect them: a row passes along its chain of
replicas, an epoch is complete when no row of it is under way, and no commit begins while a view is being agreed on.
"""

from collections import deque
from dataclasses import dataclass, field

from clusters.ndb.membership.view import Member, View
from clusters.ndb.shape import DATA_NODES, GROUPS, MS, SUBSCRIBERS, first_epoch, fragment_of, gci_of
from clusters.ndb.stream.messages import Row
from clusters.ndb.stream.subscriber import Subscriber
from harness.core.draw import Stream
from harness.core.machine import (
    Closed,
    Delivery,
    Dump,
    Message,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from tests.unit.clusters.ndb.stream_nodes import Effects, NoDisk, Plan, Replica

KEYS = 48
FIRST_EPOCH = first_epoch(5)
TO_CLOSE = None  # In a queue: the connection ends here.


@dataclass(slots=True)
class Commit:
    """One row of a transaction that is being committed: `to_go` are the replicas that still have to install it."""

    epoch: int
    transid: int
    coordinator: NodeId
    key: int
    value: int
    to_go: list[NodeId]
    installed: list[NodeId] = field(default_factory=list)


class StreamWorld:
    """All nodes, and the master's part. `run` goes through the plan and comes to rest."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.draw = Stream(plan.seed, "world")
        self.now_ns = 0
        self.epoch = FIRST_EPOCH
        self.begun: list[int] = [FIRST_EPOCH]
        self.rows: dict[int, list[tuple[int, int, int]]] = {}  # By epoch: transid, key, value, as committed.
        self.commits: list[Commit] = []
        self.gone: list[Effects] = []  # Of crashed nodes.
        self.sent: dict[tuple[int, object], int] = {}  # How often a transaction's row was sent to a subscriber.
        self.undone: list[tuple[int, object]] = []  # Rows that only a dead node had installed.
        self.has_handed_over = False
        self._queues: dict[tuple[NodeId, NodeId], deque[Message | None]] = {}
        self._last_transid = 0
        self._is_in_round = False
        self._handover: tuple[int, NodeId] | None = None
        self._old_commits: list[Commit] = []
        self._crashes = [plan.epochs // 3] if plan.crash else []
        self._victim = DATA_NODES[self.draw.below(2)]
        self.view = View(1, 1, tuple(Member(node, 1) for node in self.draw.shuffled(DATA_NODES)))
        self.replicas = {node: Replica(self, node, self.epoch) for node in DATA_NODES}
        for replica in self.replicas.values():
            replica.control.append(("view", self.view))
            replica.obey()
        settings = {"event_buffer": plan.event_buffer, "nap_permille": plan.nap_permille}
        self.subscribers = {node: (Subscriber(), Effects(self, node)) for node in SUBSCRIBERS}
        for machine, effects in self.subscribers.values():
            machine.recover(NoDisk(), Settings(bugs=plan.bugs, parameters=settings), effects)

    def run(self) -> None:
        """Until all planned epochs are complete and everything has arrived."""
        for _ in range(30_000):
            self._step()
            if len(self.begun) > self.plan.epochs:
                break
        self._settle()

    def send(self, source: NodeId, to: NodeId, message: Message) -> None:
        """Nothing reaches a node that is down."""
        if isinstance(message, Row):
            row = message.transid, message.key
            self.sent[row] = self.sent.get(row, 0) + 1
        if to in SUBSCRIBERS or to in self.replicas:
            self._queues.setdefault((source, to), deque()).append(message)

    def delivered(self, subscriber: NodeId) -> list[Delivery]:
        return self.subscribers[subscriber][1].delivered

    def goals(self) -> set[str]:
        """All that was reached anywhere."""
        living = [replica.context for replica in self.replicas.values()]
        users = [effects for _, effects in self.subscribers.values()]
        return {goal for effects in (*living, *users, *self.gone) for goal in effects.goals}

    def dumps(self, kind: str) -> list[Dump]:
        """All states of that kind."""
        living = [replica.context for replica in self.replicas.values()]
        return [dump for effects in (*living, *self.gone) for dump in effects.dumps if dump.object == kind]

    # One step.

    def _step(self) -> None:
        self.now_ns += MS // 4
        match self.draw.below(12):
            case 0:
                self._begin_commit()
            case 1 | 2:
                self._install_row()
            case 3 | 4:
                self._obey()
            case 5:
                self._lead()
            case _:
                self._deliver()
        self._fire()

    def _settle(self) -> None:
        """Go on without transactions until both users have reached the end, or will not."""
        self._come_to_rest()
        for _ in range(30):
            self._next_round()
            self._come_to_rest()
            if all(self._has_reached_end(subscriber) for subscriber in SUBSCRIBERS):
                break

    def _come_to_rest(self) -> None:
        """End the round, hand out all messages, and let every timer fire."""
        while self._queues_waiting() or self.commits or self._is_in_round or self._words_waiting():
            self._deliver()
            self._obey()
            self._install_row()
            self._lead(is_last=True)
        for _ in range(3):
            self.now_ns += 100 * MS
            self._fire()
            while self._queues_waiting():
                self._deliver()

    def _has_reached_end(self, subscriber: NodeId) -> bool:
        shown = self.delivered(subscriber)
        return bool(shown) and shown[-1].kind == "watermark" and shown[-1].position == self.begun[-2]

    def _queues_waiting(self) -> list[tuple[NodeId, NodeId]]:
        return [pair for pair, queue in self._queues.items() if queue]

    def _words_waiting(self) -> bool:
        return any(replica.control for replica in self.replicas.values())

    def _is_frozen(self) -> bool:
        return any(replica.site.view.number != self.view.number for replica in self.replicas.values())

    def _begin_commit(self) -> None:
        """A transaction of one or two keys begins to commit, unless commits are blocked."""
        coordinator = self.draw.choice(list(self.replicas))
        epoch = self.replicas[coordinator].epochs.current
        if self._is_frozen() or epoch != self.epoch or len(self.begun) > self.plan.epochs:
            return
        locked = [commit.key for commit in self.commits]
        keys = [self.draw.below(KEYS) for _ in range(self.draw.between(1, 2))]
        self._last_transid += 1
        for key in dict.fromkeys(keys):
            if key not in locked:
                chain = list(reversed(self.view.replicas(fragment_of(key))))
                transid = self._last_transid
                self.commits.append(Commit(epoch, transid, coordinator, key, 1000 * transid + key, chain))

    def _install_row(self) -> None:
        """One replica, the next in the chain, installs one row."""
        if not self.commits:
            return
        commit = self.draw.choice(self.commits)
        if commit.to_go:
            node = commit.to_go.pop(0)
            commit.installed.append(node)
            self.replicas[node].publisher.row(commit.epoch, commit.transid, commit.key, commit.value)
        if not commit.to_go:
            self.commits.remove(commit)
            self.rows.setdefault(commit.epoch, []).append((commit.transid, commit.key, commit.value))

    def _obey(self) -> None:
        result = [replica for replica in self.replicas.values() if replica.control]
        if result:
            self.draw.choice(result).obey()

    def _deliver(self) -> None:
        """One message of one link; slow links are seldom chosen."""
        waiting = self._queues_waiting()
        if not waiting:
            return
        source, to = pair = self.draw.choice(waiting)
        if pair in self.plan.slow and not self.draw.chance(1, 24):
            return
        message = self._queues[pair].popleft()
        if to in SUBSCRIBERS:
            machine, effects = self.subscribers[to]
            machine.handle(Closed(source) if message is None else Received(source, message), effects)
        elif message is not None:
            self.replicas[to].publisher.handle(source, message)

    def _fire(self) -> None:
        """What is due."""
        for machine, effects in self.subscribers.values():
            while effects.synced:
                machine.handle(Synced(effects.synced.pop(0)), effects)
            for name in [name for name, due_ns in effects.timers.items() if due_ns <= self.now_ns]:
                del effects.timers[name]
                machine.handle(TimerFired(name), effects)
        for replica in self.replicas.values():
            for name in [name for name, due_ns in replica.context.timers.items() if due_ns <= self.now_ns]:
                del replica.context.timers[name]
                replica.publisher.timer(name)

    # The master.

    def _lead(self, *, is_last: bool = False) -> None:
        """Complete an epoch, begin the next, or change who is in."""
        if self._is_in_round:
            is_advanced = all(replica.epochs.current == self.epoch for replica in self.replicas.values())
            if is_advanced and not any(commit.epoch < self.epoch for commit in self.commits):
                self._is_in_round = False
                self._tell("complete", self.begun[-2])
        elif self._crashes and len(self.begun) > self._crashes[0]:
            self._crashes.pop(0)
            self._crash()
        elif is_last or self._is_frozen() or self._has_changed_membership():
            return
        elif len(self.begun) <= self.plan.epochs and not self._is_handing_over() and self.draw.chance(1, 2):
            self._next_round()
            if self._crashes and len(self.begun) > self._crashes[0] and self.draw.chance(1, 2):
                self._crashes[0] = 0  # In mid-round: some have advanced, some have not.
                for _ in range(self.draw.below(4)):
                    self._obey()
                    self._begin_commit()
                    self._install_row()
                self._crashes.pop(0)
                self._crash()

    def _next_round(self) -> None:
        next_gci = first_epoch(gci_of(self.epoch) + 1)
        self.epoch = next_gci if self.draw.chance(1, 4) else self.epoch + 1
        self.begun.append(self.epoch)
        self._is_in_round = True
        self._tell("advance", self.epoch)

    def _tell(self, word: str, what: object) -> None:
        for replica in self.replicas.values():
            replica.control.append((word, what))

    def _is_handing_over(self) -> bool:
        """Has somebody not heard yet of a hand-over? Then its epoch must not begin."""
        return any(word == "handover" for replica in self.replicas.values() for word, _ in replica.control)

    def _crash(self) -> None:
        """The victim is gone: a prefix of what it sent arrives. What nobody alive has of its transactions is undone."""
        victim = self._victim
        self.gone.append(self.replicas.pop(victim).context)
        self.gone[-1].is_off = True
        for (source, to), queue in self._queues.items():
            if to == victim:
                queue.clear()
            elif source == victim:
                for _ in range(self.draw.below(len(queue) + 1) if self.draw.chance(2, 3) else 0):
                    queue.pop()
                queue.append(TO_CLOSE)
        own = [commit for commit in self.commits if commit.coordinator == victim]
        for commit in self.commits:
            if victim in commit.to_go:
                commit.to_go.remove(victim)
        for commit in own:
            if all(each.installed in ([], [victim]) for each in own if each.transid == commit.transid):
                is_begun = any(transid == commit.transid for rows in self.rows.values() for transid, _, _ in rows)
                if not is_begun:
                    self.commits.remove(commit)
                    self.undone.append((commit.transid, commit.key))
        members = tuple(member for member in self.view.members if member.node != victim)
        self._install(members)

    def _install(self, members: tuple[Member, ...]) -> None:
        """A new view; what the master said before may be heard before it or behind it."""
        self.view = View(self.view.number + 1, 1, members)
        for replica in self.replicas.values():
            place = self.draw.below(len(replica.control) + 1)
            replica.control.insert(place, ("view", self.view))

    def _has_changed_membership(self) -> bool:
        """One step of bringing the victim back, if that is planned and the time has come."""
        if not self.plan.is_rejoining or self._crashes or len(self.begun) < self.plan.epochs // 2:
            return False
        victim = self._victim
        survivor = next(node for node in GROUPS[0] if node != victim)
        member = next((member for member in self.view.members if member.node == victim), None)
        if self.view.number == 2 and member is None:
            if any(self._queues.get((victim, to)) for to in SUBSCRIBERS):
                return False  # The new life's connections begin when the old ones have ended.
            self._old_commits = list(self.commits)
            self.replicas[victim] = Replica(self, victim, self.epoch)
            self._install((*self.view.members, Member(victim, 3, is_started=False)))
            return True
        if member is None or member.is_started:
            return False
        joiner = self.replicas[victim].publisher
        if self._handover is None:
            if any(commit in self.commits for commit in self._old_commits) or not joiner.is_connected():
                return False
            self._handover = (self.epoch + 1, victim)
            for node in GROUPS[0]:
                self.replicas[node].control.append(("handover", self._handover))
            return True
        if self._is_handing_over() or not self.replicas[survivor].publisher.drained_below(self._handover[0]):
            return False
        self.has_handed_over = True
        self._install(tuple(Member(member.node, member.since) for member in self.view.members))
        if self.plan.is_crashing_again:
            self._victim = survivor
            self._crashes = [len(self.begun) + 1]
        return True
