"""Rolling restarts: nodes are stopped and started again, one after the other, as an operator does it.

Each node has ten seconds to end before it is killed. In containers only.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import Strike, Topology

RESTART = Fault(
    name="restart",
    does="the nodes are stopped and started in turn, each once the one before answers",
    targets=Targets.NODES,
    beyond={"sim": "a machine is never asked to end: use crash"},
)


def draw_rolling_restart(topology: Topology, stream: Stream) -> Strike:
    """All nodes of the largest role, in any order."""
    return Strike(fault="restart", targets=tuple(stream.shuffled(topology.largest_role())))


PACKAGE = Package(
    name="rolling-restart",
    about=__doc__,
    faults=(RESTART,),
    draw=draw_rolling_restart,
    excuse=Excuse.NODES | Excuse.MEMORY,
    probe="nodes that stopped and answered again.",
    heals="the node whose turn it is answers again; the others stay up.",
    colour="#bbcc33",
)
