"""A few replicas of a log in a small world: links that lose and delay, disks that lose what was not synced, crashes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import cast

from clusters.parts.host import Host
from clusters.parts.log_messages import LOG_MESSAGES, Entry, LogMessage, Vote
from clusters.parts.quorum_log import Group, QuorumLog
from harness.core.machine import Context, Message, NodeId

MS = 1_000_000
MEMBERS = (NodeId("a"), NodeId("b"), NodeId("c"))
GROUP = Group(number=7, members=MEMBERS, election_ns=200 * MS, noun="shard")


@dataclass(slots=True)
class Disk:
    """The durable entries and vote of a node, and its writes since, in order."""

    entries: list[Entry[str]] = field(default_factory=list)
    vote: Vote = field(default_factory=Vote)
    pending: list[Callable[[], None]] = field(default_factory=list)

    def keep(self, number: int) -> None:
        """Make the first writes durable."""
        for write in self.pending[:number]:
            write()
        del self.pending[:number]


class Replica:
    """One life of a node: the host of its replica, and the context of every event."""

    def __init__(self, world: "World", node: NodeId, *, is_original: bool) -> None:
        self.world, self.node, self.disk = world, node, world.disks[node]
        self.applied: list[str | None] = []
        self.context = cast("Context", self)
        self.log: QuorumLog[str] = QuorumLog(
            cast("Host", self),
            GROUP,
            self.disk.vote,
            list(self.disk.entries),
            is_original=is_original,
            is_eager=False,
            applied=self._applied,
            deposed=lambda: None,
        )

    def _applied(self, index: int, entry: Entry[str]) -> None:
        assert index == len(self.applied) + 1
        self.applied.append(entry.command)
        decided = self.world.decided
        decided += [entry] * (index > len(decided))
        assert decided[index - 1] == entry, "an entry that was decided is another now"

    def now_ns(self) -> int:
        return self.world.now_ns

    def send(self, to: NodeId, message: Message) -> None:
        self.world.send(self.node, to, message)

    def sync(self, then: Callable[[], None]) -> None:
        number, disk = len(self.disk.pending), self.disk

        def synced() -> None:
            if self.world.replicas.get(self.node) is self:  # Else it crashed meanwhile.
                disk.keep(min(number, len(disk.pending)))
                then()

        self.world.later(self.world.draws.randint(0, 3) * MS, synced)

    # The context.

    def append(self, log: str, record: Message) -> None:
        assert log == "log-7"
        assert isinstance(record, Entry)
        self.disk.pending.append(lambda: self.disk.entries.append(record))

    def truncate(self, log: str, index: int) -> None:
        self.disk.pending.append(lambda: self.disk.entries.__delitem__(slice(index, None)))

    def put(self, key: str, value: Message) -> None:
        assert (key, isinstance(value, Vote)) == ("vote-7", True)
        self.disk.pending.append(lambda: setattr(self.disk, "vote", value))

    def draw(self, name: str) -> "Replica":
        return self

    def below(self, limit: int) -> int:
        return self.world.draws.randrange(limit)

    def sometimes(self, goal: str) -> None:
        self.world.goals.add(goal)


class World:
    """Replicas, and the messages and syncs on their way."""

    def __init__(self, seed: int) -> None:
        self.draws, self.now_ns, self.decided, self.goals = Random(seed), 0, list[Entry[str]](), set[str]()
        self.disks = {node: Disk() for node in MEMBERS}
        self.cut: frozenset[NodeId] = frozenset()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._ticket = count()
        self.leaders: dict[int, NodeId] = {}
        self.replicas = {node: Replica(self, node, is_original=True) for node in MEMBERS}
        for node in MEMBERS:
            self._tick(node)

    def later(self, after_ns: int, what: Callable[[], None]) -> None:
        heappush(self._queue, (self.now_ns + after_ns, next(self._ticket), what))

    def send(self, source: NodeId, target: NodeId, message: Message) -> None:
        """Send a message, unless a cut link loses it."""
        if (source in self.cut) == (target in self.cut):
            self.later(self.draws.randint(1, 20) * MS, lambda: self._arrive(source, target, message))

    def _arrive(self, source: NodeId, target: NodeId, message: Message) -> None:
        replica = self.replicas.get(target)
        assert isinstance(message, LOG_MESSAGES)
        if replica is not None:
            replica.log.handle(source, cast("LogMessage[str]", message))

    def _tick(self, node: NodeId) -> None:
        if node in self.replicas:
            self.replicas[node].log.tick()
        self.later(25 * MS, lambda: self._tick(node))

    def crash(self, node: NodeId) -> None:
        """End a life: of the writes that were not synced only some of the first are kept."""
        del self.replicas[node]
        self.disks[node].keep(self.draws.randint(0, len(self.disks[node].pending)))
        self.disks[node].pending.clear()

    def start(self, node: NodeId) -> None:
        self.replicas[node] = Replica(self, node, is_original=True)

    def run(self, duration_ns: int) -> None:
        """Let time pass, and hold the invariants after each event."""
        end_ns = self.now_ns + duration_ns
        while self._queue[0][0] <= end_ns:
            self.now_ns, _, what = heappop(self._queue)
            what()
            self._hold()
        self.now_ns = end_ns

    def _hold(self) -> None:
        for node, replica in self.replicas.items():
            if replica.log.is_leader:
                assert self.leaders.setdefault(replica.log.term, node) == node, "two leaders in one term"
        leased = [node for node, replica in self.replicas.items() if replica.log.has_lease()]
        assert len(leased) <= 1, f"{leased} have a lease at once"

    def leader(self) -> Replica | None:
        """A replica that leads and is caught up, if there is one."""
        return next((each for each in self.replicas.values() if each.log.has_lease()), None)
