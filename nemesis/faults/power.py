"""Power failures: machines crash, and unsynced writes are lost or torn.

Synced data stays; the rest is lost, or a torn part of it stays. In containers a server has a separate file
system for this, on a loop device, which only root can make.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Package
from nemesis.faults.crash import CRASH, draw_crash
from nemesis.topology import Strike, Topology


def draw_power(topology: Topology, stream: Stream) -> Strike:
    """Nodes as `crash` draws them; their writes are lost two times in three, else torn."""
    return draw_crash(topology, stream, stream.choice(("lost", "lost", "torn")))


PACKAGE = Package(
    name="power",
    about=__doc__,
    former="lost-writes",
    faults=(CRASH,),
    draw=draw_power,
    excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES,
    probe="nodes that were up and went down; a server counts after its start, if its disk has shown it.",
    heals="the nodes start again with their synced data.",
    colour="#882255",
    is_prepared=True,
)
