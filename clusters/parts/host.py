"""What a part needs of the node that it is a part of."""

from collections.abc import Callable
from typing import Protocol

from harness.core.machine import Context, Message, NodeId


class Host(Protocol):
    """A node as its parts see it. `context` is that of the current event."""

    context: Context

    @property
    def node(self) -> NodeId: ...
    def now_ns(self) -> int:
        """The time of the run."""

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message to another node."""

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
