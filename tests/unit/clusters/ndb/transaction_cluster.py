"""Four nodes' coordinators and storages, connected by queues that are served in an order drawn from a seed.

Epochs, views and failures are made here, as the parts may expect them: commits are blocked while a view is being agreed
on, a node that is given up may go on for a while (but its lease has run out), and its messages may arrive late.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from clusters.ndb.backup.backup import Backup
from clusters.ndb.membership.view import Member, View
from clusters.ndb.parts import Site
from clusters.ndb.shape import DATA_NODES, GROUPS, MS, first_epoch
from clusters.ndb.transactions.coordinator import Coordinator
from clusters.ndb.transactions.messages import COORDINATOR_MESSAGES, STORAGE_MESSAGES, Done, Refused
from clusters.ndb.transactions.storage import Storage
from harness.core.draw import Stream
from harness.core.machine import Answer, Message, NodeId
from harness.core.record import Json, MicroOp

CLIENT = NodeId("client")
FIRST = View(1, 1, tuple(Member(node, 1) for node in DATA_NODES))


@dataclass(slots=True, kw_only=True)
class Asked:
    """A client's transaction: when it was asked, and when and how it was answered."""

    node: NodeId
    mops: tuple[MicroOp, ...]
    asked: int
    answered: int | None = None
    answer: Done | Refused | None = None


class FakeContext:
    """Collects effects. What is sent goes to the cluster's queues."""

    def __init__(self, cluster: "TransactionCluster", node: NodeId) -> None:
        self.node = node
        self.cluster = cluster
        self.log: list[Message] = []
        self.timers: dict[str, int] = {}
        self.is_off = False

    def now_ns(self) -> int:
        return self.cluster.now_ns

    def send(self, to: NodeId, message: Message) -> None:
        if not self.is_off:
            self.cluster.send(self.node, to, message)

    def set_timer(self, name: str, after_ns: int) -> None:
        self.timers[name] = self.cluster.now_ns + after_ns

    def append(self, log: str, record: Message) -> None:
        assert log == "redo"
        self.log.append(record)

    def probe(self, name: str, value: int) -> None:
        assert value >= 0

    def sometimes(self, goal: str) -> None:
        self.cluster.goals[goal] = self.cluster.goals.get(goal, 0) + 1

    def point(self, name: str) -> None:
        """A crash may be due here: nothing that this node does afterwards takes effect."""
        if self.cluster.crash_at == (self.node, name) and self.cluster.may_fail(self.node):
            self.cluster.crash_at = None
            self.is_off = True

    def unexpected(self, message: Message) -> None:
        raise AssertionError(message)


class FakeCheckpoints:
    """Epochs of one node; blocked by a round, frozen by a change of the view."""

    def __init__(self, epoch: int) -> None:
        self.current = self.previous = epoch
        self.is_blocked = False
        self.is_frozen = False
        self.open: dict[int, int] = {}
        self.holds = 0

    def begin_commit(self, given: int = 0) -> int | None:
        if self.is_blocked or self.is_frozen:
            return None
        epoch = given or self.current
        self.open[epoch] = self.open.get(epoch, 0) + 1
        return epoch

    def drained(self) -> None: ...

    def end_commit(self, epoch: int) -> None:
        self.open[epoch] -= 1
        assert self.open[epoch] >= 0

    def adopt(self, epoch: int) -> None:
        assert self.holds
        self.open[epoch] = self.open.get(epoch, 0) + 1

    def hold(self) -> None:
        self.holds += 1

    def let_go(self) -> None:
        self.holds -= 1
        assert self.holds >= 0

    def is_finished(self, epoch: int) -> bool:
        return not self.holds and not any(count for older, count in self.open.items() if older < epoch)


class FakePublisher:
    def __init__(self) -> None:
        self.rows: list[tuple[int, int, Json, Json]] = []
        self.images: list[tuple[object, object]] = []  # Before-image and value of each row.

    def row(self, epoch: int, transid: int, key: object, value: object, old_value: object = 0) -> None:
        assert isinstance(key, int | str)
        assert isinstance(value, int | str)
        self.rows.append((epoch, transid, key, value))
        self.images.append((old_value, value))

    def is_drained(self) -> bool:
        return True


class FakeAgreement:
    def __init__(self) -> None:
        self.has_lease = True

    is_frozen = False

    def may_serve(self) -> bool:
        return self.has_lease

    def lose(self, peer: NodeId) -> None:
        raise AssertionError(peer)

    def wish(self, member: Member) -> None:
        raise AssertionError(member)


class Life:
    """One life of a node."""

    def __init__(self, cluster: "TransactionCluster", node: NodeId, epoch: int, bugs: frozenset[str]) -> None:
        self.context = FakeContext(cluster, node)
        self.checkpoints = FakeCheckpoints(epoch)
        self.publisher = FakePublisher()
        self.agreement = FakeAgreement()
        site = self.site = Site(node, bugs, {"lock_ms": 250})
        site.context = self.context  # type: ignore[assignment]  # What the parts here use of it.
        site.checkpoints = self.checkpoints
        site.publisher = self.publisher
        site.agreement = self.agreement
        self.storage = Storage(site)
        self.storage.is_copied = True
        site.backups = Backup(site, self.storage.keys, self.storage.read)
        self.coordinator = Coordinator(site)

    def receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, STORAGE_MESSAGES):
            self.storage.handle(sender, message)
        else:
            assert isinstance(message, COORDINATOR_MESSAGES)
            self.coordinator.handle(sender, message)

    def settle(self) -> None:
        """What it has sent to itself."""
        while self.site.local and not self.context.is_off:
            self.receive(self.site.node, self.site.local.popleft())

    def install(self, view: View) -> None:
        before = self.site.view
        failed = tuple(member for member in before.members if view.since(member.node) != member.since)
        self.site.view = view
        self.checkpoints.is_frozen = False
        self.storage.view_changed(view, failed)
        self.coordinator.view_changed(view, failed)
        for member in view.members:
            if not member.is_started and before.since(member.node) is None and view.peer(member.node) == self.site.node:
                self.storage.copy_to(member.node)
        self.coordinator.release()
        self.settle()


@dataclass(slots=True)
class Change:
    """A view that is being agreed on: who has yet to stop commits, then who has yet to install it."""

    view: View
    freezing: list[NodeId]
    installing: list[NodeId] = field(default_factory=list)


class TransactionCluster:
    """The four nodes. `step` does one thing that may happen next."""

    def __init__(self, seed: int, bugs: Iterable[str] = ()) -> None:
        self.draws = Stream(seed, "transactions")
        self.bugs = frozenset(bugs)
        self.now_ns = 0
        self.goals: dict[str, int] = {}
        self.crash_at: tuple[NodeId, str] | None = None
        self.queues: dict[tuple[NodeId, NodeId], deque[Message]] = {}
        self.view = FIRST
        self.epoch = first_epoch(1)
        self.lives = {node: Life(self, node, self.epoch, self.bugs) for node in DATA_NODES}
        self.zombies: dict[NodeId, Life] = {}
        self.asked: list[Asked] = []
        self.change: Change | None = None
        self.round: list[tuple[str, NodeId]] = []
        for life in self.lives.values():
            life.install(FIRST)

    def send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if to == CLIENT:
            assert isinstance(message, Answer)
            asked = self.asked[message.number]
            assert asked.answer is None
            assert isinstance(message.body, Done | Refused)
            asked.answer, asked.answered = message.body, self.now_ns
        else:
            self.queues.setdefault((sender, to), deque()).append(message)

    # What happens.

    def ask(self, node: NodeId, mops: tuple[MicroOp, ...]) -> Asked:
        """A client asks that node, which may be one that was given up."""
        asked = Asked(node=node, mops=mops, asked=self.now_ns)
        self.asked.append(asked)
        life = self.zombies.get(node) or self.lives.get(node)
        if life is not None:
            life.coordinator.transact(CLIENT, len(self.asked) - 1, mops)
            self._settle(life)
        return asked

    def step(self) -> bool:
        """One message, timer, part of an epoch's round or of a change of the view; False if there is nothing."""
        self.now_ns += MS
        busy = [ends for ends, queue in self.queues.items() if queue]
        choices = len(busy) + 3
        choice = self.draws.below(choices)
        if choice < len(busy):
            self._deliver(*busy[choice])
        elif choice == len(busy) and self.change is not None:
            self._go_on_with_change(self.change)
        elif choice == len(busy) + 1:
            self._go_on_with_round()
        else:
            self._fire()
        return bool(busy) or self.change is not None

    def may_fail(self, node: NodeId) -> bool:
        """Is it alive, and is all it has at its peer as well?"""
        peer = self.lives.get(peer_of(node))
        return node in self.lives and peer is not None and peer.storage.is_copied

    def fail(self, node: NodeId, *, is_zombie: bool) -> None:
        """It dies, or is only given up by the others; part of what it has sent is lost if it dies."""
        life = self.lives.pop(node)
        life.agreement.has_lease = False
        if is_zombie:
            self.zombies[node] = life
        else:
            life.context.is_off = True
            for (sender, _), queue in self.queues.items():
                if sender == node:
                    for _ in range(self.draws.below(len(queue) + 1)):
                        queue.pop()
        self._propose(tuple(member for member in self.view.members if member.node != node))

    def crash_soon(self, node: NodeId, point: str) -> None:
        """That node dies when it next passes that failpoint."""
        self.crash_at = (node, point)

    def let_in(self, node: NodeId) -> None:
        """A dead node comes back with nothing; it restarts, so its old connections end."""
        self.zombies.pop(node, None)
        life = self.lives[node] = Life(self, node, self.epoch, self.bugs)
        life.storage.is_copied = False
        life.checkpoints.is_frozen = True
        for ends, queue in self.queues.items():
            if node == ends[1]:
                queue.clear()
        self._propose((*self.view.members, Member(node, self.view.number + 1, is_started=False)))

    def settle(self) -> None:
        """Serve everything until nothing is left, time-outs included."""
        quiet_ns = self.now_ns
        while self.now_ns - quiet_ns < 600 * MS:
            if self.step():
                quiet_ns = self.now_ns

    # Parts of it.

    def _settle(self, life: Life) -> None:
        life.settle()
        node = life.site.node
        if life.context.is_off and self.lives.get(node) is life:
            self.fail(node, is_zombie=False)

    def _deliver(self, sender: NodeId, to: NodeId) -> None:
        message = self.queues[sender, to].popleft()
        life = self.zombies.get(to) or self.lives.get(to)
        if life is not None:
            life.receive(sender, message)
            self._settle(life)

    def _fire(self) -> None:
        for life in (*self.lives.values(), *self.zombies.values()):
            for name, due_ns in tuple(life.context.timers.items()):
                if due_ns <= self.now_ns:
                    del life.context.timers[name]
                    life.coordinator.timer(name)
                    self._settle(life)

    def _propose(self, members: tuple[Member, ...]) -> None:
        """All members stop commits, then each installs the view."""
        number = self.view.number + 1
        nodes = [member.node for member in members]
        if self.change is not None:
            freezing = [node for node in nodes if not self.lives[node].checkpoints.is_frozen]
        else:
            freezing = list(nodes)
        self.view = View(number, 1, members)
        self.change = Change(self.view, freezing)

    def _go_on_with_change(self, change: Change) -> None:
        if change.freezing:
            node = change.freezing.pop(self.draws.below(len(change.freezing)))
            self.lives[node].checkpoints.is_frozen = True
        if change.freezing:
            return
        if not change.installing:  # No commit begins anywhere: a moment to make the epochs equal.
            change.installing = list(change.view.nodes())
            self.round = []
            for life in self.lives.values():
                life.checkpoints.current = self.epoch
                life.checkpoints.is_blocked = False
            return
        node = change.installing.pop(self.draws.below(len(change.installing)))
        if not change.installing:
            self.change = None
        self.lives[node].install(change.view)
        self._settle(self.lives[node])

    def _go_on_with_round(self) -> None:
        """Block all; then unblock each with the next epoch; then wait until all have finished the older ones."""
        if self.change is not None:
            return
        if not self.round:
            if all(life.checkpoints.is_finished(self.epoch) for life in self.lives.values()) and self.draws.chance(
                1, 8
            ):
                blocking, unblocking = (self.draws.shuffled(list(self.lives)) for _ in range(2))
                self.round = [("block", node) for node in blocking] + [("commit", node) for node in unblocking]
            return
        what, node = self.round.pop(0)
        life = self.lives[node]
        if what == "block":
            life.checkpoints.is_blocked = True
            return
        if life.checkpoints.current == self.epoch:
            self.epoch += 1  # The first to be unblocked.
        life.checkpoints.current = self.epoch
        life.checkpoints.is_blocked = False
        life.coordinator.release()
        self._settle(life)


def random_transaction(draws: Stream, number: int, keys: int) -> tuple[MicroOp, ...]:
    """One to five reads and appends; every other transaction reads under locks only."""
    locks: tuple[str | None, ...] = (
        ("shared", "exclusive") if draws.chance(1, 2) else (None, "committed", "short", "shared")
    )
    mops = []
    for place in range(draws.between(1, 5)):
        key = draws.below(keys)
        if draws.chance(1, 2):
            mops.append(MicroOp("append", key, number * 10 + place))
        else:
            mops.append(MicroOp("r", key, None, None, draws.choice(locks)))
    return tuple(mops)


def peer_of(node: NodeId) -> NodeId:
    """The other node of the group."""
    return next(other for group in GROUPS if node in group for other in group if other != node)
