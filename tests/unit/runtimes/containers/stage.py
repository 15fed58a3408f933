"""A stage for faults: a deployment in memory, and what carries them out there."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Effect, Step
from nemesis.topology import Topology
from tests.unit.runtimes.containers.fake_site import N1, S1, FakeSite

TOPOLOGY = Topology(
    nodes=(("n1", "data"), ("n2", "data"), ("s1", "subscriber")),
    links={
        ("data", "data"): "fifo",
        ("data", "subscriber"): "fifo",
        ("subscriber", "data"): "fifo",
        ("client", "data"): "fifo",
        ("data", "client"): "fifo",
    },
    points=("before-answer",),
)


class Stage:
    def __init__(self) -> None:
        self.site = FakeSite()
        self.clients = LinkCounters()
        self.faults = faults_on_machines(self.site, TOPOLOGY, lambda _: self.clients)

    async def carried_out(self, fault: Step, source: NodeId = N1, target: NodeId = S1, count: int = 10) -> Effect:
        """Its effect, if so many messages are sent on that link meanwhile."""
        await self.faults.apply(fault)
        self.site.talk(source, target, count)
        before = await self.faults.effect(fault)
        await self.faults.undo(fault)
        await self.faults.undo(fault)
        after = await self.faults.effect(fault)
        assert after.count == before.count, "the count went on after the end"
        return after


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)
