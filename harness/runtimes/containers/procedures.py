"""A system's own procedures on its servers: promotion, upgrade, members that leave and join."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from harness.core.errors import DeployError
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Membership
from harness.runtimes.containers.links.wiring import CLIENT
from harness.runtimes.containers.service_site import ServiceSite
from harness.runtimes.containers.services import ServiceBlueprint

T = TypeVar("T")
_PAUSE_S: Final = 0.3


class ServiceProcedures:
    """The `Procedures` of a cluster of servers. `later` are the options after an upgrade; None: there is none."""

    def __init__(self, site: ServiceSite, blueprint: ServiceBlueprint, later: dict[str, str] | None) -> None:
        self._site, self._cluster, self._settings = site, blueprint.cluster, blueprint.settings
        self._crew = site.crew
        self._upgraded: dict[NodeId, Settings] = {}
        self._later = None if later is None else msgspec.structs.replace(blueprint.settings, options=later)

    async def promote(self, dead: NodeId) -> NodeId:
        """The node that has taken the place of the dead one. Raises DeployError."""
        try:
            return await self._cluster.fail_over(dead, self._site.doors(CLIENT), self._settings)
        except OSError as error:
            raise DeployError(f"nobody took the place of {dead}: {error}") from error

    async def upgrade(self, node: NodeId) -> None:
        """Give a stopped node the next release, on its data. Raises DeployError."""
        if self._later is None:
            raise DeployError("no upgrade is declared")
        self._crew.serve(node, self._later)
        self._upgraded[node] = self._later
        await self._site.deployment.renew(node, keeps_data=True)

    async def leave(self, node: NodeId, within_s: float) -> None:
        """Remove a node from the members. Raises DeployError."""
        declared = self._declared()

        async def left() -> bool:
            await declared.remove(node, self._others(node), self._settings)
            return True

        await _until(left, within_s, f"{node} could not be removed")

    async def join(self, node: NodeId, within_s: float) -> None:
        """Announce a stopped node to the others, and start it without data. Raises DeployError."""
        declared = self._declared()
        settings = self._upgraded.get(node, self._settings)
        service = await _until(
            lambda: declared.add(node, self._others(node), settings), within_s, f"{node} could not join"
        )
        self._crew.services[node] = service
        await self._site.deployment.renew(node, keeps_data=False)

    async def members(self, beside: NodeId, within_s: float) -> frozenset[NodeId]:
        """The members as the nodes beside that one know them. Raises DeployError."""
        declared = self._declared()
        return await _until(
            lambda: declared.listed(self._others(beside), self._settings), within_s, "the members are not known"
        )

    def _others(self, node: NodeId) -> Doors:
        return {other: door for other, door in self._site.doors(CLIENT).items() if other != node}

    def _declared(self) -> Membership:
        if self._cluster.membership is None:
            raise DeployError("no change of its members is declared")
        return self._cluster.membership


async def _until(ask: Callable[[], Awaitable[T | None]], within_s: float, what: str) -> T:
    """The first answer that is not None, asked again after each OSError. Raises DeployError if none comes in time."""
    reason = "no answer in time"
    try:
        async with asyncio.timeout(within_s):
            while True:
                try:
                    if (answer := await ask()) is not None:
                        return answer
                except TimeoutError:
                    reason = "no answer in time"
                except OSError as error:
                    reason = str(error)
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        raise DeployError(f"{what} within {within_s:.0f} s: {reason}") from None
