"""Failovers: the node that leads dies for good, and another is promoted.

The leading node dies for good, and the cluster's own means promote the successor. In containers, and for clusters of
servers only.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import Strike, Topology

FAILOVER = Fault(
    name="failover",
    does="the node dies for good, and the cluster's own means promote another",
    targets=Targets.NODES,  # Not silencing: a link that was cut before decides how much data the successor has.
    beyond={"sim": "machines find out themselves who leads: use crash"},
)


def draw_failover(topology: Topology, _: Stream) -> Strike:
    """The first node of the largest role: it leads at the start."""
    return Strike(fault="failover", targets=topology.largest_role()[:1])


def unfit_failover(topology: Topology) -> str | None:
    """The reason why no node could take over, if there is only one; else None."""
    return None if len(topology.largest_role()) > 1 else "the only node has no replacement"


PACKAGE = Package(
    name="failover",
    about=__doc__,
    faults=(FAILOVER,),
    draw=draw_failover,
    unfit=unfit_failover,
    excuse=Excuse.NODES | Excuse.MEMORY,
    probe="nodes that were promoted.",
    heals="never: the dead node stays away. So it strikes once, as the last fault of a run.",
    colour="#aa4499",
    is_last=True,
)
