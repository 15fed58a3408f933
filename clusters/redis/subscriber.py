"""Follows the master's stream by a consumer group of the subscriber's own name.

A session begins with the entries that were delivered before, and never acknowledged; then come new ones, in order. The
ack floor lies below the first entry without an acknowledgement; if there is none, it is the last that was delivered.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from clusters.redis import planted, rows
from clusters.redis.line import Line
from clusters.redis.masters import guides, master_by
from clusters.servers.subscriber import BATCH, QUIET_S, SILENT_S, Acknowledging
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Address, Doors

_NEW: Final = b">"
_CONSUMER: Final = "one"  # Of the group.


class Entry(NamedTuple):
    """An entry of the stream: its ID, and its fields and their values, by turns."""

    identity: bytes
    fields: Sequence[bytes]


class RedisSubscriber(Acknowledging[Line, Entry]):
    """One subscriber."""

    def __init__(self, node: NodeId, doors: Doors, settings: Settings, _: dict[str, object]) -> None:
        super().__init__(node, doors, guides(doors), acks_first=planted.EARLY_ACK in settings.bugs)
        self._behind = b"0"  # The next fetch is of pending entries behind this ID, or of new ones.

    def _dial(self, address: Address) -> Line:
        return Line(address)

    async def _server_by(self, node: NodeId, within_s: float) -> NodeId:
        return await master_by(node, self._doors, within_s)

    async def _begin(self, line: Line) -> None:
        self._behind = b"0"

    async def _fetched(self, line: Line) -> Sequence[Entry]:
        group = ("GROUP", self._node, _CONSUMER, "COUNT", BATCH, "BLOCK", int(QUIET_S * 1000))
        [found] = await line.run(("XREADGROUP", *group, "STREAMS", rows.STREAM, self._behind), within_s=SILENT_S)
        entries = [Entry(identity, fields or ()) for _, of_stream in found or () for identity, fields in of_stream]
        if self._behind != _NEW:
            self._behind = entries[-1].identity if entries else _NEW
        return entries

    async def _ack(self, line: Line, message: Entry) -> None:
        await line.run(("XACK", rows.STREAM, self._node, message.identity), within_s=SILENT_S)

    async def _ack_floor(self, line: Line) -> int:
        groups, pending = (("XINFO", "GROUPS", rows.STREAM), ("XPENDING", rows.STREAM, self._node))
        [[found, (count, first, *_)]] = await line.transaction(groups, pending, within_s=SILENT_S)
        if count:
            return rows.position_of(first) - 1
        states = (dict(zip(group[::2], group[1::2], strict=True)) for group in found)
        [last] = [each[b"last-delivered-id"] for each in states if each[b"name"] == self._node.encode()]
        return rows.position_of(last)

    def _rows(self, message: Entry) -> Iterable[Delivery]:
        return rows.deliveries(message.identity, message.fields)
