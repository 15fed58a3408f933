"""What operators do to a system that works: rolling restarts, rolling upgrades, changes of its members."""

from typing import Final

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import MEMBERSHIP, UPGRADES, Strike, Topology

_DECLARED: Final = "In containers, for [systems that declare it](your-own-system.md#members-and-releases)."
RESTART = Fault(
    name="restart",
    does="the nodes are stopped and started in turn, each once the one before answers",
    targets=Targets.NODES,
    beyond={"sim": "a machine is never asked to end: use crash"},
)
UPGRADE = Fault(
    name="upgrade",
    does="as `restart`, but each node starts with the next release on its data",
    targets=Targets.NODES,
    procedure=UPGRADES,
    is_prepared=True,
    beyond={"sim": "a machine has one release: use --runtime docker"},
)
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


def draw_restart(topology: Topology, stream: Stream) -> Strike:
    """All nodes of the largest role, in any order."""
    return Strike(fault="restart", targets=tuple(stream.shuffled(topology.largest_role())))


def draw_upgrade(topology: Topology, stream: Stream) -> Strike:
    """All nodes of the largest role, in any order."""
    return Strike(fault="upgrade", targets=tuple(stream.shuffled(topology.largest_role())))


def draw_membership(topology: Topology, stream: Stream) -> Strike:
    """One of the two, on one node of the largest role."""
    fault = stream.choice((REMOVE, REPLACE))
    return Strike(fault=fault.name, targets=(stream.choice(topology.largest_role()),))


def unfit_upgrade(topology: Topology) -> str | None:
    """The reason why there is no release to upgrade to, or None."""
    return None if UPGRADES in topology.procedures else "no upgrade from its options is declared"


def unfit_membership(topology: Topology) -> str | None:
    """The reason why no node can leave, or None."""
    if MEMBERSHIP not in topology.procedures:
        return "no change of its members is declared"
    return None if len(topology.largest_role()) >= 3 else "fewer than three nodes of a role: no majority would stay"


PACKAGES = (
    Package(
        name="membership",
        about=f"A node leaves its cluster under load, and one without data joins.\n\n{_DECLARED}",
        faults=(REMOVE, REPLACE),
        draw=draw_membership,
        unfit=unfit_membership,
        excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES | Excuse.LINKS,
        probe="nodes that left or joined, by the list of the other members.",
        heals="the node is a member again.",
        colour="#994455",
    ),
    Package(
        name="rolling-restart",
        about="Nodes are stopped and started again in turn.\n\n"
        "Each node has ten seconds to end before it is killed. In containers only.",
        faults=(RESTART,),
        draw=draw_restart,
        excuse=Excuse.NODES | Excuse.MEMORY,
        probe="nodes that stopped and answered again.",
        heals="the node whose turn it is answers again; the others stay up.",
        colour="#bbcc33",
    ),
    Package(
        name="rolling-upgrade",
        about=f"Nodes are upgraded in turn.\n\n{_DECLARED}",
        faults=(UPGRADE,),
        draw=draw_upgrade,
        unfit=unfit_upgrade,
        excuse=Excuse.NODES | Excuse.MEMORY,
        probe="nodes that answered with the next release.",
        heals="never: all nodes are upgraded in the end. So it strikes once, as the last fault of a run.",
        colour="#6699cc",
        is_last=True,
    ),
)
