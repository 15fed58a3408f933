"""A proxy for tests: what a directed link goes through, so that it can be cut."""

import asyncio

from tests.unit.runtimes.host.nodes import HOST, Nodes, free_port


async def proxy(nodes: Nodes, source: str, target: str) -> "Proxy":
    """A proxy for that link, open until the end of the test."""
    made = Proxy(nodes.ports[target])
    nodes.via[source, target] = made.port
    nodes.at_end.append(made.cut)
    await made.restore()
    return made


class Proxy:
    """Leads to `target`. While it is cut it refuses, as one whose listener is gone."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def restore(self) -> None:
        """Take connections."""
        self._server = await asyncio.start_server(self._connect, HOST, self.port)

    def cut(self) -> None:
        """End all connections, and take none."""
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept, whether or not there is anybody behind it: as Toxiproxy does."""
        self._writers.append(writer)
        try:
            other_reader, other_writer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.append(other_writer)
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while received := await reader.read(1 << 16):
            writer.write(received)
            await writer.drain()
    except ConnectionError:
        pass
    writer.transport.abort()
