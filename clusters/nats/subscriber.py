"""Follows the whole stream by a durable pull consumer of the subscriber's own name, from any server.

What comes again does not come in order.
"""

from collections.abc import Iterable, Sequence

from clusters.nats import planted
from clusters.nats.line import Line, Pull, Received
from clusters.nats.rows import STREAM, key_of
from clusters.servers.subscriber import BATCH, QUIET_S, SILENT_S, Acknowledging
from clusters.servers.values import decoded
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Address, Doors


class NatsSubscriber(Acknowledging[Line, Received]):
    """One subscriber."""

    _pull: Pull

    def __init__(self, node: NodeId, doors: Doors, settings: Settings, _: dict[str, object]) -> None:
        super().__init__(node, doors, sorted(doors), acks_first=planted.ACK_FIRST in settings.bugs)

    def _dial(self, address: Address) -> Line:
        return Line(address)

    async def _begin(self, line: Line) -> None:
        self._pull = await line.pull(self._node)

    async def _fetched(self, line: Line) -> Sequence[Received]:
        return await self._pull.received(BATCH, QUIET_S)

    async def _ack(self, line: Line, message: Received) -> None:
        await self._pull.ack(message)

    async def _ack_floor(self, line: Line) -> int:
        state = await line.api_within(f"CONSUMER.INFO.{STREAM}.{self._node}", SILENT_S)
        return int(state["ack_floor"]["stream_seq"])

    def _rows(self, message: Received) -> Iterable[Delivery]:
        yield Delivery(
            session=0,
            kind="row",
            key=key_of(message.subject),
            value=decoded(message.payload),
            position=message.sequence,
            ordinal=0,
            unit=message.sequence,
            unit_rows=1,
        )
