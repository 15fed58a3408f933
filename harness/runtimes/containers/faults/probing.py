"""Probes on the data path, one direction at a time, and the counts of nodes and clients there."""

import asyncio
import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import GONE, PAUSED, ClientTraffic, Holds, Site
from harness.runtimes.containers.links.links import Stream
from harness.runtimes.containers.links.wiring import LOOPBACK
from harness.runtimes.host.control import Counters, LinkCounters
from harness.runtimes.host.frames import HANDSHAKE_MAX, WELCOME, BadFrame, Hello, Splitter, decode_as, encode_frame
from nemesis.topology import CLIENT, ends

ANSWER_S: Final = 1.0
_READ_BYTES: Final = 1 << 12


class LinkPath(NamedTuple):
    """A directed link, and the proxy stream in Toxiproxy that carries it.

    Between nodes each direction has its own connections and proxy. Clients dial nodes, and get answers on the same
    connection: a node's messages to clients use the downstream of the proxy that leads to it.
    """

    name: str
    source: str
    target: str
    proxy: str
    stream: Stream
    is_shared: bool  # By the two directions of one connection: then only Toxiproxy can separate them.

    @property
    def node(self) -> NodeId:
        """The node that sends; on a shared connection, the node at its listening end."""
        return NodeId(self.target if self.is_shared and self.stream == "upstream" else self.source)

    @property
    def has_clients(self) -> bool:
        """True if one of its ends is the clients'."""
        return CLIENT in (self.source, self.target)


class Seen(NamedTuple):
    """The outcome of a probe: its travel time in seconds; or None, and the reason why it did not arrive."""

    after_s: float | None
    reason: str


class Passed(NamedTuple):
    """The traffic on a path so far: messages, and connections opened, and closed or refused.

    `standing` counts the connections open now, if messages cannot be counted at both ends.
    """

    sent: int = 0
    received: int = 0
    opened: int = 0
    broken: int = 0
    standing: int = 0


def link_path(link: str) -> LinkPath:
    """The path of a link "n1>n2" or "client>n1" between machines."""
    source, target = ends(link)
    if target == CLIENT:
        return LinkPath(link, source, target, f"{CLIENT}>{source}", "downstream", is_shared=True)
    return LinkPath(link, source, target, link, "upstream", is_shared=source == CLIENT)


class Probing(Protocol):
    """The probes and traffic counts of a deployment."""

    patience_s: float  # The longest that a link fault waits for healthy links, so that its effect can be seen.

    def paths(self, link: str) -> Sequence[LinkPath]:
        """All paths that make up a link."""

    async def seen(self, paths: Sequence[LinkPath], timeout_s: float) -> dict[str, Seen]:
        """The outcomes of probes on each path, sent at the same time, by name."""

    async def passed(self, paths: Sequence[LinkPath]) -> dict[str, Passed]:
        """The traffic on each path so far, by name."""

    async def counters(self, nodes: Iterable[NodeId]) -> dict[NodeId, Counters]:
        """The counters of those nodes."""

    async def came(self, node: NodeId) -> int:
        """The number of messages that others have sent to that node."""


class Prober:
    """A sender of probes and reader of counters: the `Probing` of machines."""

    patience_s = 0.0

    def __init__(self, site: Site, traffic: ClientTraffic, holds: Holds) -> None:
        self._site, self._traffic, self._holds = site, traffic, holds
        self._numbers = itertools.count(1)

    def paths(self, link: str) -> Sequence[LinkPath]:
        """The link's paths: each direction between nodes has its own connection."""
        return [link_path(link)]

    async def seen(self, paths: Sequence[LinkPath], timeout_s: float) -> dict[str, Seen]:
        """The outcomes of probes on each path, sent at the same time, by name."""
        found = await asyncio.gather(*(self._seen(each, timeout_s) for each in paths))
        return {each.name: seen for each, seen in zip(paths, found, strict=True)}

    async def passed(self, paths: Sequence[LinkPath]) -> dict[str, Passed]:
        """The traffic on each path so far, by name. A node that does not answer counts as at its last answer."""
        nodes = dict.fromkeys(NodeId(end) for each in paths for end in (each.source, each.target) if end != CLIENT)
        counters = await self.counters(nodes)
        return {each.name: self._passed(each, counters) for each in paths}

    async def counters(self, nodes: Iterable[NodeId]) -> dict[NodeId, Counters]:
        """The counters of those nodes; of one that does not answer, those of its last answer."""
        names = list(nodes)
        return dict(zip(names, await asyncio.gather(*map(self._counters, names)), strict=True))

    async def came(self, node: NodeId) -> int:
        """The number of messages that others, clients included, have sent to that node."""
        counters = await self.counters([other for other in self._site.nodes if other != node])
        return self._traffic(node).sent + sum(_sent(each, node) for each in counters.values())

    def _passed(self, path: LinkPath, counters: Mapping[NodeId, Counters]) -> Passed:
        if not path.has_clients:
            near = counters[NodeId(path.source)].links.get(path.target, LinkCounters())
            far = counters[NodeId(path.target)].links.get(path.source, LinkCounters())
            return Passed(near.sent, far.received, near.opened, near.closed + near.refused)
        node, clients = counters[path.node].links.get(CLIENT, LinkCounters()), self._traffic(path.node)
        if path.source == CLIENT:
            return Passed(clients.sent, node.received, clients.opened, clients.closed + clients.refused)
        return Passed(node.sent, clients.received, clients.opened, clients.closed + clients.refused)

    async def _counters(self, node: NodeId) -> Counters:
        place = self._site.nodes[node]
        if not place.is_down and not self._holds.has(PAUSED, node):
            with suppress(*GONE):
                async with asyncio.timeout(ANSWER_S):
                    return await place.control.counters()
        return place.control.total()

    async def _seen(self, path: LinkPath, timeout_s: float) -> Seen:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if path.has_clients:
            reason = await self._round_trip(path.node, timeout_s)
        else:
            reason = await self._site.nodes[NodeId(path.source)].control.probe(NodeId(path.target), timeout_s)
        return Seen(loop.time() - began_s, "") if reason is None else Seen(None, reason)

    async def _round_trip(self, node: NodeId, timeout_s: float) -> str | None:
        """The reason why a node did not welcome a client's greeting in time; None if it did.

        The greeting uses both directions of the proxy.
        """
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(LOOPBACK, self._site.client_ports[node])
                writer.write(encode_frame(Hello(NodeId(f"probe-{next(self._numbers)}"))))
                splitter = Splitter(HANDSHAKE_MAX)
                while (payload := splitter.take()) is None:
                    if not (received := await reader.read(_READ_BYTES)):
                        return "the connection was closed"
                    splitter.feed(received)
                decode_as(WELCOME, payload)
                return None
        except TimeoutError:
            return f"no answer within {timeout_s * 1000:g} ms"
        except (OSError, BadFrame) as error:
            return str(error)
        finally:
            if writer is not None:
                writer.transport.abort()


def _sent(counters: Counters, to: NodeId) -> int:
    return counters.links[to].sent if to in counters.links else 0
