"""The state that all parts of a node share: the context of the current event, and callbacks that wait for the disk."""

from collections.abc import Callable

from clusters.ticdc.shape import MS
from harness.core.machine import Context, Message, NodeId

FAR_MS = 1000  # Well-kept clocks, and watermarks that move, differ by less.


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
        self._when_synced: dict[int, Callable[[], None]] = {}
        self._last_token = 0

    def now_ns(self) -> int:
        """The time of the run."""
        return self.context.now_ns()

    def is_far(self, physical_ms: int) -> bool:
        """True if this node's wall clock differs much from that time. It is for people: no decision rests on it."""
        return abs(self.context.local_clock_ns() // MS - physical_ms) > FAR_MS

    def send(self, to: NodeId, message: Message) -> None:
        """Send a message to another node."""
        self.context.send(to, message)

    def sync(self, then: Callable[[], None]) -> None:
        """Call `then` when all earlier writes are durable."""
        self._last_token += 1
        self._when_synced[self._last_token] = then
        self.context.sync(self._last_token)

    def synced(self, token: int) -> None:
        """Call the function that waited for that sync."""
        self._when_synced.pop(token)()
