"""Empties the servers, and creates the stream and its consumer groups, once all servers know each other."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from clusters.redis.line import Line
from clusters.redis.masters import guides, master_by
from clusters.redis.rows import STREAM
from clusters.redis.service import GROUP, REPLICAS, SENTINELS
from clusters.servers.client import Broken, Refused, in_time
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors

_WITHIN_S: Final = 40.0
_REPLICATED_WITHIN_MS: Final = 1_000


async def prepare(doors: Doors, _: Settings, *, groups: Sequence[NodeId]) -> None:
    """Make an empty stream, and a consumer group for each subscriber, on all servers. Raises OSError."""
    for guide in guides(doors):
        if guide in SENTINELS:
            await in_time(partial(_knows_all, guide, doors), _WITHIN_S, guide)
    master = await master_by(guides(doors)[0], doors, _WITHIN_S)
    line = Line(doors[master])
    try:
        await line.connected(_WITHIN_S)
        try:
            await line.run(
                ("FLUSHALL",),  # Servers that ran before (--attach) may hold what another run has left.
                *(("XGROUP", "CREATE", STREAM, group, "0", "MKSTREAM") for group in groups),
            )
        except Refused as refused:
            raise OSError(f"{master} could not be prepared: {refused}") from refused
        await in_time(partial(_are_behind, line), _WITHIN_S, master)
    finally:
        await line.close()


async def _are_behind(line: Line) -> None:
    """Return if all replicas have what the master has. Raises Broken."""
    [count] = await line.run(("WAIT", len(REPLICAS), _REPLICATED_WITHIN_MS))
    if count < len(REPLICAS):
        raise Broken(f"{count} replicas have what the master has")


async def _knows_all(sentinel: NodeId, doors: Doors) -> None:
    """Return if that Sentinel knows the others, and both replicas. Raises Refused, Broken."""
    line = Line(doors[sentinel], needs_master=False)
    try:
        await line.connected(_WITHIN_S)
        _, replicas = await line.run(("SENTINEL", "CKQUORUM", GROUP), ("SENTINEL", "REPLICAS", GROUP))
        if len(replicas) < len(REPLICAS):
            raise Broken(f"it knows {len(replicas)} replicas")
    finally:
        await line.close()
