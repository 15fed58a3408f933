"""What a client wrote arrives after it has hung up, in order; and when the fault ends nothing more can arrive."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.core.errors import ScenarioError
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.containers.links import late
from harness.runtimes.containers.links.late import Lateness
from harness.runtimes.containers.links.relays import Relay
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Plan
from nemesis.validation import problems
from tests.unit.nemesis.topologies import SMALL
from tests.unit.runtimes.containers.fake_site import FakeSite, step
from tests.unit.runtimes.containers.stage import TOPOLOGY

LOOPBACK = "127.0.0.1"
LONG_S = 3600.0


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "LINGER_S", 0.05)


class Server:
    """A server that keeps what it was told, and answers each line."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.lines.append(line)
            writer.write(line.upper())
        writer.close()


def with_relay(test: Callable[[Relay, Server], Awaitable[None]]) -> None:
    async def run() -> None:
        told = Server()
        server = await asyncio.start_server(told.serve, LOOPBACK, 0)
        relay = Relay(server.sockets[0].getsockname()[1])
        await relay.open()
        try:
            async with asyncio.timeout(10):
                await test(relay, told)
        finally:
            await relay.close()
            server.close()

    asyncio.run(run())


async def hung_up(relay: Relay, *lines: bytes) -> None:
    """A client that writes those lines, and hangs up without an answer."""
    _, writer = await asyncio.open_connection(*relay.address)
    before = relay.counters().sent
    for line in lines:
        writer.write(line)
        await writer.drain()
    while relay.counters().sent == before:
        await asyncio.sleep(0.001)
    writer.transport.abort()


async def answered(relay: Relay, line: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*relay.address)
    writer.write(line)
    answer = await reader.readline()
    writer.close()
    return answer


def test_every_second_connection_is_late_and_what_it_sent_arrives_though_its_client_is_gone() -> None:
    async def test(relay: Relay, told: Server) -> None:
        relay.lateness.hold(LONG_S)
        assert await answered(relay, b"first\n") == b"FIRST\n"
        await hung_up(relay, b"zombie\n")
        assert await answered(relay, b"third\n") == b"THIRD\n"
        assert told.lines == [b"first\n", b"third\n"]
        await relay.lateness.release()
        assert told.lines == [b"first\n", b"third\n", b"zombie\n"]
        assert (relay.lateness.arrived, relay.lateness.dropped) == (1, 0)
        while relay.standing:
            await asyncio.sleep(0.001)
        assert await answered(relay, b"later\n") == b"LATER\n"

    with_relay(test)


def test_a_client_that_waits_gets_its_answer_late_and_is_no_effect() -> None:
    async def test(relay: Relay, told: Server) -> None:
        relay.lateness.hold(0.02)
        assert await answered(relay, b"one\n") == b"ONE\n"
        assert await answered(relay, b"two\n") == b"TWO\n"
        await relay.lateness.release()
        assert (relay.lateness.arrived, relay.lateness.dropped) == (0, 0)

    with_relay(test)


def test_pieces_keep_their_order_and_come_when_they_are_due() -> None:
    async def test(relay: Relay, told: Server) -> None:
        relay.lateness.hold(0.05)
        await answered(relay, b"first\n")
        await hung_up(relay, b"a\n", b"b\n")
        while len(told.lines) < 3:
            await asyncio.sleep(0.001)
        assert told.lines == [b"first\n", b"a\n", b"b\n"]
        await relay.lateness.release()

    with_relay(test)


def test_what_the_server_s_end_does_not_take_is_dropped_and_counted() -> None:
    class Gone:
        def write(self, _: bytes) -> None:
            raise ConnectionResetError

    async def run() -> None:
        lateness = Lateness()
        lateness.upstream(Gone())  # type: ignore[arg-type]  # Of a writer it has what is used here.
        upstream = lateness.upstream(Gone())  # type: ignore[arg-type]  # The same.
        lateness.hold(LONG_S)
        await upstream.send(b"zombie")
        reader = asyncio.StreamReader()
        reader.feed_eof()
        orphan = asyncio.create_task(upstream.outlive(reader))
        lateness.adopt(orphan)
        await asyncio.sleep(0)
        await lateness.release()
        assert (lateness.arrived, lateness.dropped) == (0, 1)

    asyncio.run(run())


def test_a_step_counts_only_what_arrived_while_it_was_in_force() -> None:
    async def run() -> None:
        site = FakeSite()
        relay = site.relays["client>n1"] = Lateness()
        relay.arrived = 5
        faults = faults_on_machines(site, TOPOLOGY, lambda _: LinkCounters())
        fault = step("late", "client>n1", delay_ns=1)
        await faults.apply(fault)
        assert (await faults.effect(fault)).count == 0
        relay.arrived, relay.dropped = 7, 1
        await faults.undo(fault)
        effect = await faults.effect(fault)
        assert effect.note == "2 pieces of requests arrived after their clients had hung up, 1 were dropped"
        assert (effect.count, relay.delay_s) == (2, None)

    asyncio.run(run())


def test_machines_and_other_links_are_refused_by_name() -> None:
    async def run() -> None:
        faults = faults_on_machines(FakeSite(), TOPOLOGY, lambda _: LinkCounters())
        with pytest.raises(ScenarioError, match="clients of machines reach them without a relay"):
            await faults.apply(step("late", "client>n1", delay_ns=1))

    asyncio.run(run())
    told = problems(Plan(steps=(step("late", "n1>n2", delay_ns=1),)), SMALL, runtime="docker")
    assert any("target 'n1>n2' does not begin at a client" in line for line in told)
