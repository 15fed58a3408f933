"""Doors count what passes, and tell who ended a connection."""

import asyncio
from collections.abc import Awaitable, Callable

from harness.core.seams import Address
from harness.runtimes.containers.links.relays import Relay

LOOPBACK = "127.0.0.1"


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers in capitals, and ends the connection on "bye"."""
    while line := await reader.readline():
        if line == b"bye\n":
            break
        writer.write(line.upper())
    writer.close()


def at_a_door(test: Callable[[Relay], Awaitable[None]], *, is_there: bool = True) -> Relay:
    """A relay to a server that shouts, or to a port where nobody listens, after the test."""

    async def run() -> Relay:
        server = await asyncio.start_server(shout, LOOPBACK, 0)
        relay = Relay(server.sockets[0].getsockname()[1])
        if not is_there:
            server.close()
            await server.wait_closed()
        await relay.open()
        try:
            async with asyncio.timeout(5):
                await test(relay)
        finally:
            await relay.close()
            server.close()
        return relay

    return asyncio.run(run())


async def say(door: Address, *lines: bytes) -> list[bytes]:
    reader, writer = await asyncio.open_connection(*door)
    answers = []
    for line in lines:
        writer.write(line)
        answers.append(await reader.readline())
    writer.close()
    return answers


def test_what_passes_is_counted_both_ways() -> None:
    async def talk(relay: Relay) -> None:
        assert await say(relay.address, b"one\n", b"two\n") == [b"ONE\n", b"TWO\n"]
        while relay.standing:
            await asyncio.sleep(0.01)

    counters = at_a_door(talk).counters()
    assert (counters.sent, counters.received, counters.opened) == (2, 2, 1)
    assert (counters.closed, counters.refused) == (0, 0)  # He who dialled went away.


def test_a_connection_that_the_server_ends_is_closed() -> None:
    async def talk(relay: Relay) -> None:
        assert await say(relay.address, b"one\n", b"bye\n") == [b"ONE\n", b""]
        while relay.standing:
            await asyncio.sleep(0.01)

    assert at_a_door(talk).counters().closed == 1


def test_a_connection_that_stands_is_told() -> None:
    standing = []

    async def talk(relay: Relay) -> None:
        reader, writer = await asyncio.open_connection(*relay.address)
        writer.write(b"one\n")
        await reader.readline()
        standing.append(relay.standing)
        writer.close()

    at_a_door(talk)
    assert standing == [1]


def test_nobody_behind_the_door_is_refused() -> None:
    async def talk(relay: Relay) -> None:
        assert await say(relay.address, b"one\n") == [b""]

    counters = at_a_door(talk, is_there=False).counters()
    assert (counters.refused, counters.opened) == (1, 0)
