"""A cluster in containers: a private network, its nodes in it, and Toxiproxy in every link.

Two networks for each run, neither of which leads to the outside. Nodes and Toxiproxy share one. Toxiproxy's API
listens in the other, where no node is; from there it is published, as are the nodes' control channels and the clients'
proxies, on loopback only.
A `Crew` defines the nodes: machines of ours or third-party servers.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import docker
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import LogConfig

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.compose import Found
from harness.runtimes.containers.crew import Crew, NodeContainer, NodeControl
from harness.runtimes.containers.disks.power import Canaries
from harness.runtimes.containers.disks.rot import Rotten, rot
from harness.runtimes.containers.disks.volumes import Volumes
from harness.runtimes.containers.engine import inside, outside
from harness.runtimes.containers.engine.addresses import addresses
from harness.runtimes.containers.engine.calls import in_thread, short, tail_of
from harness.runtimes.containers.engine.confinement import private_network
from harness.runtimes.containers.engine.ending import killed, stopped
from harness.runtimes.containers.engine.labels import RUN, labels_for
from harness.runtimes.containers.engine.sweeper import remove_run
from harness.runtimes.containers.faults.site import PAUSED
from harness.runtimes.containers.images.images import image_for
from harness.runtimes.containers.links.late import Lateness
from harness.runtimes.containers.links.links import DOWN, Toxiproxy
from harness.runtimes.containers.links.proxy_server import start_toxiproxy
from harness.runtimes.containers.links.queues import Holding, PacketQueue
from harness.runtimes.containers.links.wiring import CLIENT, LOOPBACK, NAMES, PROXY_HOST
from harness.runtimes.containers.logs import save_log
from harness.runtimes.containers.readiness import ready

PROXY_IMAGE: Final = "seamark-toxiproxy"
STANDING: Final = ("running", "paused", "created")  # States of a container that has not ended.
COUNT_S: Final = 1.0
WATCH_S: Final = 1.0
CALL_WITHIN_S: Final = 30  # The longest for one call to an engine: a hanging call must not hold up the run's end.
FIRST: Final = "0--"  # The beginning of a name that sorts before the networks of projects.
LOGS: Final = LogConfig(type="json-file", config={"max-size": "8m", "max-file": "1"})
LIMITS: Final[dict[str, Any]] = {"mem_limit": "512m", "pids_limit": 256}


class Deployment:
    """The containers of one run. Call `open` before anything else, and `close` in any case."""

    proxies: Toxiproxy

    def __init__(self, client: docker.DockerClient, crew: Crew) -> None:
        self._client, self._crew = client, crew
        self._labels = labels_for(crew.run_id)
        self._prefix = f"seamark-{crew.run_id}"
        self._wires = {(wire.source, str(wire.target)): wire for wire in crew.wires}
        self._found: Found | None = None
        self._toxiproxy: Container | None = None
        self._volumes = Volumes(client, self._prefix, self._labels)
        self._network_of_nodes: Network
        self._retired: dict[str, Container] = {}  # By the name of its log.
        self.nodes: dict[NodeId, NodeContainer] = {}
        self.published: dict[str, int] = {}  # The loopback port of each wire's proxy, by the wire's name.

    @property
    def client_ports(self) -> dict[NodeId, int]:
        """The loopback ports at which clients reach each node."""
        return {wire.target: self.published[wire.name] for wire in self._crew.wires if wire.source == CLIENT}

    def port_of(self, source: str, target: str) -> int:
        """The port of Toxiproxy that leads from `source` to `target`."""
        return self._wires[source, target].port

    async def open(self) -> None:
        """Start everything and wait until every node answers. Raises DeployError with the tail of a log."""
        crew = self._crew
        try:
            toxiproxy = await in_thread(image_for, PROXY_IMAGE, self._client)
            self._found = await in_thread(crew.found, self._client)
            images = (
                {} if self._found else {each: await in_thread(crew.image, each, self._client) for each in crew.nodes}
            )
            self._client.api.timeout = CALL_WITHIN_S
            nodes, control = await asyncio.gather(*(in_thread(self._network, name) for name in ("nodes", "control")))
            small, disk_mb = crew.small_disk, crew.disk_mb
            make = partial(self._volumes.make, small=small, disk_mb=disk_mb, is_plain=crew.outlives_container)
            volumes = await in_thread(make, crew.nodes)
            in_memory = volumes if small is not None else {}
            self._network_of_nodes = nodes
            created = asyncio.gather(*(in_thread(self._node, images.get(node, ""), node) for node in crew.nodes))
            await in_thread(self._start_toxiproxy, toxiproxy, (nodes, control), in_memory)
            for node, container in zip(crew.nodes, await created, strict=True):
                self.nodes[node] = NodeContainer(
                    node=node, folder=crew.folder(node), container=container, control=crew.control(node)
                )
            await asyncio.gather(*(self.start(node) for node in self.nodes))
        except DockerException as error:
            raise DeployError(f"the containers of this run could not be started: {short(error)}") from error

    async def close(self, logs: Path | None = None) -> None:
        """Remove everything, after collecting the nodes' logs. Things already gone are no error."""
        for each in self.nodes.values():
            each.control.away()
        # All at once: faster, and a hanging engine holds up one call, not eight. The last line reports failures.
        if logs is not None:
            for name, former in self._retired.items():
                await in_thread(save_log, self._client, former, logs / f"{name}.log")
        each_gone = (in_thread(self._remove_node, each, logs) for each in self.nodes.values())
        await asyncio.gather(*each_gone, return_exceptions=True)
        await in_thread(remove_run, self._client, self._crew.run_id)
        self._volumes.release()

    async def start(self, node: NodeId) -> None:
        """Start a node's container; return when the node is ready, or has been killed again.

        Raises DeployError if it never becomes ready.
        """
        each = self.nodes[node]
        async with each.turn:
            await in_thread(each.container.start)
            if each.is_down:
                await in_thread(self._shut, node, False)
            each.is_down = False
            each.control.at(LOOPBACK, await in_thread(self._control_port, each))
        await ready(each, self._crew.ready_s)

    async def kill(self, node: NodeId) -> None:
        """Send SIGKILL to all processes of the container."""
        each = self.nodes[node]
        async with each.turn:
            each.is_down = True
            each.control.away()
            with contextlib.suppress(NotFound):
                # At once: data that proxies hold back must not outlive its sender.
                await asyncio.gather(in_thread(killed, each.container), in_thread(self._shut, node, True))

    async def stop(self, node: NodeId) -> bool:
        """Ask a node to end, and kill it if it does not in time. True if it ended by itself."""
        each = self.nodes[node]
        async with each.turn:
            each.is_down = True
            each.control.away()
            await in_thread(self._shut, node, True)  # Servers wait until their clients' connections have ended.
            return await in_thread(stopped, each.container)

    async def renew(self, node: NodeId, *, keeps_data: bool) -> None:
        """Make a new container for a node that is down, as the crew describes it now. Raises DeployError."""
        each = self.nodes[node]
        async with each.turn:
            try:
                await in_thread(self._renew, node, keeps_data)
            except (DockerException, OSError) as error:
                raise DeployError(f"{node} got no new container: {short(error)}") from error

    def lateness(self, _: str) -> Lateness | None:
        """None: clients of machines reach them without a relay."""
        return None

    async def address_of(self, node: NodeId) -> str:
        """The node's address in the network of the run. Raises DeployError if it has none, as while it is down."""
        return await in_thread(outside.address_of, self.nodes[node].container)

    async def filter_packets(self, node: NodeId, arguments: Sequence[str]) -> str:
        """The output of iptables in the node's network namespace, entered from outside. Raises DeployError."""
        return await in_thread(outside.filter_packets, self.nodes[node].container, arguments)

    async def hold_packets(self, node: NodeId, number: int, holding: Holding) -> PacketQueue:
        """Hold the packets of that queue in the node's network namespace. Raises DeployError."""
        return await PacketQueue.opened(await in_thread(outside.entry, self.nodes[node].container), number, holding)

    async def sync(self) -> None:
        """Make durable what was set up, on nodes that can lose power: such a failure strikes what the load writes."""
        await asyncio.gather(*(in_thread(self._volumes.sync, n, e.container, e.folder) for n, e in self.nodes.items()))

    async def rot(self, node: NodeId, *, how: str, place: int) -> Rotten:
        """Change a file of a node that is down. Raises DeployError."""
        each = self.nodes[node]
        return await in_thread(partial(rot, each.container, each.folder, how=how, place=place))

    def loses_power(self, node: NodeId) -> bool:
        """True if the node has a separate file system."""
        return self._volumes.loses_power(node)

    async def fail_power(self, node: NodeId, *, is_torn: bool) -> None:
        """End the node's file system, and send SIGKILL to all processes of the container."""
        each = self.nodes[node]
        try:
            async with each.turn:
                each.is_down = True  # A server that finds its disk gone may end before it is killed.
                with contextlib.suppress(NotFound):
                    await in_thread(partial(self._volumes.fail, node, each.container, each.folder, is_torn=is_torn))
        finally:
            await self.kill(node)  # It is frozen, whatever became of its disk.

    async def canaries(self, node: NodeId) -> Canaries:
        """The canaries on the disk of a node, after its start."""
        each = self.nodes[node]
        async with each.turn:  # Another power failure writes them anew.
            return await in_thread(self._volumes.canaries, node, each.container, each.folder)

    async def pause(self, node: NodeId) -> None:
        """Freeze all processes of the container."""
        self.nodes[node].is_paused = True
        await in_thread(self.nodes[node].container.pause)

    async def unpause(self, node: NodeId) -> None:
        """Unfreeze all processes of the container."""
        await in_thread(self.nodes[node].container.unpause)
        self.nodes[node].is_paused = False

    async def run_in(self, node: NodeId, command: list[str]) -> str:
        """The output of a command in the node's container. Raises DeployError if it fails."""
        code, text = await in_thread(inside.output_of, self._client.api, str(self.nodes[node].container.id), command)
        if code != 0:
            last = text.splitlines()[-1] if text else "no word"
            raise DeployError(f"{' '.join(command)} on {node} exited with {code}: {last}")
        return text

    async def put(self, node: NodeId, path: str, content: bytes) -> None:
        """Write a file into the node's container, which may be stopped."""
        await in_thread(inside.put, self.nodes[node].container, path, content)

    async def dump(self) -> None:
        """Make every running node record its state, and query its counts once more."""
        await asyncio.gather(*(each.control.dump() for each in self._up()))
        await self._count()

    async def count(self) -> None:
        """Query all nodes' counts once per second, for `handled` and `goals`. Never returns."""
        while True:
            await asyncio.sleep(COUNT_S)
            await self._count()

    async def _count(self) -> None:
        await asyncio.gather(*(each.control.counters() for each in self._up()), return_exceptions=True)

    def answering(self) -> list[NodeControl]:
        """The nodes that should answer immediately."""
        return [each.control for each in self._up() if not each.is_paused and each.control.is_ready]

    def _up(self) -> list[NodeContainer]:
        return [each for each in self.nodes.values() if not each.is_down]

    def handled(self) -> dict[str, int]:
        """The number of events that each node had handled at the last query."""
        return {node: each.control.total().handled for node, each in self.nodes.items()}

    def goals(self) -> dict[str, int]:
        """The number of times each goal and failpoint had been reached at the last query, sorted by name."""
        totals: dict[str, int] = {}
        for each in self.nodes.values():
            for goal, count in each.control.total().goals.items():
                totals[goal] = totals.get(goal, 0) + count
        return dict(sorted(totals.items()))

    async def watch(self) -> None:
        """Raise DeployError when the engine, or a container that should run, is gone. Never returns."""
        while True:
            await asyncio.sleep(WATCH_S)
            up = self._up()
            try:
                states = await in_thread(self._states)
                for each in up:
                    if states.get(each.container.id) not in STANDING:
                        await self._confirm(each)
            except DockerException as error:
                raise DeployError(f"the Docker engine does not tell what runs: {short(error)}") from error
            if self._toxiproxy is not None and states.get(self._toxiproxy.id) != "running":
                tail = await in_thread(tail_of, self._toxiproxy)
                raise DeployError(f"Toxiproxy ended unexpectedly; its last output: {tail}")

    async def _confirm(self, each: NodeContainer) -> None:
        """Raise DeployError if that node's container ended by itself, not by a fault."""
        async with each.turn:
            states = await in_thread(self._states)
            if not each.is_down and (state := states.get(each.container.id, "removed")) not in STANDING:
                if each.may_end and state != "removed":
                    each.is_down = True
                    each.control.away()
                    return
                tail = await in_thread(tail_of, each.container)
                raise DeployError(f"the container of {each.node} ended unexpectedly ({state}); it said: {tail}")

    # Calls to the engine run in threads.

    def _network(self, purpose: str) -> Network:
        if self._found and purpose == "nodes":
            return self._found.network
        # Ports that the harness dials must be published. For third-party servers that is Toxiproxy alone.
        is_of_nodes = purpose == "nodes"
        is_internal = is_of_nodes and not any(map(self._crew.control_port, self._crew.nodes))
        # An engine publishes ports at the network whose name sorts first, and Toxiproxy's API listens in ours only.
        first = FIRST if self._found else ""
        name, is_fixed = f"{first}{self._prefix}-{purpose}", is_of_nodes and self._crew.is_direct
        return private_network(self._client, name, self._labels, is_internal=is_internal, is_fixed=is_fixed)

    def _shut(self, node: NodeId, is_down: bool) -> None:
        """Close the proxies of a node that is down, or open them again."""
        doors = [wire.name for wire in self._crew.wires if wire.target == node and self._crew.shuts_doors]
        for name in doors:
            (self.proxies.disable if is_down else self.proxies.enable)(name, DOWN)

    def _control_port(self, each: NodeContainer) -> int:
        """The loopback port of that node's control: it changes with each start."""
        port = self._crew.control_port(each.node)
        if port is not None:
            return _published(each.container, port)
        return next(self.published[wire.name] for wire in self._crew.wires if wire.target == each.node)

    def _node(self, image: str, node: NodeId) -> Container:
        if self._found:
            return self._found.containers[node]
        network, volume = self._network_of_nodes, self._volumes.names.get(node)
        known = addresses(network, self._crew.nodes) if self._crew.is_direct else {}
        endpoint = self._client.api.create_endpoint_config(aliases=[str(node)], ipv4_address=known.get(node))
        container = self._client.containers.create(
            image,
            name=f"{self._prefix}-{node}",
            hostname=str(node),
            network=network.name,
            networking_config={str(network.name): endpoint},
            extra_hosts=known,
            volumes={volume: {"bind": self._crew.folder(node)}} if volume else {},
            labels=self._labels,
            log_config=LOGS,
            dns_opt=list(NAMES),
            **self._crew.options(node),
        )
        for path, text in self._crew.files(node).items():
            inside.put(container, path, text.encode())
        return container

    def _start_toxiproxy(self, image: str, networks: tuple[Network, Network], volumes: Mapping[NodeId, str]) -> None:
        dialled = [wire for wire in self._crew.wires if self._crew.is_published(wire)]
        self._toxiproxy, self.proxies, self.published = start_toxiproxy(
            self._client,
            image,
            networks,
            self._crew.wires,
            dialled,
            volumes,
            name=f"{self._prefix}-{PROXY_HOST}",
            labels=self._labels,
            log_config=LOGS,
            **LIMITS,
        )

    def _renew(self, node: NodeId, keeps_data: bool) -> None:
        """Put another container in the place of a node's, which stays, stopped, until the end, for its log."""
        each = self.nodes[node]
        if self._found:
            raise DeployError(f"{node} was started by someone else: its container stays as it is")
        number = len(self._retired)
        each.container.rename(f"{self._prefix}-{node}-{number}")
        self._retired[f"{node}-{number}"] = each.container
        if not keeps_data:
            self._volumes.empty(node, self._toxiproxy)
        each.container = self._node(self._crew.image(node, self._client), node)

    def _states(self) -> dict[str | None, str]:
        """The engine's state of each container of this run, by id."""
        labels = [f"{RUN}={self._crew.run_id}", *([self._found.label] if self._found else [])]
        listed = [self._client.api.containers(all=True, filters={"label": label}) for label in labels]
        return {each["Id"]: each["State"] for found in listed for each in found}

    def _remove_node(self, each: NodeContainer, logs: Path | None) -> None:
        if logs is not None:
            save_log(self._client, each.container, logs / f"{each.node}.log")
        if not self._found:
            each.container.remove(force=True, v=True)
            return
        each.container.reload()  # A container that existed before continues to run.
        if each.container.status == PAUSED:
            each.container.unpause()
        each.container.start()


def _published(container: Container, port: int) -> int:
    """The loopback port that publishes that port of the container: it changes with each start."""
    container.reload()
    published = container.ports.get(f"{port}/tcp")
    if not published:
        raise DeployError(f"{container.name}: its port {port} is not published; it said: {tail_of(container)}")
    return int(published[0]["HostPort"])
