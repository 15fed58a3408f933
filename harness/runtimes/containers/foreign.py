"""Shared by all nodes that are not machines of ours: they have no failpoints, and take no part in probes."""

from collections.abc import Callable

from harness.core.errors import DeployError
from harness.core.machine import NodeId


class Foreign:
    """The part of a `harness.runtimes.containers.faults.site.Control` that such a node does not have."""

    lost_records = 0
    is_foreign = True
    serves_after_full_disk = True
    is_ready = False  # No control channel answers independently of the server.

    def __init__(self, node: NodeId) -> None:
        self.life = -1
        self._node = node

    async def probe(self, to: NodeId, timeout_s: float) -> str | None:
        """The reason for a failure: such a node sends no probes."""
        return f"{self._node} cannot probe {to}"

    def arm(self, point: str, reached: Callable[[], None]) -> int:
        """Return without effect: it has no failpoints, and a plan that names one is refused earlier."""
        raise DeployError(f"{self._node} has no failpoint {point}")

    def disarm(self, number: int) -> None:
        """Do nothing: nothing is armed."""

    def release(self, number: int) -> None:
        """Do nothing: no node waits at a failpoint."""
