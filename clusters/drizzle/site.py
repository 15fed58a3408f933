"""The state that all parts of a server share: its name, the run's settings, and the context of the current event."""

from collections.abc import Callable

from clusters.parts.syncs import Syncs
from harness.core.machine import Context, Message, NodeId, Settings


class Site:
    """One server as its parts see it."""

    context: Context

    def __init__(self, node: NodeId, settings: Settings, context: Context) -> None:
        self.node = node
        self.bugs = settings.bugs
        self.parameters = settings.parameters
        self.context = context
        self._syncs = Syncs()

    def now_ns(self) -> int:
        """The time of the run."""
        return self.context.now_ns()

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message to another node."""
        self.context.send(to, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
        self._syncs.sync(self.context, then)

    def synced(self, token: int) -> None:
        """Carry out the action that waited for that sync."""
        self._syncs.synced(token)
