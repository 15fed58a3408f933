"""Epochs under failures: the master and the participants alone, with links that deliver in order, at any moment.

Whatever round a failure meets: once a commit began in an epoch, on any node, none begins in an older one (NDB-G5).
"""

import random
from collections import deque

import pytest

from clusters.ndb.epochs.checkpoint import Checkpoint
from clusters.ndb.epochs.master import Master
from clusters.ndb.membership.view import Member, View
from clusters.ndb.messages import CHECKPOINT, LastSeen, Sysfile
from clusters.ndb.parts import Site
from clusters.ndb.planted import NO_COMMIT_BLOCK
from clusters.ndb.shape import DATA_NODES, MS, first_epoch
from harness.core.machine import Message, NodeId

D1, D2, D3, D4 = DATA_NODES
SEEDS = 400


class Life:
    """One node: its parts, a context that remembers what is sent, and a disk that syncs when the world says so."""

    def __init__(self, world: "World", node: NodeId) -> None:
        self.node, self.world = node, world
        self.unsynced: list[int] = []
        self.early: list[tuple[NodeId, Message]] = []
        self.entered: list[int] = [first_epoch(1)]  # The epochs in which this node was,
        self.completed: list[int] = []  # and those of which it was notified that they are complete.
        self.is_frozen = False
        self.site = Site(node, world.bugs, {"epoch_ms": 20, "gci_ms": 60})
        self.site.context = self  # type: ignore[assignment]  # What these two parts use of it.
        self.site.node_as_whole = self  # type: ignore[assignment]
        self.site.agreement = self  # type: ignore[assignment]
        self.checkpoint = Checkpoint(self.site, Sysfile(0), LastSeen(1, 0))
        self.site.checkpoints = self.checkpoint
        self.master = Master(self.site)
        self.checkpoint.start_with(first_epoch(1))

    def now_ns(self) -> int:
        return self.world.now_ns

    def send(self, to: NodeId, message: Message) -> None:
        self.world.links[self.node, to].append(message)

    def sync(self, token: int) -> None:
        self.unsynced.append(token)

    def sometimes(self, goal: str) -> None:
        self.world.goals.add(goal)

    def point(self, name: str) -> None: ...
    def put(self, key: str, value: Message) -> None: ...
    def probe(self, name: str, value: int) -> None: ...

    def release(self) -> None:
        if self.checkpoint.current not in self.entered:
            self.entered.append(self.checkpoint.current)

    def complete(self, epoch: int) -> None:
        self.completed.append(epoch)

    def receive(self, sender: NodeId, message: Message) -> None:
        if getattr(message, "number", 0) > self.site.view.number:
            self.early.append((sender, message))  # As by a link on which the view comes first.
            return
        role = self.checkpoint if isinstance(message, CHECKPOINT) else self.master
        role.handle(sender, message)
        self.drain()

    def install(self, view: View) -> None:
        self.is_frozen = False
        self.site.view = view
        self.checkpoint.view_changed(view, ())
        if view.master == self.node:
            self.master.lead()
        else:
            self.master.rest()
        self.drain()
        early, self.early = self.early, []
        for sender, message in early:
            self.receive(sender, message)

    def drain(self) -> None:
        while self.site.local:
            self.receive(self.node, self.site.local.popleft())


class World:
    """Four nodes. `begun` are the epochs of the commits that began, in real time."""

    def __init__(self, *bugs: str) -> None:
        self.bugs = frozenset(bugs)
        self.now_ns = 0
        self.goals: set[str] = set()
        self.links: dict[tuple[NodeId, NodeId], deque[Message]] = {
            (a, b): deque() for a in DATA_NODES for b in DATA_NODES if a != b
        }
        self.lives = {node: Life(self, node) for node in DATA_NODES}
        self.view = View(8, 8, tuple(Member(node, 8) for node in DATA_NODES))
        self.begun: list[int] = []
        for node in DATA_NODES:
            self.lives[node].install(self.view)

    def deliver(self, sender: NodeId, to: NodeId) -> None:
        """The next message of a link, if there is one."""
        link = self.links[sender, to]
        if link:
            self.lives[to].receive(sender, link.popleft())

    def sync(self, node: NodeId) -> None:
        life = self.lives[node]
        while life.unsynced:
            life.site.synced(life.unsynced.pop(0))
        life.drain()

    def tick(self) -> None:
        self.now_ns += 20 * MS
        master = self.lives[self.view.master]
        master.master.tick()
        master.drain()

    def commit(self, node: NodeId) -> int | None:
        """Begin and end a commit at a member; nodes that a newer view lacks have lost their lease."""
        life = self.lives[node]
        if node not in self.view.nodes():
            return None
        epoch = life.checkpoint.begin_commit()
        if epoch is not None:
            self.begun.append(epoch)
            life.checkpoint.end_commit(epoch)
            life.drain()
        return epoch

    def agree(self, *nodes: NodeId) -> View:
        """Agree on a view of these nodes only: they begin no commit until they install it."""
        for node in nodes:
            self.lives[node].is_frozen = True
        members = tuple(member for member in self.view.members if member.node in nodes)
        self.view = View(self.view.number + 8, 8, members)
        return self.view


def settled(world: World) -> None:
    """Everything arrives."""
    while any(world.links.values()) or any(life.unsynced for life in world.lives.values()):
        for node in DATA_NODES:
            world.sync(node)
        for link in world.links:
            world.deliver(*link)


def carried_out(seed: int, *bugs: str) -> World:
    """A run of rounds, deliveries, syncs and commits in any order, in which nodes are lost two or three times."""
    draws, world = random.Random(seed), World(*bugs)
    waiting: list[tuple[NodeId, View]] = []
    for _ in range(600):
        match draws.randrange(12):
            case 0:
                world.tick()
            case 1:
                world.sync(draws.choice(DATA_NODES))
            case 2 | 3:
                world.commit(draws.choice(DATA_NODES))
            case 4 if waiting:
                node, view = waiting.pop(draws.randrange(len(waiting)))
                world.lives[node].install(view)
            case 5 if not waiting and len(world.view.members) > 1 and draws.random() < 0.08:
                left = draws.sample(world.view.nodes(), draws.randrange(1, len(world.view.members)))
                view = world.agree(*left)
                waiting = [(node, view) for node in left]
            case _:
                world.deliver(*draws.choice(list(world.links)))
    for node, view in waiting:
        world.lives[node].install(view)
    settled(world)
    world.tick()
    settled(world)
    return world


def test_no_commit_begins_in_an_older_epoch_than_one_before() -> None:
    goals: set[str] = set()
    for seed in range(SEEDS):
        world = carried_out(seed)
        goals |= world.goals
        assert world.begun == sorted(world.begun), f"seed {seed}"
    assert goals >= {"the view changed in mid-round", "a prepared epoch was run again after a failure"}


def test_every_epoch_is_completed_once_by_every_node_and_in_order() -> None:
    """An epoch whose completion is skipped would keep subscribers waiting for good."""
    for seed in range(SEEDS):
        world = carried_out(seed)
        for node in world.view.nodes():
            life = world.lives[node]
            assert len(life.completed) > 0
            assert life.completed == life.entered[:-1], f"seed {seed}, {node}"


def test_without_the_block_one_does() -> None:
    assert any((world := carried_out(seed, NO_COMMIT_BLOCK)).begun != sorted(world.begun) for seed in range(SEEDS))


@pytest.mark.parametrize("survivors", [(D2, D4), (D2,), (D2, D3, D4)])
def test_an_epoch_in_which_a_lost_node_committed_is_not_followed_by_an_older_one(survivors: tuple[NodeId, ...]) -> None:
    """All had prepared; the commit of the round reached d3 alone, and then d1, or d1 and d3, are given up."""
    world = World()
    settled(world)
    world.tick()
    for node in (D2, D3, D4):
        world.deliver(D1, node)
        world.sync(node)
        world.deliver(node, D1)
    world.deliver(D1, D3)
    newest = world.commit(D3)
    assert newest is not None
    assert world.commit(D4) is None
    world.agree(*survivors)
    for node in survivors:
        world.lives[node].install(world.view)
        for link in world.links:
            if D1 not in link:
                world.deliver(*link)
    assert all((world.commit(node) or newest) >= newest for node in survivors)
    settled(world)
    assert [world.commit(node) for node in survivors] == [newest] * len(survivors)


def test_a_round_that_some_had_not_prepared_is_prepared_by_all() -> None:
    """d2 has prepared, d4 has not, and goes on to commit in the older epoch until it has."""
    world = World()
    settled(world)
    world.tick()
    world.deliver(D1, D2)
    older = world.commit(D4)
    assert older is not None
    assert world.commit(D2) is None
    world.agree(D2, D4)
    for node in (D2, D4):
        world.lives[node].install(world.view)
    assert world.commit(D4) == older
    settled(world)
    assert [world.commit(node) for node in (D2, D4)] == [older + 1] * 2
