"""Pauses: nodes stand still, and go on as if no time had passed.

Nodes handle nothing, as under a long garbage collection. No message is lost, and no connection closes.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import POINT, Fault, Package, Targets
from nemesis.selection import draw_nodes
from nemesis.topology import Strike, Topology

PAUSE = Fault(
    name="pause",
    does="no message is handled, no message is lost",
    targets=Targets.NODES,
    optional=POINT,
    is_silencing=True,
)


def draw_pause(topology: Topology, stream: Stream) -> Strike:
    """Nodes as `crash` draws them, but at a failpoint only every fourth time."""
    if topology.points and stream.chance(1, 4):
        targets = tuple(stream.shuffled(topology.servers()))
        return Strike(fault="pause", targets=targets, args={"point": stream.choice(topology.points)})
    targets, is_total = draw_nodes(topology, stream)
    return Strike(fault="pause", targets=targets, is_total=is_total)


PACKAGE = Package(
    name="pause",
    about=__doc__,
    faults=(PAUSE,),
    draw=draw_pause,
    excuse=Excuse.NODES,
    probe="events that had to wait.",
    heals="the nodes handle what has queued up, and do not know that time has passed.",
    colour="#e69f00",
)
