"""The shared state of one data node's parts, and how they reach each other and other nodes.

A data node is one process made of parts: membership, checkpoints, transaction coordinator, storage, publisher. They
crash together. A message to the node itself goes through a queue of its own, in order, inside one event; parts that
need an immediate answer call each other's methods.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from clusters.ndb.membership.view import Member, View
from clusters.ndb.shape import Key
from clusters.parts.syncs import Syncs
from harness.core.machine import Context, Message, NodeId
from harness.core.record import Json

NOBODY = View(0, 0, ())


class Checkpoints(Protocol):
    """The interface of the checkpoint participant for other parts (checkpoint.py)."""

    current: int  # The epoch of commits that begin now,
    previous: int  # and the previous one.

    def begin_commit(self, given: int = 0) -> int | None:
        """The epoch of a transaction that begins to commit now, `given` if it has one; None while commits are blocked,
        until `release`.
        """

    def end_commit(self, epoch: int) -> None:
        """Count one transaction of that epoch as complete on all nodes."""

    def adopt(self, epoch: int) -> None:
        """Count one of a dead coordinator's transactions, which will be committed here in the epoch that it had."""

    def hold(self) -> None:
        """Finish no epoch here until `let_go`: a take-over has yet to determine its adopted transactions."""

    def let_go(self) -> None:
        """End one `hold`."""

    def drained(self) -> None:
        """Note that subscribers have acknowledged everything that this node sent."""


class Publisher(Protocol):
    """The interface of the publisher for other parts (publisher.py)."""

    def row(self, epoch: int, transid: int, key: object, value: object, old_value: object = 0) -> None:
        """Publish a row that a transaction changed here: see `Row`."""

    def is_drained(self) -> bool:
        """True if subscribers have acknowledged everything that this node sent."""


class Backups(Protocol):
    """The interface of backups for other parts (backup.py)."""

    def committed(self, epoch: int, key: Key, values: list[Json]) -> None:
        """Log a change of a row of which this node is the primary."""


class Node(Protocol):
    """The interface of the data node as a whole for its parts (data_node.py)."""

    def install(self, view: View) -> None:
        """Put that view into force."""

    def end(self, why: str) -> None:
        """End the process. Nothing more is handled; the supervisor starts it again."""

    def release(self) -> None:
        """Let commits begin again."""

    def complete(self, epoch: int) -> None:
        """Note that no row of that epoch, or of a lower one, will come any more."""

    def hand_over(self, epoch: int, node: NodeId) -> None:
        """Note that `node` publishes its buckets again from that epoch on."""

    def restore(self, gci: int) -> None:
        """Restore that global checkpoint from the disk, and discard the rest."""


class Agreement(Protocol):
    """The interface of membership.py for other parts."""

    @property
    def is_frozen(self) -> bool: ...
    def may_serve(self) -> bool: ...
    def lose(self, peer: NodeId) -> None: ...
    def wish(self, member: Member) -> None: ...


class Site:
    """One data node as its parts see it. `context` is that of the current event."""

    context: Context
    node_as_whole: Node
    agreement: Agreement
    checkpoints: Checkpoints
    publisher: Publisher
    backups: Backups

    def __init__(self, node: NodeId, bugs: frozenset[str], parameters: dict[str, int]) -> None:
        self.node = node
        self.bugs = bugs
        self.parameters = parameters
        self.life = 0  # When this process started, in nanoseconds: no two lives of a node have the same.
        self.view = NOBODY  # The installed view. A node serves nothing unless it is a member of its view.
        self.others: tuple[NodeId, ...] = ()  # Its other members, oldest first.
        self._since: int | None = None  # The view in which this life joined: each message asks for it.
        self.local: deque[Message] = deque()
        self._syncs = Syncs()

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message: to another node by its link, to this one by its queue."""
        if to == self.node:
            self.local.append(message)
        else:
            self.context.send(to, message)

    def everyone(self, message: Message) -> None:
        """Send a message to all members of the view, this node included."""
        for member in self.view.members:
            self.send(member.node, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
        self._syncs.sync(self.context, then)

    def synced(self, token: int) -> None:
        """Call the function that waits for that sync."""
        self._syncs.synced(token)

    def install(self, view: View) -> None:
        """Put a view into force; an empty one leaves the cluster."""
        self.view = view
        self.others = tuple(node for node in view.nodes() if node != self.node)
        self._since = view.since(self.node)

    def is_for_earlier_life(self, view: int) -> bool:
        """True if a message for a member of view `view` cannot be for this life, which joined in a later one."""
        return self._since is not None and view < self._since

    def may_serve(self) -> bool:
        """True if reads may be answered here: the other nodes cannot have given this node up."""
        return bool(self.view.members) and self.agreement.may_serve()

    def is_frozen(self) -> bool:
        """True while nodes agree on a new view: then no commit begins."""
        return self.agreement.is_frozen

    @property
    def is_master(self) -> bool:
        """True if this node leads."""
        return bool(self.view.members) and self.view.members[0].node == self.node
