"""Power losses: machines crash, and what was not synced is lost or torn.

Whatever was synced stays; of all else nothing, or a torn prefix.
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
    probe="nodes that were up and went down; the note says how many unsynced writes were lost.",
    heals="the nodes start again with what was synced.",
    colour="#882255",
    is_prepared=True,
)
