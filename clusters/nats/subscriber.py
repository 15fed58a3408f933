"""Follows the whole stream by a durable pull consumer of the subscriber's own name.

Theory of operation. The servers keep the consumer's progress, so a session has no position to begin from.
1. A message is delivered, and then acknowledged. If it or its acknowledgement is lost on the way, the message comes
   again after some time: at least once, and not in order.
2. The consumer's ack floor is the sequence up to which all messages are acknowledged, so all of them were delivered: it
   is a watermark. It is queried a few times a second.
"""

from typing import Final

from clusters.nats import planted
from clusters.nats.line import Line, Pull, Received
from clusters.nats.rows import STREAM, key_of
from clusters.servers.client import Broken, Refused
from clusters.servers.values import decoded
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Deliver, Doors

_CONNECTED_WITHIN_S: Final = 2.0
_BATCH: Final = 32
_QUIET_S: Final = 0.1
_SILENT_S: Final = 3.0  # Without an answer for this long the session is given up, and the next server asked.


class NatsSubscriber:
    """One subscriber. Each session is at the next server, since any of them leads to the consumer."""

    def __init__(self, node: NodeId, doors: Doors, settings: Settings, _: dict[str, object]) -> None:
        self._node, self._doors, self._nodes = node, doors, sorted(doors)
        self._turn = sum(node.encode()) % len(self._nodes)  # Two subscribers begin at two servers.
        self._floor = 0
        self._acks_first = planted.ACK_FIRST in settings.bugs
        self._waiting: list[Received] = []  # Acknowledged too early, and kept in memory until the next fetch.

    async def receive(self, deliver: Deliver) -> None:
        """Run one session. Raises OSError if there is no connection, and when the session ends."""
        self._turn += 1
        line = Line(self._doors[self._nodes[self._turn % len(self._nodes)]])
        try:
            await line.connected(_CONNECTED_WITHIN_S)
            pull = await line.pull(self._node)
            await deliver(Delivery(session=0, kind="open"))
            while True:
                await self._take(pull, await pull.received(_BATCH, _QUIET_S), deliver)
                await self._announce(line, deliver)
        except Refused as refused:
            raise Broken(str(refused)) from refused
        finally:
            await line.close()

    async def _take(self, pull: Pull, messages: list[Received], deliver: Deliver) -> None:
        if self._acks_first:
            for message in messages:
                await pull.ack(message)
            messages, self._waiting = self._waiting, messages
        for message in messages:
            await deliver(
                Delivery(
                    session=0,
                    kind="row",
                    key=key_of(message.subject),
                    value=decoded(message.payload),
                    position=message.sequence,
                    ordinal=0,
                    unit=message.sequence,
                    unit_rows=1,
                )
            )
            if not self._acks_first:
                await pull.ack(message)

    async def _announce(self, line: Line, deliver: Deliver) -> None:
        """Deliver the ack floor as a watermark, if it has changed."""
        state = await line.api_within(f"CONSUMER.INFO.{STREAM}.{self._node}", _SILENT_S)
        floor = int(state["ack_floor"]["stream_seq"])
        if floor != self._floor:
            self._floor = floor
            await deliver(Delivery(session=0, kind="watermark", position=floor))
