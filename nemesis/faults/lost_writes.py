"""Power losses: a crash that loses what was not synced, or leaves a torn prefix of it."""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Package
from nemesis.faults.crash import CRASH, draw_crash
from nemesis.topology import Strike, Topology


def draw_lost_writes(topology: Topology, stream: Stream) -> Strike:
    """A power loss of a machine: unsynced writes are lost, or a torn prefix of them survives."""
    return draw_crash(topology, stream, stream.choice(("lost", "lost", "torn")))


PACKAGE = Package(
    name="lost-writes",
    faults=(CRASH,),
    draw=draw_lost_writes,
    excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES,
    summary="machines lose power; what was not synced is lost or torn",
    does="a machine loses power: a crash, and what was not synced is lost. One time in three a torn prefix of "
    "it stays.",
    probe="nodes that were up and went down; the note says how many unsynced writes were lost.",
    heals="the nodes start again with what was synced.",
    drawn="as `crash`.",
    colour="#882255",
    is_prepared=True,
)
