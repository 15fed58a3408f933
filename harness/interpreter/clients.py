"""Opens the clients of a run: one for each process, with a connection of its own, closed after use."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from harness.core.machine import Settings
from harness.core.seams import Client, Doors, MachineCluster, Network, ServiceCluster

OpenClient = Callable[[int], AbstractAsyncContextManager[Client]]  # By process.


def clients_of_machines(cluster: MachineCluster, network: Network, settings: Settings) -> OpenClient:
    """Clients that call nodes over connections of that network."""

    @asynccontextmanager
    async def opened(process: int) -> AsyncIterator[Client]:
        connection = network.connect(f"client-{process}")
        try:
            yield cluster.client(process, connection, settings)
        finally:
            await connection.close()

    return opened


def clients_of_services(cluster: ServiceCluster, doors: Doors, settings: Settings) -> OpenClient:
    """Clients that open their own connections to those addresses."""

    @asynccontextmanager
    async def opened(process: int) -> AsyncIterator[Client]:
        client = cluster.client(process, doors, settings)
        try:
            yield client
        finally:
            await client.close()

    return opened
