"""Rolling upgrades: each node is stopped, and started with the next release on the same data, one after the other.

In containers, for [systems that declare it](your-own-system.md#members-and-releases).
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import UPGRADES, Strike, Topology

UPGRADE = Fault(
    name="upgrade",
    does="as `restart`, but each node starts with the next release on its data",
    targets=Targets.NODES,
    procedure=UPGRADES,
    is_prepared=True,
    beyond={"sim": "a machine has one release: use --runtime docker"},
)


def draw_rolling_upgrade(topology: Topology, stream: Stream) -> Strike:
    """All nodes of the largest role, in any order."""
    return Strike(fault="upgrade", targets=tuple(stream.shuffled(topology.largest_role())))


def unfit_rolling_upgrade(topology: Topology) -> str | None:
    """The reason why there is no release to upgrade to, or None."""
    return None if UPGRADES in topology.procedures else "no upgrade from its options is declared"


PACKAGE = Package(
    name="rolling-upgrade",
    about=__doc__,
    faults=(UPGRADE,),
    draw=draw_rolling_upgrade,
    unfit=unfit_rolling_upgrade,
    excuse=Excuse.NODES | Excuse.MEMORY,
    probe="nodes that answered with the next release.",
    heals="never: all nodes are upgraded in the end. So it strikes once, as the last fault of a run.",
    colour="#6699cc",
    is_last=True,
)
