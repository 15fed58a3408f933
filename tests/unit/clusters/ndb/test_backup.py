"""A backup is of one moment, although rows change while it scans them."""

from collections import deque

import pytest

from clusters.ndb.backup.backup import TIMER, Backup
from clusters.ndb.backup.messages import BackupFile, BackupMessage
from clusters.ndb.binlog.planted import BACKUP_STOP_GCI_EARLY
from clusters.ndb.membership.view import Member, View
from clusters.ndb.parts import Site
from clusters.ndb.shape import Key, first_epoch
from clusters.ndb.transactions.messages import Refused
from harness.core.draw import Stream
from harness.core.machine import Answer, Message, NodeId
from harness.core.record import Json

D1, D2, CLIENT = NodeId("d1"), NodeId("d2"), NodeId("c1")
VIEW = View(1, 1, (Member(D1, 1), Member(D2, 1)))


class Clocks:
    """What a backup uses of checkpoints."""

    def __init__(self) -> None:
        self.current = first_epoch(3)


class Rows:
    """One node with its rows; it is the context of its backup, too."""

    def __init__(self, node: NodeId, world: "World", rows: dict[Key, list[int]], *bugs: str) -> None:
        self.node, self.world = node, world
        self.rows: dict[Key, list[tuple[int, int]]] = {
            key: [(value, first_epoch(2)) for value in values] for key, values in rows.items()
        }
        self.timer = False
        site = self.site = Site(node, frozenset(bugs), {})
        site.context = self  # type: ignore[assignment]  # What a backup uses of it.
        site.agreement = self  # type: ignore[assignment]
        self.clocks = Clocks()
        site.checkpoints = self.clocks  # type: ignore[assignment]
        site.install(VIEW)
        self.backup = Backup(site, lambda: list(self.rows), self._read)

    def _read(self, key: Key) -> tuple[list[Json], int]:
        return [value for value, _ in self.rows[key]], self.rows[key][-1][1]

    def commit(self, key: Key, value: int, epoch: int) -> None:
        self.rows.setdefault(key, []).append((value, epoch))
        self.backup.committed(epoch, key, [value])

    def may_serve(self) -> bool:
        return True

    def send(self, to: NodeId, message: Message) -> None:
        self.world.queue.append((self.node, to, message))

    def set_timer(self, name: str, after_ns: int) -> None:
        assert (name, after_ns > 0) == (TIMER, True)
        self.timer = True

    def draw(self, name: str) -> Stream:
        return Stream(1, name)

    def now_ns(self) -> int:
        return 7

    def sometimes(self, goal: str) -> None: ...

    def point(self, name: str) -> None: ...


class World:
    """Two primaries: d1, which leads the backup, has rows 0 and 4, and d2 row 1."""

    def __init__(self, *bugs: str) -> None:
        self.queue: deque[tuple[NodeId, NodeId, Message]] = deque()
        self.nodes = {D1: Rows(D1, self, {0: [10], 4: [20]}, *bugs), D2: Rows(D2, self, {1: [30]}, *bugs)}
        self.answers: list[Message] = []

    def settle(self) -> None:
        """Deliver all messages."""
        while self.queue or any(node.site.local for node in self.nodes.values()):
            for node in self.nodes.values():
                while node.site.local:
                    node.backup.handle(node.node, node.site.local.popleft())
            if self.queue:
                sender, to, message = self.queue.popleft()
                if to == CLIENT:
                    assert isinstance(message, Answer)
                    self.answers.append(message.body)
                else:
                    assert isinstance(message, BackupMessage)
                    self.nodes[to].backup.handle(sender, message)

    def scan(self, *nodes: NodeId) -> None:
        """These nodes scan one row each."""
        for node in nodes:
            assert self.nodes[node].timer
            self.nodes[node].timer = False
            self.nodes[node].backup.timer()
        self.settle()

    def complete(self, epoch: int) -> None:
        """That epoch ends everywhere."""
        for node in self.nodes.values():
            node.backup.complete(epoch)
        self.settle()

    def begin(self) -> None:
        self.nodes[D1].backup.begin(CLIENT, 5)
        self.settle()

    def file(self) -> tuple[int, dict[Key, list[Json]]]:
        [answer] = self.answers
        assert isinstance(answer, BackupFile)
        return answer.gci, dict(answer.rows)


def test_changes_during_the_scan_are_in_it_up_to_the_stop_checkpoint() -> None:
    world = World()
    world.begin()
    world.scan(D1, D2)
    world.nodes[D1].commit(0, 11, first_epoch(3) + 1)  # Its row is scanned already; the next one is yet to come.
    world.nodes[D1].commit(4, 21, first_epoch(3) + 1)
    world.nodes[D2].commit(5, 40, first_epoch(3) + 1)  # A new row.
    world.scan(D1)
    world.nodes[D2].commit(1, 31, first_epoch(4))  # Later than the stop checkpoint.
    world.complete(first_epoch(3) + 1)
    assert not world.answers  # Changes of checkpoint 3 may still come.
    world.complete(first_epoch(4))
    assert world.file() == (3, {0: [10, 11], 4: [20, 21], 1: [30], 5: [40]})


@pytest.mark.parametrize("bugs", [(), (BACKUP_STOP_GCI_EARLY,)])
def test_the_stop_checkpoint_is_no_earlier_than_a_row_that_was_found(bugs: tuple[str, ...]) -> None:
    """The leader has not heard of checkpoint 4 yet when a row of it is scanned elsewhere."""
    world = World(*bugs)
    world.begin()
    world.nodes[D1].timer = False
    for _ in range(2):
        world.nodes[D1].backup.timer()
    world.settle()
    world.nodes[D2].commit(1, 31, first_epoch(4))
    world.scan(D2)
    for gci in (4, 5):
        world.complete(first_epoch(gci))
    gci, rows = world.file()
    assert rows == {0: [10], 4: [20], 1: [30, 31]}
    assert gci == (3 if bugs else 4)


def test_a_new_view_ends_a_backup() -> None:
    world = World()
    world.begin()
    for node in world.nodes.values():
        node.backup.view_changed()
    world.settle()
    assert world.answers == [Refused("a node failed")]
    world.nodes[D1].backup.timer()
    world.complete(first_epoch(4))
    assert len(world.answers) == 1


def test_a_second_backup_replaces_the_first() -> None:
    world = World()
    world.begin()
    world.nodes[D1].backup.begin(CLIENT, 6)
    world.settle()
    world.scan(D1, D2)
    world.scan(D1)
    world.complete(first_epoch(4))
    assert [type(answer) for answer in world.answers] == [Refused, BackupFile]
