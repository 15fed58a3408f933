"""A failover in force: the leading node is killed and stays dead, and the cluster's own procedure promotes another."""

from collections.abc import Awaitable, Callable

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import Site
from nemesis.plan import Effect

Promote = Callable[[NodeId], Awaitable[NodeId]]


class Failover:
    """One failover step, which nothing undoes."""

    def __init__(self, node: NodeId, *, site: Site, promote: Promote) -> None:
        self._node, self._site, self._promote = node, site, promote
        self._successor: NodeId | None = None

    async def begin(self) -> None:
        await self._site.kill(self._node)
        try:
            self._successor = await self._promote(self._node)
        except OSError as error:
            raise DeployError(f"nobody took the place of {self._node}: {error}") from error

    async def end(self) -> None:
        """Do nothing: the dead node stays down."""

    async def effect(self) -> Effect:
        if self._successor is None:
            return Effect(0, f"nobody took the place of {self._node}")
        return Effect(1, f"{self._node} was killed for good, and {self._successor} promoted")
