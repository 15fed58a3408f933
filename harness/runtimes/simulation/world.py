"""A cluster in the simulation: its nodes, links, disks and clocks on one virtual loop, all drawn from one seed.

Build a `World`, call `start`, and run a coroutine on `loop`; it acts by `clock`, `network` and `faults`. All reports
of the nodes go to the world's `record`, in order of time.
"""

import asyncio
from collections.abc import Callable

from harness.core.draw import Draw
from harness.core.machine import NodeId, Settings
from harness.core.record import Evidence
from harness.core.seams import MachineCluster
from harness.runtimes.simulation.faults import Faults
from harness.runtimes.simulation.host import Host, Surroundings
from harness.runtimes.simulation.links.links import Links
from harness.runtimes.simulation.links.network import ClientNetwork
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.tracer import Tracer
from nemesis.topology import Topology


class VirtualClock:
    """The `Clock` of the simulation."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""
        return self._loop.now_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait for that much time. Other tasks run first in any case."""
        future = self._loop.create_future()
        self._loop.schedule(self._loop.now_ns + max(0, duration_ns), _wake, future)
        await future


class World:
    """The simulated cluster of one run."""

    def __init__(
        self,
        cluster: MachineCluster,
        settings: Settings,
        draw: Draw,
        record: Callable[[Evidence], None],
        tracer: Tracer | None = None,
        reached: Callable[[NodeId, str], None] | None = None,
    ) -> None:
        """Build the world. `reached` is called with each goal that a node reaches, and as point:NAME each failpoint.

        Raises ScenarioError if the cluster declares a link that is neither fifo nor datagram.
        """
        self.loop = VirtualLoop()
        if tracer is not None:
            tracer.watch(self.loop)
        self.clock = VirtualClock(self.loop)
        roles = {node.id: node.role for node in cluster.nodes}
        links = Links(cluster.links, roles, self.loop, draw, tracer)
        around = Surroundings(
            loop=self.loop,
            links=links,
            draw=draw,
            settings=settings,
            make_machine=cluster.machine if tracer is None else tracer.machine(cluster.machine),
            record=record,
            tracer=tracer,
            reached=reached,
        )
        self._draw = draw
        self._hosts: dict[NodeId, Host] = {node.id: Host(node.id, around) for node in cluster.nodes}
        self.network = ClientNetwork(links, self.loop)
        topology = Topology(nodes=tuple(roles.items()), links=cluster.links, points=cluster.points)
        self.faults = Faults(self.loop, links, self._hosts, topology)

    def start(self) -> None:
        """Make every node recover from its empty disk, in the cluster's order. Raises MachineFailed if one cannot."""
        for host in self._hosts.values():
            host.start()

    def dump(self) -> None:
        """Make every running node record its state."""
        for host in self._hosts.values():
            host.dump()

    def positions(self) -> dict[str, int]:
        """The number of draws of each random stream, sorted by name."""
        return self._draw.positions()

    def handled(self) -> dict[str, int]:
        """The number of events that each node has handled since the start of the run."""
        return {node: host.handled for node, host in self._hosts.items()}

    def unexpected(self) -> dict[str, int]:
        """The number of unexpected messages that each node has dropped."""
        return {node: host.unexpected for node, host in self._hosts.items()}

    def goals(self) -> dict[str, int]:
        """The times each `sometimes` goal and, as point:NAME, each failpoint was reached, sorted by name."""
        totals: dict[str, int] = {}
        for host in self._hosts.values():
            for goal, count in host.goals.items():
                totals[goal] = totals.get(goal, 0) + count
        return dict(sorted(totals.items()))

    def durable_digests(self) -> dict[str, str]:
        """A hash of the content of each node's disk."""
        return {node: host.disk.digest() for node, host in self._hosts.items()}


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
