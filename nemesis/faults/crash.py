"""Crashes: processes die, and their writes survive in the system's cache.

Memory and connections are lost; written data survives, synced or not.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import POINT, Fault, Package, Targets
from nemesis.plan import Step
from nemesis.selection import draw_nodes
from nemesis.topology import Strike, Topology

CRASH = Fault(
    name="crash",
    does="memory is lost. `disk`: unsynced writes are `lost` (the default), `torn` (a prefix of them stays) or `kept`",
    targets=Targets.NODES,
    optional={"disk": ("lost", "torn", "kept"), **POINT},
    is_silencing=True,
)


def loses_writes(step: Step) -> bool:
    """True if the step is a power failure: unsynced writes are lost with the memory."""
    return step.fault == CRASH.name and step.args.get("disk", "lost") != "kept"


def draw_crash(topology: Topology, stream: Stream, disk: str = "kept") -> Strike:
    """Every second time the server that first reaches a failpoint. Else one node (most often), a minority, a majority
    or all of the largest role, or all of one role.
    """
    if topology.points and stream.chance(1, 2):
        # It is unknown which node reaches the failpoint: target all that may, and the first one is struck.
        targets = tuple(stream.shuffled(topology.servers()))
        return Strike(fault="crash", targets=targets, args={"disk": disk, "point": stream.choice(topology.points)})
    targets, is_total = draw_nodes(topology, stream)
    return Strike(fault="crash", targets=targets, args={"disk": disk}, is_total=is_total)


PACKAGE = Package(
    name="crash",
    about=__doc__,
    faults=(CRASH,),
    draw=draw_crash,
    excuse=Excuse.NODES | Excuse.MEMORY,
    probe="nodes that were up and went down.",
    heals="the nodes start again with the data on their disks.",
    colour="#d55e00",
)
