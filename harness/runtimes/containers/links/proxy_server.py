"""Starts the Toxiproxy server of a run, between the network of the nodes and that of the harness."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import docker
from docker.models.containers import Container
from docker.models.networks import Network

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.engine.calls import tail_of
from harness.runtimes.containers.engine.confinement import confined
from harness.runtimes.containers.links.links import Toxiproxy
from harness.runtimes.containers.links.wiring import LOOPBACK, NAMES, PROXY_API_PORT, PROXY_HOST, Wire

KEEP: Final = "/keep"  # The folder in which Toxiproxy has the nodes' volumes in memory.
_READY_S: Final = 30.0
_POLL_S: Final = 0.02
# Small buffers in Toxiproxy: its sender must soon notice a slow reader. Few attempts to connect:
# Toxiproxy accepts no connection while it dials, and a node that dies meanwhile would block its proxy for 30 s.
_SYSCTLS: Final = {
    "net.ipv4.tcp_rmem": "4096 16384 65536",
    "net.ipv4.tcp_wmem": "4096 16384 65536",
    "net.ipv4.tcp_syn_retries": "1",
}


class ProxyServer(NamedTuple):
    """A Toxiproxy server that answers, and the loopback port of each wire that the harness dials, by its name."""

    container: Container
    proxies: Toxiproxy
    published: dict[str, int]


def start_toxiproxy(
    client: docker.DockerClient,
    image: str,
    networks: tuple[Network, Network],
    wires: Sequence[Wire],
    dialled: Sequence[Wire],
    volumes: Mapping[NodeId, str],
    **options: Any,
) -> ProxyServer:
    """Toxiproxy, with a proxy for each wire. The networks are the nodes', and the one with its API, which is published.

    `volumes` are those that its container keeps. Raises DeployError and the exceptions of docker's SDK.
    """
    nodes, control = networks
    container = client.containers.create(
        image,
        # Toxiproxy's API listens in the first network only; the nodes know only the second.
        ["sh", "-c", f'exec toxiproxy-server -host "$(hostname -i)" -port {PROXY_API_PORT}'],
        network=control.name,
        ports={f"{port}/tcp": (LOOPBACK, 0) for port in (PROXY_API_PORT, *(wire.port for wire in dialled))},
        # A tmpfs volume is emptied when no container mounts it. Toxiproxy outlives the nodes' crashes.
        volumes={volume: {"bind": f"{KEEP}/{node}"} for node, volume in volumes.items()},
        sysctls=_SYSCTLS,
        dns_opt=list(NAMES),
        **confined(),
        **options,
    )
    container.start()
    container.reload()
    published = {
        int(name.partition("/")[0]): int(each[0]["HostPort"]) for name, each in container.ports.items() if each
    }
    proxies = Toxiproxy(LOOPBACK, published[PROXY_API_PORT])
    _await(proxies, container)  # The address is looked up before Toxiproxy joins the second network.
    nodes.connect(container, aliases=[PROXY_HOST])
    for wire in wires:
        proxies.create(wire.name, f"0.0.0.0:{wire.port}", wire.upstream)
    return ProxyServer(container, proxies, {wire.name: published[wire.port] for wire in dialled})


def _await(proxies: Toxiproxy, container: Container) -> None:
    deadline_s = time.monotonic() + _READY_S
    while True:
        try:
            proxies.version()
        except DeployError:
            if time.monotonic() > deadline_s:
                raise DeployError(f"Toxiproxy does not answer; it said: {tail_of(container)}") from None
            time.sleep(_POLL_S)
        else:
            return
