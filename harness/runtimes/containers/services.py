"""Nodes that are third-party servers: each a container of the image that its cluster names.

They have no control channel. A server is ready when it answers a client's first bytes; its clock is read by a command
in its container. The two directions of a link share a connection, so Toxiproxy makes partitions; third-party
containers need no packet rules. `confinement` defines the limits of such a container.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import docker

from harness.core.errors import DeployError
from harness.core.machine import NodeId, Settings
from harness.core.seams import Address, Doors, Service, ServiceCluster
from harness.core.system import SUBSCRIBER
from harness.runtimes.containers.compose import Found, find_project
from harness.runtimes.containers.engine.confinement import capabilities_of, confined
from harness.runtimes.containers.faults.struck_clocks import FAKED_CLOCK
from harness.runtimes.containers.foreign import Foreign
from harness.runtimes.containers.images.images import image_of
from harness.runtimes.containers.links.wiring import CLIENT, FIRST_PROXY_PORT, LOOPBACK, PROXY_HOST, Wire
from harness.runtimes.host.control import Clocks, Counters, FromHarness

_RETRY_S: Final = 0.05
_HELLO_WITHIN_S: Final = 2.0
_PIDS: Final = 2048
_DISK_MB: Final = 256
UPGRADE: Final = "upgrade"
POWER: Final = "power"  # In a blueprint's faults: a crash that loses unsynced writes.
_NOTHING: Final = Counters(0, 0, 0, 0, {}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBlueprint:
    """The deployment to make. `faults` are the kinds to come, some of which need preparation."""

    run_id: str
    cluster: ServiceCluster
    settings: Settings
    faults: frozenset[str] = frozenset()
    attach: str | None = None  # The project of docker compose that runs the servers.


class Services:
    """The `Crew` of a cluster of servers."""

    shuts_doors = True
    ready_s = 120.0

    def __init__(self, blueprint: ServiceBlueprint) -> None:
        cluster, self._faults, self._attach = blueprint.cluster, blueprint.faults, blueprint.attach
        self.run_id = blueprint.run_id
        self.nodes = tuple(node.id for node in cluster.nodes if node.role != SUBSCRIBER)
        pairs = dialled_pairs(cluster)
        doors = {pair: Address(PROXY_HOST, FIRST_PROXY_PORT + number) for number, pair in enumerate(pairs)}
        self._cluster, self._doors = cluster, doors
        self.services: dict[NodeId, Service] = {}
        for node in self.nodes:
            self.serve(node, blueprint.settings)
        proxied = [pair for pair in pairs if self._attach is None or pair[0] not in self.nodes]
        self.wires = tuple(Wire(*pair, doors[pair].port, self.services[pair[1]].port) for pair in proxied)
        self.is_direct = self._attach is None and "direct" in cluster.links.values()
        self.disk_mb = _DISK_MB if POWER in blueprint.faults else None
        is_small = "disk-full" in blueprint.faults and self.disk_mb is None
        self.small_disk = f"size={_DISK_MB}m,mode=1777" if is_small else None
        self.outlives_container = UPGRADE in blueprint.faults
        self.run_in: Callable[[NodeId, list[str]], Any] | None = None

    def serve(self, node: NodeId, settings: Settings) -> None:
        """Let the node's next container be that of these settings."""
        self.services[node] = self._cluster.service(node, self._peers(node), settings)

    def is_published(self, wire: Wire) -> bool:
        """True, also for wires between nodes: the harness probes them from outside."""
        return True

    def found(self, engine: docker.DockerClient) -> Found | None:
        """The project's containers, if a project is named; else None."""
        return None if self._attach is None else find_project(engine, self._attach, self.nodes)

    def image(self, node: NodeId, engine: docker.DockerClient) -> str:
        """The reference of the service's image."""
        return image_of(self.services[node], engine)

    def options(self, node: NodeId) -> dict[str, Any]:
        """The engine's options that the service declares."""
        service = self.services[node]
        return {
            "command": list(service.command),
            "environment": service.environment | (FAKED_CLOCK if "clock" in self._faults else {}),
            "mem_limit": f"{service.memory_mb}m",
            "pids_limit": _PIDS,
            **confined(capabilities_of(service.image, service.capabilities)),
        }

    def files(self, node: NodeId) -> Mapping[str, str]:
        """The files that the service declares."""
        return self.services[node].files

    def folder(self, node: NodeId) -> str:
        """The folder of the service's data."""
        return self.services[node].folder

    def control(self, node: NodeId) -> "ServiceControl":
        """The substitute for a control channel."""
        control, service = ServiceControl(node, self.services[node].hello, self._output_of), self.services[node]
        control.serves_after_full_disk = service.serves_after_full_disk
        return control

    def control_port(self, node: NodeId) -> int | None:
        """None: the harness reaches the server as clients do."""
        return None

    def _peers(self, node: NodeId) -> Doors:
        return {target: door for (source, target), door in self._doors.items() if source == node}

    async def _output_of(self, node: NodeId, command: list[str]) -> str:
        if self.run_in is None:
            raise DeployError(f"{node} is not deployed")
        output: str = await self.run_in(node, command)
        return output


def dialled_pairs(cluster: ServiceCluster) -> tuple[tuple[str, NodeId], ...]:
    """The pairs of dialling party and server; all clients count as one party."""
    servers = [node for node in cluster.nodes if node.role != SUBSCRIBER]
    sources = [(CLIENT, CLIENT), *((str(node.id), node.role) for node in cluster.nodes)]
    return tuple(
        (source, target.id)
        for source, role in sources
        for target in servers
        if source != target.id and (role, target.role) in cluster.dials
    )


async def answers(port: int, hello: bytes, within_s: float) -> str | None:
    """None if a server behind that loopback port answers those bytes in time; else the reason."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            if hello:
                writer.write(hello)
            return None if await reader.read(1) else "the connection was closed"
    except TimeoutError:
        return f"no answer within {within_s * 1000:g} ms"
    except OSError as error:
        return str(error)
    finally:
        if writer is not None:
            writer.transport.abort()


class ServiceControl(Foreign):
    """The `NodeControl` of a server, which knows nothing of Seamark."""

    def __init__(self, node: NodeId, hello: bytes, output: Callable[[NodeId, list[str]], Any]) -> None:
        super().__init__(node)
        self._hello, self._output_of = hello, output
        self._port = 0

    def at(self, host: str, port: int) -> None:
        """Note that the server has started again, at that loopback port."""
        self.life += 1
        self._port = port

    def away(self) -> None:
        """Do nothing: no connection is kept open."""

    async def ready(self, within_s: float) -> bool:
        """True if the server answers within that time."""
        deadline_s = time.monotonic() + within_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if await answers(self._port, self._hello, min(left_s, _HELLO_WITHIN_S)) is None:
                return True
            await asyncio.sleep(_RETRY_S)
        return False

    async def clocks(self) -> Clocks:
        """The server's wall clock; the other reading is the harness's own clock, which is also the machine's."""
        before_ns = time.monotonic_ns()
        output = await self._output_of(self._node, ["date", "+%s%N"])
        now_ns = (before_ns + time.monotonic_ns()) // 2
        return Clocks(0, 0, now_ns, 0, int(output.strip()))

    async def counters(self) -> Counters:
        """Zero counts: the server counts nothing."""
        return _NOTHING

    def total(self) -> Counters:
        """Zero counts: the server counts nothing."""
        return _NOTHING

    async def dump(self) -> None:
        """Do nothing: the server shows no state."""

    def tell(self, message: FromHarness) -> None:
        """Do nothing: the server takes no orders."""
