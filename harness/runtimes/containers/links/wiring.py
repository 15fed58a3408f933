"""The ports of proxies: one proxy for each ordered pair of addresses that the cluster links.

A node connects to a peer through Toxiproxy, at the port of that ordered pair, so that a directed link is identified by
that proxy, and, in the dialling node's network namespace, by the packets to and from that port. Clients are outside:
they all use one proxy per node, published on loopback, and get answers on their own connection.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.core.seams import Cluster

CLIENT: Final = "client"
LOOPBACK: Final = "127.0.0.1"  # The address at which the harness dials published ports.
PROXY_HOST: Final = "toxiproxy"  # Toxiproxy's name in the run's network.
PROXY_API_PORT: Final = 8474
NODE_PORT: Final = 7000  # The node's port for its peers and clients,
CONTROL_PORT: Final = 7001  # and for the harness.
FIRST_PROXY_PORT: Final = 20_000
# The name of a container that is down is unknown, and the networks of a run lead to no server of names that could tell:
# by default each look-up takes twenty seconds, in which Toxiproxy neither accepts a connection nor closes a proxy.
NAMES: Final = ("timeout:1", "attempts:1")


class Wire(NamedTuple):
    """One directed link."""

    source: str
    target: NodeId
    port: int
    listens_at: int = NODE_PORT

    @property
    def name(self) -> str:
        """The link's name in fault plans."""
        return f"{self.source}>{self.target}"

    @property
    def upstream(self) -> str:
        """The target address of its proxy."""
        return f"{self.target}:{self.listens_at}"


def wires(cluster: Cluster) -> tuple[Wire, ...]:
    """The directed links of a cluster, in order of port. Raises ScenarioError if one of them is not a connection."""
    for pair, kind in cluster.links.items():
        if kind != "fifo":
            raise ScenarioError(
                f"{cluster.name}: its {kind} link {'>'.join(pair)} exists in the simulation only: use --runtime sim"
            )
    return tuple(Wire(source, target, FIRST_PROXY_PORT + n) for n, (source, target) in enumerate(_pairs(cluster)))


def peers(all_wires: tuple[Wire, ...], node: NodeId) -> dict[NodeId, tuple[str, int]]:
    """The addresses at which that node dials each of its peers."""
    return {wire.target: (PROXY_HOST, wire.port) for wire in all_wires if wire.source == node}


def _pairs(cluster: Cluster) -> Iterator[tuple[str, NodeId]]:
    for target in cluster.nodes:
        if (CLIENT, target.role) in cluster.links:
            yield CLIENT, target.id
    for source in cluster.nodes:
        for target in cluster.nodes:
            if source is not target and (source.role, target.role) in cluster.links:
                yield source.id, target.id
