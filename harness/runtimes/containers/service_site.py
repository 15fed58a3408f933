"""The faults' view of deployed services: servers in containers, subscribers in the harness, relays before both."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import docker

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.core.seams import Doors
from harness.core.system import SUBSCRIBER
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.disks.power import Canaries
from harness.runtimes.containers.disks.rot import Rotten
from harness.runtimes.containers.faults.probing import LinkPath, Passed, Seen
from harness.runtimes.containers.faults.site import Place
from harness.runtimes.containers.links.late import Lateness
from harness.runtimes.containers.links.links import Toxiproxy
from harness.runtimes.containers.links.queues import Holding, PacketQueue
from harness.runtimes.containers.links.relays import Relay
from harness.runtimes.containers.links.wiring import CLIENT
from harness.runtimes.containers.services import ServiceBlueprint, Services, answers
from harness.runtimes.containers.subscribers import Subscribers
from harness.runtimes.host.control import Counters
from nemesis.topology import ends


class ServiceSite:
    """The `Site` and the `Probing` of a cluster of services.

    Call `open` before anything else, and `close` in any case.
    """

    patience_s = 10.0

    def __init__(self, client: docker.DockerClient, blueprint: ServiceBlueprint, subscribers: Subscribers) -> None:
        self._blueprint, self._subscribers = blueprint, subscribers
        self.crew = Services(blueprint)
        self._wires = {wire.name: wire for wire in self.crew.wires}
        self.deployment = Deployment(client, self.crew)
        self.crew.run_in = self.deployment.run_in
        self._relays: dict[str, Relay] = {}  # By the name of the wire.
        self._probed: dict[str, list[Seen]] = {}  # For wires between servers.

    async def open(self) -> None:
        """Start the servers, wait until all answer, prepare them, and start the subscribers. Raises DeployError."""
        await self.deployment.open()
        for name, wire in self._wires.items():
            if wire.source not in self.deployment.nodes:
                self._relays[name] = Relay(self.deployment.published[name])
                await self._relays[name].open()
        try:
            await self._blueprint.cluster.prepare(self.doors(CLIENT), self._blueprint.settings)
        except OSError as error:
            raise DeployError(f"{self._blueprint.cluster.name} could not be prepared: {error}") from error
        await self.deployment.sync()
        for node in self._blueprint.cluster.nodes:
            if node.role == SUBSCRIBER:
                self._subscribers.start(node.id)

    async def close(self, logs: Path | None = None) -> None:
        """Remove everything."""
        await self._subscribers.close()
        await asyncio.gather(*(relay.close() for relay in self._relays.values()))
        await self.deployment.close(logs)

    def doors(self, source: str) -> Doors:
        """The addresses at which the clients, or that subscriber, dial each server."""
        return {wire.target: self._relays[name].address for name, wire in self._wires.items() if wire.source == source}

    # The site.

    @property
    def proxies(self) -> Toxiproxy:
        """The Toxiproxy server in the links."""
        return self.deployment.proxies

    @property
    def nodes(self) -> Mapping[NodeId, Place]:
        """The servers and subscribers."""
        return {**self.deployment.nodes, **self._subscribers.places}

    @property
    def client_ports(self) -> Mapping[NodeId, int]:
        """The loopback ports at which clients reach each server, bypassing the relays."""
        return self.deployment.client_ports

    def port_of(self, source: str, target: str) -> int:
        """The port of Toxiproxy that leads from `source` to `target`."""
        return self.deployment.port_of(source, target)

    async def run_in(self, node: NodeId, command: list[str]) -> str:
        """The output of a command in a server's container. Raises DeployError if it fails."""
        if node not in self.deployment.nodes:
            raise DeployError(f"{node} is not a container")
        return await self.deployment.run_in(node, command)

    async def put(self, node: NodeId, path: str, content: bytes) -> None:
        """Write a file into a server's container."""
        if node in self.deployment.nodes:
            await self.deployment.put(node, path, content)

    async def kill(self, node: NodeId) -> None:
        """Kill the node: SIGKILL for a server, the equivalent for a subscriber."""
        await (self.deployment.kill(node) if node in self.deployment.nodes else self._subscribers.kill(node))

    async def stop(self, node: NodeId) -> bool:
        """Ask the node to end; a subscriber is cancelled."""
        if node in self.deployment.nodes:
            return await self.deployment.stop(node)
        await self._subscribers.kill(node)
        return True

    def lateness(self, link: str) -> Lateness | None:
        """The lateness of the relay in that link; None if there is no relay."""
        return self._relays[link].lateness if link in self._relays else None

    async def address_of(self, node: NodeId) -> str:
        """The server's address in the network of the run."""
        return await self.deployment.address_of(node)

    async def filter_packets(self, node: NodeId, arguments: Sequence[str]) -> str:
        """The output of iptables in a server's network namespace."""
        return await self.deployment.filter_packets(node, arguments)

    async def hold_packets(self, node: NodeId, number: int, holding: Holding) -> PacketQueue:
        """Hold the packets of that queue in a server's network namespace."""
        return await self.deployment.hold_packets(node, number, holding)

    async def rot(self, node: NodeId, *, how: str, place: int) -> Rotten:
        """Change a file of a server that is down."""
        return await self.deployment.rot(node, how=how, place=place)

    def loses_power(self, node: NodeId) -> bool:
        """True if the node has a separate file system."""
        return self.deployment.loses_power(node)

    async def fail_power(self, node: NodeId, *, is_torn: bool) -> None:
        """Let a server lose its power."""
        await self.deployment.fail_power(node, is_torn=is_torn)

    async def canaries(self, node: NodeId) -> Canaries:
        """The canaries on a server's disk, after its start."""
        return await self.deployment.canaries(node)

    async def start(self, node: NodeId) -> None:
        """Start the node again; return when it is ready."""
        if node in self.deployment.nodes:
            await self.deployment.start(node)
        else:
            self._subscribers.start(node)

    async def pause(self, node: NodeId) -> None:
        """Freeze the node."""
        if node in self.deployment.nodes:
            await self.deployment.pause(node)
        else:
            self._subscribers.pause(node)

    async def unpause(self, node: NodeId) -> None:
        """Unfreeze the node."""
        if node in self.deployment.nodes:
            await self.deployment.unpause(node)
        else:
            self._subscribers.unpause(node)

    # Probing.

    def paths(self, link: str) -> Sequence[LinkPath]:
        """The paths of a link: upstream on its source's connections, and downstream on its target's."""
        source, target = ends(link)
        up, down = link, f"{target}>{source}"
        found = []
        if up in self._wires:
            found.append(LinkPath(link, source, target, up, "upstream", is_shared=True))
        if down in self._wires:
            name = f"{link} on {down}" if found else link
            found.append(LinkPath(name, source, target, down, "downstream", is_shared=True))
        return found

    async def seen(self, paths: Sequence[LinkPath], timeout_s: float) -> dict[str, Seen]:
        """The outcomes of a client's first bytes through the proxy of each path, which use both its directions."""
        found = await asyncio.gather(*(self._seen(each.proxy, timeout_s) for each in paths))
        return {each.name: seen for each, seen in zip(paths, found, strict=True)}

    async def _seen(self, proxy: str, timeout_s: float) -> Seen:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        service = self.crew.services[self._wires[proxy].target]
        reason = await answers(self.deployment.published[proxy], service.hello, timeout_s)
        seen = Seen(loop.time() - began_s, "") if reason is None else Seen(None, reason)
        self._probed.setdefault(proxy, []).append(seen)
        return seen

    async def passed(self, paths: Sequence[LinkPath]) -> dict[str, Passed]:
        """The relays' counts, by name: chunks sent to the server and received from it, for either direction.

        On a link between servers only the probes can be counted.
        """
        return {each.name: self._passed(each.proxy) for each in paths}

    def _passed(self, proxy: str) -> Passed:
        if proxy not in self._relays:
            probed = self._probed.get(proxy, [])
            arrived = sum(each.after_s is not None for each in probed)
            return Passed(len(probed), arrived, 0, len(probed) - arrived)
        relay = self._relays[proxy]
        counters = relay.counters()
        broken = counters.closed + counters.refused
        return Passed(counters.sent, counters.received, counters.opened, broken, relay.standing)

    async def counters(self, nodes: Iterable[NodeId]) -> dict[NodeId, Counters]:
        """The counters of subscribers; servers count nothing."""
        return {node: self.nodes[node].control.total() for node in nodes}

    async def came(self, node: NodeId) -> int:
        """The chunks that a server got through its relays, or the times a subscriber waited with an event pending."""
        if node not in self.deployment.nodes:
            return self.nodes[node].control.total().deferred
        counted = [
            self._relays[name].counters()
            for name, wire in self._wires.items()
            if wire.target == node and name in self._relays
        ]
        return sum(each.sent for each in counted)

    def handled(self) -> dict[str, int]:
        """The number of events that each subscriber handled; servers do not report."""
        return {node: place.control.total().handled for node, place in self._subscribers.places.items()}
