"""What the parts of one data node share, and how they reach each other and other nodes.

A data node is one process made of parts: membership, checkpoints, transaction coordinator, storage, publisher. They
crash together. A message to the node itself goes through a queue of its own, in order, inside one event; parts that
need an answer at once call each other's methods.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from clusters.ndb.view import Member, View
from harness.core.machine import Context, Message, NodeId

NOBODY = View(0, 0, ())


class Checkpoints(Protocol):
    """What other parts ask of the participant in global checkpoints (checkpoint.py)."""

    current: int  # The epoch of what begins to commit now,
    previous: int  # and the one before it.

    def begin_commit(self) -> int | None:
        """The epoch of a transaction that begins to commit now; None while that is blocked (`release` will come)."""

    def end_commit(self, epoch: int) -> None:
        """A transaction of that epoch is complete on all nodes."""

    def adopt(self, epoch: int) -> None:
        """One of a dead coordinator's transactions will be committed here, in the epoch that it had."""

    def hold(self) -> None:
        """No epoch may be finished here until `let_go`: a take-over does not know yet what it adopts."""

    def let_go(self) -> None:
        """The end of one `hold`."""


class Publisher(Protocol):
    """What other parts ask of the publisher (publisher.py)."""

    def row(self, epoch: int, transid: int, key: object, value: object) -> None:
        """A transaction has changed a row here: `value` is the last element that it appended."""


class Node(Protocol):
    """What parts ask of the data node as a whole (data_node.py)."""

    def install(self, view: View) -> None:
        """That view is in force from now on."""

    def end(self, why: str) -> None:
        """End the process. Nothing is handled any more; the supervisor starts it again."""

    def release(self) -> None:
        """Commits may begin again."""

    def complete(self, epoch: int) -> None:
        """No row of that epoch, or of a lower one, will come any more."""

    def hand_over(self, epoch: int, node: NodeId) -> None:
        """From that epoch on, `node` publishes its buckets again."""

    def restore(self, gci: int) -> None:
        """Take up what the disk holds of that global checkpoint, and discard the rest."""


class Agreement(Protocol):
    """What parts ask of membership.py."""

    @property
    def is_frozen(self) -> bool: ...
    def may_serve(self) -> bool: ...
    def lose(self, peer: NodeId) -> None: ...
    def wish(self, member: Member) -> None: ...


class Site:
    """One data node as its parts see it. `context` is that of the event under way."""

    context: Context
    node_as_whole: Node
    agreement: Agreement
    checkpoints: Checkpoints
    publisher: Publisher

    def __init__(self, node: NodeId, bugs: frozenset[str], parameters: dict[str, int]) -> None:
        self.node = node
        self.bugs = bugs
        self.parameters = parameters
        self.view = NOBODY  # What is installed. Nothing is served without a view in which this node is a member.
        self.local: deque[Message] = deque()
        self._when_synced: dict[int, Callable[[], None]] = {}
        self._last_token = 0

    def send(self, to: NodeId, message: Message) -> None:
        """To another node by its link, to this one by its queue."""
        if to == self.node:
            self.local.append(message)
        else:
            self.context.send(to, message)

    def everyone(self, message: Message) -> None:
        """To all members of the view, this node included."""
        for member in self.view.members:
            self.send(member.node, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all that was written before is durable."""
        self._last_token += 1
        self._when_synced[self._last_token] = then
        self.context.sync(self._last_token)

    def synced(self, token: int) -> None:
        """What `sync` asked for has been done."""
        self._when_synced.pop(token)()

    def may_serve(self) -> bool:
        """May reads be answered here? Not by a node that others may have given up."""
        return bool(self.view.members) and self.agreement.may_serve()

    def is_frozen(self) -> bool:
        """Is a new view being agreed on? Then no commit begins."""
        return self.agreement.is_frozen

    @property
    def is_master(self) -> bool:
        """Does this node lead?"""
        return bool(self.view.members) and self.view.members[0].node == self.node
