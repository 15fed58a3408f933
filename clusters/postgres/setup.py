"""Actions on running servers from outside: creating tables and slots before a run, and promoting the standby."""

from collections.abc import Sequence

from clusters.postgres import rows
from clusters.postgres.line import Refused, dial
from clusters.postgres.service import PRIMARY, STANDBY
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors

_PROMOTED_WITHIN_S = 30


async def prepare(doors: Doors, _: Settings, /, *, slots: Sequence[str] = ()) -> None:
    """Create the tables, their publication, and those slots, unless they exist. Raises OSError."""
    line = await dial(doors[PRIMARY], name="prepare", target_session_attrs="read-write")
    try:
        for statement in (*rows.set_up(), *map(rows.slot, slots)):
            await line.run((statement,))
    except Refused as refused:
        raise OSError(str(refused)) from refused
    finally:
        line.close()


async def fail_over(dead: NodeId, doors: Doors, _: Settings) -> NodeId:
    """Promote the standby; returns it once it accepts writes. Raises OSError if it does not."""
    if dead == STANDBY:
        raise OSError(f"{PRIMARY} leads already: there is nothing to promote for a dead {STANDBY}")
    line = await dial(doors[STANDBY], name="fail-over")
    try:
        [standing] = await line.run(("SELECT pg_is_in_recovery()",))
        if standing.rows == [(b"t",)]:
            [promoted] = await line.run((f"SELECT pg_promote(true, {_PROMOTED_WITHIN_S})",))
            if promoted.rows != [(b"t",)]:
                raise OSError(f"{STANDBY} was not promoted within {_PROMOTED_WITHIN_S} s")
    except Refused as refused:
        raise OSError(str(refused)) from refused
    finally:
        line.close()
    return STANDBY
