"""How clients and subscribers find the master: it is always the same, or a Sentinel names it."""

from typing import Final

from clusters.redis.line import Line
from clusters.redis.service import GROUP, MASTER, SENTINELS
from clusters.servers.client import Broken, Refused
from harness.core.machine import NodeId
from harness.core.seams import Doors

FIXED: Final = (MASTER,)


def guides(doors: Doors) -> tuple[NodeId, ...]:
    """The nodes that lead to the master: the Sentinels if there are any, else the master itself."""
    return SENTINELS if SENTINELS[0] in doors else FIXED


async def master_by(guide: NodeId, doors: Doors, within_s: float) -> NodeId:
    """The master that this guide names; it may have changed since. Raises Broken."""
    if guide == MASTER:
        return guide
    line = Line(doors[guide], needs_master=False)
    try:
        await line.connected(within_s)
        [named] = await line.run(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", GROUP), within_s=within_s)
    except Refused as refused:
        raise Broken(f"{guide}: {refused}") from None
    finally:
        await line.close()
    name = "nobody" if named is None else named[0].decode(errors="replace")
    if name not in doors:
        raise Broken(f"{guide} names {name} as the master")
    return NodeId(name)
