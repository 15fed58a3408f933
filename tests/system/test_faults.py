"""Faults on real containers: each bites where it should, one way, and is gone when it was undone."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import docker
import pytest

from clusters.tutorial.messages import Operate
from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.core.seams import CallFailed
from harness.runtimes.containers.control import Hearers, Probes
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.containers.faults.probing import Prober, link_path
from harness.runtimes.containers.faults.site import Holds
from harness.runtimes.containers.links.network import ContainerNetwork
from harness.runtimes.containers.machines import Blueprint, Machines
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines, module_of
from harness.scenario.scenario import Scenario, decide, topology
from nemesis.plan import Effect, Step

pytestmark = pytest.mark.docker
MS = 1_000_000
N1, N2, S1 = NodeId("n1"), NodeId("n2"), NodeId("s1")
DURING_S = 1.0


def step(fault: str, *targets: str, **args: int | str) -> Step:
    return Step(fault=fault, package="partition", at_ns=0, until_ns=1000 * MS, targets=targets, args=args)


class Deployed:
    """The tutorial in containers, with clients that write all the time."""

    def __init__(self, client: docker.DockerClient) -> None:
        scenario = Scenario(cluster="tutorial", seed=3, runtime="docker")
        cluster = load_machines(installed("tutorial"))
        self.failures: list[str] = []
        blueprint = Blueprint(
            run_id=secrets.token_hex(4),
            cluster=cluster,
            code=module_of(installed("tutorial")),
            settings=decide(scenario, cluster).settings,
            seed=3,
            epoch_ns=time.monotonic_ns(),
            epoch_realtime_ns=time.time_ns(),
            faults=frozenset(("clock", "disk-full", "stall")),
        )
        hearers = Hearers(
            take=lambda node, result: None, failed=lambda node, text: self.failures.append(text), probes=Probes()
        )
        self.deployment = Deployment(client, Machines(blueprint, hearers))
        self.code = blueprint.code
        self.topology = topology(cluster)

    async def open(self) -> None:
        await self.deployment.open()
        self.network = ContainerNetwork(self.deployment.client_ports, self.code)
        self.faults = faults_on_machines(self.deployment, self.topology, self.network.traffic)
        self.prober = Prober(self.deployment, self.network.traffic, Holds())
        self._clients = [asyncio.create_task(self._write(number)) for number in range(2)]
        await asyncio.sleep(0.5)

    async def close(self) -> None:
        for each in self._clients:
            each.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await self.deployment.close()

    async def reaches(self, link: str) -> bool:
        """Does a probe come through, on that link?"""
        return (await self.prober.seen([link_path(link)], 0.5))[link].after_s is not None

    async def is_well(self, *links: str) -> None:
        """Return when probes come through there. Raises TimeoutError if they never do."""
        async with asyncio.timeout(20):
            for link in links:
                while not await self.reaches(link):
                    await asyncio.sleep(0.05)

    async def effect(self, fault: Step, during_s: float = DURING_S) -> Effect:
        """What a step did that lasted so long."""
        await self.faults.apply(fault)
        await asyncio.sleep(during_s)
        before = await self.faults.effect(fault)
        await self.faults.undo(fault)
        return max(await self.faults.effect(fault), before, key=lambda effect: effect.count)

    async def clock_error_ns(self, node: NodeId) -> int:
        clocks = await self.deployment.nodes[node].control.clocks()
        return clocks.realtime_ns - (time.time_ns() - time.monotonic_ns() + clocks.monotonic_ns)

    async def _write(self, number: int) -> None:
        connection = self.network.connect(f"client-{number}")
        for count in range(1_000_000):
            await asyncio.sleep(0.03)
            for node in (N1, N2):
                try:
                    await connection.call(node, Operate("write", number, count), 500 * MS)
                except CallFailed:
                    await asyncio.sleep(0.02)


@asynccontextmanager
async def deployed(client: docker.DockerClient) -> AsyncIterator[Deployed]:
    subject = Deployed(client)
    try:
        await subject.open()
        yield subject
        assert subject.failures == []
    finally:
        await subject.close()


Test = Callable[[Deployed], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def play(engine: docker.DockerClient) -> Iterator[Callable[[Test], None]]:
    """Plays a test on one deployment, which all tests of this file share."""
    with asyncio.Runner() as runner:
        context = deployed(engine)
        subject = runner.run(context.__aenter__())

        def on_it(test: Test) -> None:
            runner.run(asyncio.wait_for(test(subject), 60))

        yield on_it
        runner.run(context.__aexit__(None, None, None))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (step("cut", "n1>s1"), "connections closed or refused; probed n1>s1: did not arrive"),
        (step("reset", "n1>s1"), "connections reset or refused; probed n1>s1: did not arrive"),
        (step("stall", "n1>s1"), "packets dropped; probed n1>s1: did not arrive"),
    ],
)
def test_a_broken_link_carries_nothing_one_way_and_the_other_way_works(
    play: Callable[[Test], None], fault: Step, words: str
) -> None:
    async def test(subject: Deployed) -> None:
        await subject.is_well("n1>s1", "s1>n1")
        await subject.faults.apply(fault)
        assert not await subject.reaches("n1>s1")
        await subject.is_well("s1>n1")
        assert not await subject.reaches("n1>s1")
        await asyncio.sleep(DURING_S)
        effect = await subject.faults.effect(fault)
        assert effect.count > 0
        assert words in effect.note
        await subject.faults.undo(fault)
        await subject.is_well("n1>s1", "s1>n1")

    play(test)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (step("stall", "client>n1"), "messages held back; probed client>n1"),
        (step("cut", "n1>client", "client>n1"), "connections closed or refused; probed n1>client, client>n1"),
        (step("delay", "n1>client", latency_ns=100 * MS, jitter_ns=50 * MS), "messages delayed; probed n1>client"),
        (step("delay", "n1>s1", latency_ns=150 * MS), "messages delayed; probed n1>s1"),
        (step("bandwidth", "n1>s1", bytes_per_s=700), "messages held back; probed n1>s1"),
        (step("limit-data", "n1>s1", bytes=500), "connections closed"),
        (step("consumer", "s1", delay_ns=10 * MS), "messages took longer"),
        (step("pause", "n2"), "events had to wait"),
        (step("pause", "n1", "n2", point="before-answer"), "events had to wait"),
        (step("crash", "n1", "n2", disk="torn", point="before-answer"), "went down"),
        (step("crash", "s1", disk="kept"), "s1 went down, 0 unsynced writes lost"),
        (step("disk-full", "n1"), "writes found no room"),
        (step("clock", "n1", step_ns=-5200 * MS), "readings of a clock that was up to 5.2 s wrong"),
        (step("clock", "n1", "n2", drift_ppm=-200_000), "readings of a clock that was up to 0."),
        (step("clock", "n1", freeze=1), "readings of a clock that was up to "),
    ],
    ids=lambda value: value.fault if isinstance(value, Step) else "",
)
def test_a_fault_has_its_effect_and_ends(play: Callable[[Test], None], fault: Step, words: str) -> None:
    async def test(subject: Deployed) -> None:
        await subject.is_well("n1>s1", "s1>n1", "n2>s1", "n1>n2", "client>n1")
        effect = await subject.effect(fault)
        assert words in effect.note
        assert effect.count > 0, effect.note
        await subject.is_well("n1>s1", "s1>n1", "n2>s1", "n1>n2", "client>n1")
        for node in (N1, N2):
            assert abs(await subject.clock_error_ns(node)) < 5 * MS, f"the clock of {node} is still wrong"

    play(test)


DIAL = """
import socket, sys
with socket.create_connection(("toxiproxy", int(sys.argv[1])), 2) as dialled:
    dialled.sendall(b"anybody?")
    dialled.recv(1)
"""


@pytest.mark.parametrize(("fault", "error"), [("cut", "ConnectionRefusedError"), ("reset", "ConnectionResetError")])
def test_a_cut_refuses_connections_and_a_reset_resets_them(
    play: Callable[[Test], None], fault: str, error: str
) -> None:
    async def test(subject: Deployed) -> None:
        await subject.is_well("n1>s1")
        await subject.faults.apply(step(fault, "n1>s1"))
        port = str(subject.deployment.port_of("n1", "s1"))
        with pytest.raises(DeployError, match=error):
            await subject.deployment.run_in(N1, ["python", "-c", DIAL, port])
        await subject.faults.undo(step(fault, "n1>s1"))

    play(test)


def test_a_stall_outlives_a_restart_of_the_node_that_sends(play: Callable[[Test], None]) -> None:
    stall, crash = step("stall", "n1>s1", "n2>n1"), step("crash", "n1", disk="kept")

    async def test(subject: Deployed) -> None:
        await subject.is_well("n1>s1", "n2>n1")
        await subject.faults.apply(stall)
        await subject.faults.apply(crash)
        await subject.faults.undo(crash)
        assert not await subject.reaches("n1>s1")
        await subject.faults.undo(stall)
        await subject.is_well("n1>s1", "n2>n1")

    play(test)


def test_undo_works_after_the_node_was_killed_by_hand(play: Callable[[Test], None]) -> None:
    faults = [
        step("stall", "n2>s1"),
        step("delay", "s1>n2", latency_ns=50 * MS),
        step("clock", "n2", step_ns=1000 * MS),
        step("disk-full", "n2"),
        step("pause", "n2"),
    ]

    async def test(subject: Deployed) -> None:
        for fault in faults:
            await subject.faults.apply(fault)
        await subject.deployment.kill(N2)
        for fault in reversed(faults):
            await subject.faults.undo(fault)
        await subject.deployment.start(N2)
        result = await subject.deployment.run_in(N2, ["df", "-P", "-k", "/var/lib/seamark"])
        assert int(result.split()[-3]) > 60_000, "the disk is still full"
        assert abs(await subject.clock_error_ns(N2)) < 5 * MS
        await subject.is_well("n2>s1", "s1>n2")

    play(test)


def test_a_fault_on_a_node_that_is_gone_did_nothing(play: Callable[[Test], None]) -> None:
    async def test(subject: Deployed) -> None:
        await subject.deployment.kill(S1)
        for fault in (step("stall", "s1>n1"), step("disk-full", "s1"), step("crash", "s1")):
            assert (await subject.effect(fault, 0)).count == 0
        await subject.is_well("s1>n1")

    play(test)
