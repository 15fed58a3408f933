"""The client's end of the network in containers: calls and answers over framed TCP, through one proxy for each node.

A call is definitely lost only if it was never written: no connection was open, and no new one got the node's
`Welcome`. A time-out, or a broken connection, says nothing about the node's actions.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from harness.core.machine import Answer, Call, Message, NodeId
from harness.core.seams import CallFailed
from harness.runtimes.containers.links.wiring import LOOPBACK
from harness.runtimes.host.control import LinkCounters
from harness.runtimes.host.frames import (
    DATA_MAX,
    WELCOME,
    BadFrame,
    Codec,
    Hello,
    Splitter,
    codec_of,
    decode_as,
    encode_frame,
)

READ_BYTES: Final = 1 << 16
SECOND: Final = 1_000_000_000


class Traffic:
    """The counts of messages and connections between all clients and one node."""

    def __init__(self) -> None:
        self.sent = self.received = self.opened = self.closed = self.refused = 0

    def counters(self) -> LinkCounters:
        """The counts in the form that nodes use."""
        return LinkCounters(self.sent, self.received, self.opened, self.closed, self.refused)


class ContainerNetwork:
    """The `Network` of containers. `ports` are the loopback ports of the nodes."""

    def __init__(self, ports: Mapping[NodeId, int], cluster: str) -> None:
        self._routes = {node: _Route(port, codec_of(cluster), Traffic()) for node, port in ports.items()}

    def connect(self, address: str) -> "ContainerConnection":
        """A connection under that address."""
        return ContainerConnection(NodeId(address), self._routes)

    def traffic(self, node: NodeId) -> LinkCounters:
        """The counts between all clients and that node; zero if no client dials it."""
        route = self._routes.get(node)
        return LinkCounters() if route is None else route.traffic.counters()


class _Route(NamedTuple):
    """The clients' access to one node."""

    port: int
    codec: Codec
    traffic: Traffic


class ContainerConnection:
    """The `Connection` of one client: at most one TCP connection to each node, dialled on demand."""

    def __init__(self, address: NodeId, routes: Mapping[NodeId, _Route]) -> None:
        self._address, self._routes = address, routes
        self._lines: dict[NodeId, _Line] = {}
        self._dialling: dict[NodeId, asyncio.Lock] = {}
        self._next_number = 0

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        """The answer to `message`. Raises CallFailed when the link breaks or the timeout expires."""
        line: _Line | None = None
        try:
            async with asyncio.timeout(timeout_ns / SECOND):
                line = await self._line(node)
                self._next_number += 1
                return await line.call(Call(self._next_number, message))
        except TimeoutError:
            raise CallFailed("timed out", is_definite=line is None) from None
        except (OSError, BadFrame) as error:
            raise CallFailed(f"cannot be reached: {error}", is_definite=line is None) from None

    async def close(self) -> None:
        """Give up all calls and links."""
        for line in self._lines.values():
            line.close("the connection was closed")

    async def _line(self, node: NodeId) -> "_Line":
        """An open connection. Raises OSError or BadFrame if none can be opened."""
        async with self._dialling.setdefault(node, asyncio.Lock()):
            line = self._lines.get(node)
            if line is None or not line.is_open:
                line = self._lines[node] = await _dialled(self._address, self._routes[node])
            return line


class _Line:
    """One TCP connection to a node, after its Welcome."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: _Route) -> None:
        self.is_open = True
        self._writer, self._codec, self._traffic = writer, route.codec, route.traffic
        self._traffic.opened += 1
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._listening = asyncio.create_task(self._listen(reader))

    async def call(self, call: Call) -> Message:
        """The answer to a call. Raises CallFailed if the connection ends before it."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[call.number] = answer
        try:
            self._writer.write(encode_frame(call))
            self._traffic.sent += 1
            return await answer
        finally:
            del self._waiting[call.number]

    def close(self, reason: str) -> None:
        """End the connection: its pending answers may be lost."""
        self.is_open = False
        self._listening.cancel()
        self._writer.transport.abort()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(CallFailed(reason, is_definite=False))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        splitter = Splitter(DATA_MAX)
        reason = "the connection has ended"
        try:
            while received := await reader.read(READ_BYTES):
                splitter.feed(received)
                while (payload := splitter.take()) is not None:
                    self._hear(self._codec.decode(payload))
        except (OSError, BadFrame) as error:
            reason = f"the connection has ended: {error}"
        self._traffic.closed += 1
        self.close(reason)

    def _hear(self, message: Message) -> None:
        self._traffic.received += 1
        if isinstance(message, Answer):
            answer = self._waiting.get(message.number)
            if answer is not None and not answer.done():
                answer.set_result(message.body)


async def _dialled(address: NodeId, route: _Route) -> _Line:
    """A connection with the node's Welcome: Toxiproxy accepts connections even if nothing listens behind it."""
    try:
        reader, writer = await asyncio.open_connection(LOOPBACK, route.port)
        try:
            await _welcomed(address, reader, writer)
        except BaseException:
            writer.transport.abort()
            raise
    except (OSError, BadFrame):
        route.traffic.refused += 1
        raise
    return _Line(reader, writer, route)


async def _welcomed(address: NodeId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(encode_frame(Hello(address)))
    splitter = Splitter(DATA_MAX)
    while (payload := splitter.take()) is None:
        received = await reader.read(READ_BYTES)
        if not received:
            raise ConnectionResetError("nobody answers")
        splitter.feed(received)
    decode_as(WELCOME, payload)
