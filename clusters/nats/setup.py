"""Creates the stream and its consumers, once the servers have a leader."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from clusters.nats.line import Line
from clusters.nats.rows import STREAM, SUBJECTS
from clusters.servers.client import Refused, in_time
from harness.core.machine import NodeId, Settings
from harness.core.record import Json
from harness.core.seams import Doors

REPLICAS: Final = 3
ACK_WAIT_NS: Final = 2_000_000_000  # A message that was not acknowledged comes again after this time.
_MOST_PENDING: Final = 2_000
_WITHIN_S: Final = 40.0


async def prepare(doors: Doors, _: Settings, *, consumers: Sequence[NodeId]) -> None:
    """Make an empty stream, and a durable consumer for each subscriber. Raises OSError."""
    line = Line(doors[min(doors)])
    try:
        await line.connected(_WITHIN_S)
        await _done(line, "STREAM.NAMES")
        with suppress(Refused):
            await line.api(f"STREAM.DELETE.{STREAM}")  # Servers that ran before (--attach) may have one.
        create = f"STREAM.CREATE.{STREAM}"
        await _done(line, create, name=STREAM, subjects=[SUBJECTS], num_replicas=REPLICAS, storage="file")
        for name in consumers:
            config: dict[str, Json] = {
                "durable_name": str(name),
                "ack_policy": "explicit",
                "ack_wait": ACK_WAIT_NS,
                "deliver_policy": "all",
                "max_ack_pending": _MOST_PENDING,
            }
            call = f"CONSUMER.DURABLE.CREATE.{STREAM}.{name}"
            await _done(line, call, stream_name=STREAM, config=config)
    finally:
        await line.close()


async def _done(line: Line, call: str, **asked: Json) -> None:
    """Make that call until it is answered without an error. Raises OSError."""
    await in_time(partial(line.api, call, **asked), _WITHIN_S, call)
