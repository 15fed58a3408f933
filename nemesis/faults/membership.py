"""Membership: a node leaves its cluster under load, and a node without data joins in its place.

In containers, for [systems that declare it](your-own-system.md#members-and-releases).
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import MEMBERSHIP, Strike, Topology

REMOVE = Fault(
    name="remove",
    does="the node is removed from the cluster and stopped; at the end it joins, without data",
    targets=Targets.NODES,
    procedure=MEMBERSHIP,
    is_silencing=True,
    is_prepared=True,
    beyond={"sim": "machines have no members to change: use --runtime docker"},
)
REPLACE = Fault(
    name="replace",
    does="the node loses its data, and joins again at once",
    targets=Targets.NODES,
    procedure=MEMBERSHIP,
    is_prepared=True,
    beyond=REMOVE.beyond,
)


def draw_membership(topology: Topology, stream: Stream) -> Strike:
    """One of the two, on one node of the largest role."""
    fault = stream.choice((REMOVE, REPLACE))
    return Strike(fault=fault.name, targets=(stream.choice(topology.largest_role()),))


def unfit_membership(topology: Topology) -> str | None:
    """The reason why no node can leave, or None."""
    if MEMBERSHIP not in topology.procedures:
        return "no change of its members is declared"
    return None if len(topology.largest_role()) >= 3 else "fewer than three nodes of a role: no majority would stay"


PACKAGE = Package(
    name="membership",
    about=__doc__,
    faults=(REMOVE, REPLACE),
    draw=draw_membership,
    unfit=unfit_membership,
    excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES | Excuse.LINKS,
    probe="nodes that left or joined, by the list of the other members.",
    heals="the node is a member again.",
    colour="#994455",
)
