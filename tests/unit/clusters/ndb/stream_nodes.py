"""The nodes of a world of streams: publishers and subscribers with contexts that remember what was asked of them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clusters.ndb.membership.view import View
from clusters.ndb.parts import Site
from clusters.ndb.stream.publisher import Publisher
from harness.core.draw import Stream
from harness.core.machine import Delivery, Dump, Message, NodeId, Randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What happens in one world."""

    seed: int
    bugs: frozenset[str] = frozenset()
    epochs: int = 16
    max_records: int = 1000
    max_buffered_rows: int = 1000
    event_buffer: int = 100_000
    crash: bool = True
    is_rejoining: bool = False
    is_crashing_again: bool = False
    slow: tuple[tuple[NodeId, NodeId], ...] = ()  # Links on which a message takes long.
    nap_permille: int = 0


class Surroundings(Protocol):
    """What a node needs of its world."""

    plan: Plan
    now_ns: int

    def send(self, source: NodeId, to: NodeId, message: Message) -> None: ...


class Effects:
    """A context: what is sent goes to the world's queues, the rest is remembered."""

    def __init__(self, world: Surroundings, node: NodeId) -> None:
        self.node = node
        self._world = world
        self.is_off = False
        self.timers: dict[str, int] = {}
        self.stored: Message | None = None
        self.synced: list[int] = []
        self.delivered: list[Delivery] = []
        self.goals: dict[str, int] = {}
        self.points: list[str] = []
        self.dumps: list[Dump] = []
        self.probes: list[tuple[str, int]] = []
        self._user = Stream(world.plan.seed, f"user/{node}")

    def now_ns(self) -> int:
        return self._world.now_ns

    def local_clock_ns(self) -> int:
        return self._world.now_ns

    def draw(self, name: str) -> Randomness:
        return self._user

    def send(self, to: NodeId, message: Message) -> None:
        if not self.is_off:
            self._world.send(self.node, to, message)

    def queued(self, to: NodeId) -> int:
        return 0

    def set_timer(self, name: str, after_ns: int) -> None:
        self.timers[name] = self._world.now_ns + after_ns

    def cancel_timer(self, name: str) -> None:
        self.timers.pop(name, None)

    def append(self, log: str, record: Message) -> None:
        raise NotImplementedError

    def truncate(self, log: str, index: int) -> None:
        raise NotImplementedError

    def put(self, key: str, value: Message) -> None:
        self.stored = value

    def sync(self, token: int) -> None:
        self.synced.append(token)

    def deliver(self, delivery: Delivery) -> None:
        self.delivered.append(delivery)

    def probe(self, name: str, value: int) -> None:
        self.probes.append((name, value))

    def sometimes(self, goal: str) -> None:
        self.goals[goal] = self.goals.get(goal, 0) + 1

    def point(self, name: str) -> None:
        self.points.append(name)

    def dump(self, state: Dump) -> None:
        self.dumps.append(state)

    def exit(self, after_ns: int) -> None:
        raise NotImplementedError

    def unexpected(self, message: Message) -> None:
        raise AssertionError(message)


class NoDisk:
    """Nothing was ever written."""

    def log(self, name: str) -> Sequence[Message]:
        return ()

    def value(self, key: str) -> Message | None:
        return None


class Epochs:
    """What a publisher asks of checkpoints."""

    def __init__(self, current: int) -> None:
        self.current = current
        self.previous = 0

    def begin_commit(self, given: int = 0) -> int | None:
        return given or self.current

    def end_commit(self, epoch: int) -> None: ...
    def adopt(self, epoch: int) -> None: ...
    def hold(self) -> None: ...
    def let_go(self) -> None: ...
    def drained(self) -> None: ...


class Replica:
    """A data node: its publisher, and what it is told by the master, in order."""

    def __init__(self, world: Surroundings, node: NodeId, current: int) -> None:
        plan = world.plan
        limits = {"max_records": plan.max_records, "max_buffered_rows": plan.max_buffered_rows}
        self.context = Effects(world, node)
        self.epochs = Epochs(current)
        self.site = Site(node, plan.bugs, limits)
        self.site.context = self.context
        self.site.checkpoints = self.epochs
        self.publisher = self.site.publisher = Publisher(self.site)
        self.control: deque[tuple[str, object]] = deque()

    def obey(self) -> None:
        """Take the next word of the master."""
        match self.control.popleft():
            case ("advance", int(epoch)):
                self.epochs.current = epoch
            case ("complete", int(epoch)):
                self.publisher.complete(epoch)
            case ("view", View() as view):
                before, self.site.view = self.site.view, view
                failed = tuple(member for member in before.members if view.since(member.node) != member.since)
                self.publisher.view_changed(view, failed)
            case ("handover", (int(epoch), str(node))):
                self.publisher.hand_over(epoch, NodeId(node))
            case word:
                raise AssertionError(word)
