"""A subscriber of a stream whose servers keep its progress, and which acknowledges what it has been delivered.

Theory of operation. The servers keep the progress, so a session has no position to begin from.
1. A message is delivered, and then acknowledged. If the message or its acknowledgement is lost on the way, the message
   comes again in time: at least once.
2. The ack floor is the position up to which all messages are acknowledged, so all of them were delivered: it is a
   watermark. It is queried after each fetch.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from clusters.servers.client import Broken, L, Refused
from harness.core.machine import Delivery, NodeId
from harness.core.seams import Address, Deliver, Doors

_CONNECTED_WITHIN_S: Final = 2.0
BATCH: Final = 32
QUIET_S: Final = 0.1
SILENT_S: Final = 3.0  # Without an answer for this long the session is given up, and the next server asked.
M = TypeVar("M")


class Acknowledging(ABC, Generic[L, M]):
    """One subscriber. Each session is at the next of `nodes`, or at the server to which that node leads.

    `acks_first` is a planted bug: messages are acknowledged too early, and kept in memory until the next fetch.
    """

    def __init__(self, node: NodeId, doors: Doors, nodes: Sequence[NodeId], *, acks_first: bool) -> None:
        self._node, self._doors, self._nodes = node, doors, nodes
        self._turn = sum(node.encode()) % len(nodes)  # Two subscribers begin at two servers.
        self._floor = 0
        self._acks_first = acks_first
        self._waiting: Sequence[M] = ()

    async def receive(self, deliver: Deliver) -> None:
        """Run one session. Raises OSError if there is no connection, and when the session ends."""
        self._turn += 1
        server = await self._server_by(self._nodes[self._turn % len(self._nodes)], _CONNECTED_WITHIN_S)
        line = self._dial(self._doors[server])
        try:
            await line.connected(_CONNECTED_WITHIN_S)
            await self._begin(line)
            await deliver(Delivery(session=0, kind="open"))
            while True:
                await self._take(line, await self._fetched(line), deliver)
                if (floor := await self._ack_floor(line)) != self._floor:
                    self._floor = floor
                    await deliver(Delivery(session=0, kind="watermark", position=floor))
        except Refused as refused:
            raise Broken(str(refused)) from refused
        finally:
            await line.close()

    async def _take(self, line: L, messages: Sequence[M], deliver: Deliver) -> None:
        if self._acks_first:
            for message in messages:
                await self._ack(line, message)
            messages, self._waiting = self._waiting, messages
        for message in messages:
            for row in self._rows(message):
                await deliver(row)
            if not self._acks_first:
                await self._ack(line, message)

    async def _server_by(self, node: NodeId, within_s: float) -> NodeId:
        """The server to which that node leads: itself. Raises Broken."""
        return node

    @abstractmethod
    def _dial(self, address: Address) -> L:
        """A connection to the server at that address, which need not stand yet."""

    @abstractmethod
    async def _begin(self, line: L) -> None:
        """Prepare a session. Raises Refused, OSError."""

    @abstractmethod
    async def _fetched(self, line: L) -> Sequence[M]:
        """At most BATCH messages; none if none comes within QUIET_S. Raises Refused, OSError."""

    @abstractmethod
    async def _ack(self, line: L, message: M) -> None:
        """Acknowledge a message. Raises Refused, OSError."""

    @abstractmethod
    async def _ack_floor(self, line: L) -> int:
        """The position up to which the servers have all acknowledgements. Raises Refused, OSError."""

    @abstractmethod
    def _rows(self, message: M) -> Iterable[Delivery]:
        """The rows that a message shows."""
