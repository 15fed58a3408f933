"""Relays for clients and subscribers: each listens on loopback, leads to a proxy, and counts the traffic.

Third-party servers count nothing for us, and Toxiproxy reports a connection's traffic only at its end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal

from harness.core.seams import Address
from harness.runtimes.containers.links.late import Lateness, Upstream
from harness.runtimes.containers.links.wiring import LOOPBACK
from harness.runtimes.host.control import LinkCounters

_READ_BYTES: Final = 1 << 16
Send = Callable[[bytes], Awaitable[None]]
Way = Literal["up", "down"]  # The directions: to the server, and from it.


class Relay:
    """One relay. It counts the chunks of a stream to the server (sent) and from it (received), as they arrive.

    A connection counts as closed unless the dialling side ended it.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.lateness = Lateness()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = Address(LOOPBACK, 0)
        self.standing = 0  # Connections that are open now.
        self._pieces: dict[Way, int] = {"up": 0, "down": 0}
        self._opened = self._closed = self._refused = 0

    async def open(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.address = Address(LOOPBACK, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """End all connections, and accept no more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def counters(self) -> LinkCounters:
        """The counts of all traffic so far."""
        return LinkCounters(self._pieces["up"], self._pieces["down"], self._opened, self._closed, self._refused)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):  # `close` waits for the tasks that it cancelled.
                await self._lead(reader, writer)
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._port)
        except OSError:
            self._refused += 1
            return
        self._opened += 1
        self.standing += 1
        upstream = self.lateness.upstream(far_writer)
        up = asyncio.create_task(self._pump(reader, upstream.send, "up"))
        down = asyncio.create_task(self._pump(far_reader, _sending_to(writer), "down"))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            self._closed += not up.done()
            if not down.done() and upstream.is_holding:
                await self._outlive(upstream, far_reader, down)
        finally:
            self.standing -= 1
            far_writer.transport.abort()
            for each in (up, down):
                each.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _outlive(self, upstream: Upstream, far_reader: asyncio.StreamReader, down: asyncio.Task[None]) -> None:
        """Deliver the pieces that are held for a client that has hung up."""
        down.cancel()
        await asyncio.gather(down, return_exceptions=True)
        orphan = asyncio.create_task(upstream.outlive(far_reader))
        self.lateness.adopt(orphan)
        try:
            await orphan
        finally:
            orphan.cancel()

    async def _pump(self, reader: asyncio.StreamReader, send: Send, way: Way) -> None:
        while data := await reader.read(_READ_BYTES):
            self._pieces[way] += 1
            await send(data)


def _sending_to(writer: asyncio.StreamWriter) -> Send:
    async def send(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    return send
