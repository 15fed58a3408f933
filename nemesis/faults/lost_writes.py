"""Power losses: machines crash, and unsynced writes are lost or torn.

Synced data stays; the rest is lost, or a torn prefix of it stays.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Package
from nemesis.faults.crash import CRASH, draw_crash
from nemesis.topology import Strike, Topology


def draw_lost_writes(topology: Topology, stream: Stream) -> Strike:
    """Nodes as `crash` draws them; their writes are lost two times in three, else torn."""
    return draw_crash(topology, stream, stream.choice(("lost", "lost", "torn")))


PACKAGE = Package(
    name="lost-writes",
    about=__doc__,
    faults=(CRASH,),
    draw=draw_lost_writes,
    excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES,
    probe="nodes that were up and went down; the note counts the unsynced writes that were lost.",
    heals="the nodes start again with their synced data.",
    colour="#882255",
    is_prepared=True,
)
