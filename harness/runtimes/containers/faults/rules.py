"""Silent links: packets are dropped in the network namespace of the dialling node, without notice to either side.

A link is identified by the port of its proxy: packets to and from that port are dropped. Packets of a proxied link
carry Toxiproxy's address, so a rule on the peer's address would drop nothing. The rules come first in their chain, so
that existing connections become silent too.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.barriers import Barriers
from harness.runtimes.containers.faults.site import GONE, Holds, Site

SILENT: Final = "silent"
_RETRY_S: Final = 0.02
_COUNTED: Final = re.compile(r"--[ds]port (\d+) -c (\d+) \d+ -j DROP")


class Rules:
    """All silent links of a run."""

    def __init__(self, site: Site, holds: Holds) -> None:
        self._site, self._holds = site, holds
        self.barriers = Barriers(site)
        self._ports: dict[NodeId, list[int]] = {}  # The ports dropped now.

    async def begin(self, links: Iterable[tuple[NodeId, int]]) -> None:
        """Drop the packets of those links: nodes, and the ports that they dial."""
        first = [(node, port) for node, port in links if self._holds.take(SILENT, f"{node}:{port}")]
        for node, port in first:
            self._ports.setdefault(node, []).append(port)
        await asyncio.gather(*(self._begin_on(node, ports) for node, ports in _by_node(first).items()))

    async def end(self, links: Iterable[tuple[NodeId, int]]) -> None:
        """Accept the packets of those links again. A node that is gone has taken its rules with it."""
        last = [(node, port) for node, port in links if self._holds.drop(SILENT, f"{node}:{port}")]
        for node, port in last:
            self._ports[node].remove(port)
        await asyncio.gather(*(self._forgive(node, ports) for node, ports in _by_node(last).items()))

    async def dropped(self, links: Sequence[tuple[NodeId, int]]) -> int:
        """The number of packets of those links dropped so far, on the nodes that can be queried."""
        return sum(await asyncio.gather(*(self._count(node, ports) for node, ports in _by_node(links).items())))

    async def start(self, node: NodeId) -> None:
        """Start that node's container.

        Its namespace is new, so silent links are silenced again as early as possible.
        """
        starting = asyncio.ensure_future(self._site.start(node))
        try:
            while (self._ports.get(node) or self.barriers.concerns(node)) and not starting.done():
                with suppress(*GONE):
                    if self._ports.get(node):
                        await self._silence(node, self._ports[node])
                    await self.barriers.again(node)
                    break
                await asyncio.sleep(_RETRY_S)
        finally:
            await starting

    async def _begin_on(self, node: NodeId, ports: Sequence[int]) -> None:
        try:
            await self._silence(node, ports)
        except GONE:
            if not self._site.nodes[node].is_down:
                raise
            # The node is down: `start` will do this.

    async def _forgive(self, node: NodeId, ports: Sequence[int]) -> None:
        with suppress(*GONE):
            await self._site.run_in(node, ["sh", "-c", _script("-D {chain}", ports)])

    async def _silence(self, node: NodeId, ports: Sequence[int]) -> None:
        await self._site.run_in(node, ["sh", "-ec", _script("-I {chain} 1", ports)])

    async def _count(self, node: NodeId, ports: Sequence[int]) -> int:
        with suppress(*GONE):
            listed = await self._site.run_in(node, ["iptables", "-w", "-v", "-S"])
            return sum(int(packets) for port, packets in _COUNTED.findall(listed) if int(port) in ports)
        return 0


def _script(verb: str, ports: Sequence[int]) -> str:
    lines = []
    for port in ports:
        for chain, match in (("OUTPUT", "--dport"), ("INPUT", "--sport")):
            lines.append(f"iptables -w {verb.format(chain=chain)} -p tcp {match} {port} -j DROP")
    return "\n".join(lines)


def _by_node(links: Iterable[tuple[NodeId, int]]) -> dict[NodeId, list[int]]:
    found: dict[NodeId, list[int]] = {}
    for node, port in links:
        found.setdefault(node, []).append(port)
    return found
