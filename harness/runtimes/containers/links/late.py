"""Requests that arrive late: a relay holds what clients write, and delivers it although they have hung up meanwhile.

Theory of operation. While lateness is on, every second connection to the server is held: each piece that its client
writes waits for the delay, in order. The answers are not held.
1. A client that waits too long hangs up, and reports its operation as unknown. The connection to the server stays open
   until the held pieces have arrived and the server has had time to act on them. Its answers are thrown away.
2. `release` delivers everything that is still held at once, and returns when no such connection is left. So nothing
   arrives after that. A piece that the server's end does not take any more is dropped, and counted.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

LINGER_S: Final = 1.0  # After the last piece, for the server to act: a closed connection could undo it.
_READ_BYTES: Final = 1 << 16


class Lateness:
    """The lateness of one relay. `arrived` and `dropped` count the pieces of clients that had hung up."""

    def __init__(self) -> None:
        self.arrived = self.dropped = 0
        self._delay_s: float | None = None
        self._turn = 0
        self._released = asyncio.Event()
        self._orphans: set[asyncio.Task[None]] = set()

    def hold(self, delay_s: float) -> None:
        """Hold the pieces of every second connection for so long, from now on."""
        self._delay_s = delay_s
        self._released = asyncio.Event()

    async def release(self) -> None:
        """Deliver what is held, and return when nothing more of a client that hung up can arrive."""
        self._delay_s = None
        self._released.set()
        await asyncio.gather(*self._orphans, return_exceptions=True)

    def upstream(self, writer: asyncio.StreamWriter) -> "Upstream":
        """A new connection's way to the server."""
        self._turn += 1
        return Upstream(self, writer, is_chosen=self._turn % 2 == 0)

    @property
    def delay_s(self) -> float | None:
        """The delay now; None if pieces pass at once."""
        return self._delay_s

    async def past(self, due_s: float) -> None:
        """Wait until that time of the loop's clock, or until `release`."""
        left_s = due_s - asyncio.get_running_loop().time()
        if left_s > 0 and not self._released.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._released.wait()

    def adopt(self, task: asyncio.Task[None]) -> None:
        """Keep track of a connection whose client has hung up."""
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)


class Upstream:
    """One connection's way to the server: at once, or late."""

    def __init__(self, lateness: Lateness, writer: asyncio.StreamWriter, *, is_chosen: bool) -> None:
        self._lateness, self._writer, self._is_chosen = lateness, writer, is_chosen
        self._held: deque[tuple[float, bytes]] = deque()
        self._delivering: asyncio.Task[None] | None = None
        self._is_orphan = False

    async def send(self, data: bytes) -> None:
        """Send a piece, now or later. Raises OSError if it cannot be sent now."""
        delay_s = self._lateness.delay_s if self._is_chosen else None
        if delay_s is None and not self._held:
            self._writer.write(data)
            await self._writer.drain()
            return
        self._held.append((asyncio.get_running_loop().time() + (delay_s or 0.0), data))
        if self._delivering is None or self._delivering.done():
            self._delivering = asyncio.create_task(self._deliver())

    @property
    def is_holding(self) -> bool:
        """True if pieces are held."""
        return bool(self._held)

    async def outlive(self, reader: asyncio.StreamReader) -> None:
        """Deliver what is held for a client that has hung up; `reader` has the server's answers."""
        self._is_orphan = True
        swallowing = asyncio.create_task(_swallowed(reader))
        try:
            if self._delivering is not None:
                await self._delivering
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await swallowing
        finally:
            swallowing.cancel()
            await asyncio.gather(swallowing, return_exceptions=True)

    async def _deliver(self) -> None:
        while self._held:
            due_s, data = self._held[0]
            await self._lateness.past(due_s)
            try:
                self._writer.write(data)
                await self._writer.drain()
            except OSError:
                self._lateness.dropped += len(self._held) * self._is_orphan
                self._held.clear()
                return
            self._held.popleft()
            self._lateness.arrived += self._is_orphan


async def _swallowed(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(_READ_BYTES):
            pass
