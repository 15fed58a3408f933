"""The state that all parts of a node share: its name, the run's settings, and the context of the current event."""

from collections.abc import Callable

from clusters.materialize.messages import asked
from clusters.materialize.shape import COORDINATORS, MS, nodes_of
from clusters.parts.procedures import Procedures
from clusters.parts.routing import Request, Routes
from clusters.parts.syncs import Syncs
from harness.core.machine import Context, Message, NodeId, Settings


class Site:
    """One node as its parts see it, and the procedures that run there."""

    context: Context

    def __init__(self, node: NodeId, settings: Settings, context: Context) -> None:
        self.node = node
        self.bugs = settings.bugs
        self.parameters = settings.parameters
        self.options = settings.options
        self.context = context
        self._behind_ns = settings.parameters["skew_ms"] * MS if node == COORDINATORS[-1] else 0
        self._syncs = Syncs()
        self.procedures: Procedures[Request, Message] = Procedures(
            self, Routes(self, nodes_of, asked), first=context.now_ns()
        )

    def now_ns(self) -> int:
        """The time of the run."""
        return self.context.now_ns()

    def clock_ns(self) -> int:
        """The reading of the node's wall clock, which may be wrong. It begins with the run."""
        return max(0, self.context.local_clock_ns() - self._behind_ns)

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message to another node."""
        self.context.send(to, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
        self._syncs.sync(self.context, then)

    def synced(self, token: int) -> None:
        """Carry out the action that waited for that sync."""
        self._syncs.synced(token)
