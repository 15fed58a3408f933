"""The state that all parts of a node share: the context of the current event, and callbacks that wait for the disk."""

from collections.abc import Callable
from typing import Any, Protocol

from clusters.parts.syncs import Syncs
from harness.core.machine import Closed, Context, Event, Message, NodeId, Received, Synced, TimerFired


class Role(Protocol):
    """A node's own reactions to events: `receivers` has those to messages, by type."""

    receivers: dict[type, Callable[[NodeId, Any], None]]

    def expired(self, name: str) -> None:
        """React to the timer of that name."""

    def closed(self, peer: NodeId) -> None:
        """React to the end of a connection."""


class Site:
    """One node as its parts see it. `context` is that of the current event.

    `is_new`: it runs the new version. `has_new_rule`: so do all stores, and large transactions hold watermarks back by
    their bounds only (oracle/upgrade.py).
    """

    context: Context
    is_new = True
    has_new_rule = True

    def __init__(self, node: NodeId, bugs: frozenset[str], parameters: dict[str, int]) -> None:
        self.node = node
        self.bugs = bugs
        self.parameters = parameters
        self._syncs = Syncs()

    def handle(self, event: Event, context: Context, role: Role) -> None:
        """Hand an event to the part of the node that it concerns."""
        self.context = context
        if isinstance(event, Received):
            message = event.message
            receive = role.receivers.get(type(message))
            if receive is not None:
                receive(event.sender, message)
            else:
                context.unexpected(message)
        elif isinstance(event, Synced):
            self._syncs.synced(event.token)
        elif isinstance(event, TimerFired):
            role.expired(event.name)
        elif isinstance(event, Closed):
            role.closed(event.peer)

    def synced(self, token: int) -> None:
        """Call the function that waited for that sync."""
        self._syncs.synced(token)

    def now_ns(self) -> int:
        """The time of the run."""
        return self.context.now_ns()

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message to another node."""
        self.context.send(to, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
        self._syncs.sync(self.context, then)
