"""Actions on running members from outside: emptying the store before a run. And when clients compact the history."""

from typing import Final

from clusters.etcd.line import Line
from clusters.etcd.messages import message
from clusters.servers.client import Refused
from harness.core.machine import Settings
from harness.core.seams import Doors

KEPT_REVISIONS: Final = 100
_WITHIN_S: Final = 10.0


def compacts(settings: Settings) -> bool:
    """True if clients discard old revisions."""
    return settings.options["compaction"] == "on"


async def prepare(doors: Doors, _: Settings) -> None:
    """Delete all keys: members that ran before (--attach) may hold what another run has left. Raises OSError."""
    async with Line(doors[min(doors)]) as line:
        await line.connected(_WITHIN_S)
        try:
            everything = message("DeleteRangeRequest", key=b"\0", range_end=b"\0")
            await line.ask("delete", everything)
        except Refused as refused:
            raise OSError(f"the store could not be emptied: {refused}") from refused
