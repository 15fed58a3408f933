"""Full disks: no write finds room.

No write finds room. In containers only.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import Strike, Topology

DISK_FULL = Fault(
    name="disk-full",
    does="no write finds room",
    targets=Targets.NODES,
    is_prepared=True,
    beyond={"sim": "a simulated disk has no size: use --runtime docker"},
)


def draw_full_disk(topology: Topology, stream: Stream) -> Strike:
    """One node of the largest role."""
    return Strike(fault="disk-full", targets=(stream.choice(topology.largest_role()),))


PACKAGE = Package(
    name="full-disk",
    about=__doc__,
    faults=(DISK_FULL,),
    draw=draw_full_disk,
    excuse=Excuse.NODES | Excuse.MEMORY,
    probe="writes that found no room.",
    heals="there is room again.",
    colour="#661100",
)
