"""A failover in force: the leading node is killed and stays dead, and the cluster's own procedure promotes another."""

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import Procedures, Site
from nemesis.plan import Effect


class Failover:
    """One failover step, which nothing undoes."""

    def __init__(self, node: NodeId, *, site: Site, procedures: Procedures) -> None:
        self._node, self._site, self._procedures = node, site, procedures
        self._successor: NodeId | None = None

    async def begin(self) -> None:
        await self._site.kill(self._node)
        self._successor = await self._procedures.promote(self._node)

    async def end(self) -> None:
        """Do nothing: the dead node stays down."""

    async def effect(self) -> Effect:
        if self._successor is None:
            return Effect(0, f"nobody took the place of {self._node}")
        return Effect(1, f"{self._node} was killed for good, and {self._successor} promoted")
