"""Bit rot: a file of one node changes while the node is down.

A single bit is flipped, or the end of a file is cut off. A system's documentation decides whether the
system must notice, and must not spread it. In containers, and for clusters of servers only.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Range, Targets
from nemesis.topology import Strike, Topology

ROT = Fault(
    name="rot",
    does="the node is down; at `place` thousandths of its data a bit is flipped (`how`: flip) or a file's end cut off "
    "(truncate)",
    targets=Targets.NODES,
    required={"how": ("flip", "truncate"), "place": Range(0, 999)},
    is_silencing=True,
    beyond={"sim": "a simulated disk does not rot: use --runtime docker"},
)


def draw_bit_rot(topology: Topology, stream: Stream) -> Strike | None:
    """The last node of the largest role, which must have three at least: all steps strike one, so a majority is sound.

    None if it has fewer.
    """
    members = topology.largest_role()
    if unfit_bit_rot(topology) is not None:
        return None
    args: dict[str, int | str] = {"how": stream.choice(("flip", "truncate")), "place": stream.between(0, 999)}
    return Strike(fault="rot", targets=members[-1:], args=args)


def unfit_bit_rot(topology: Topology) -> str | None:
    """The reason why no node may rot: without a sound majority nothing could be promised."""
    return None if len(topology.largest_role()) >= 3 else "fewer than three nodes of a role: no majority would be sound"


PACKAGE = Package(
    name="bit-rot",
    about=__doc__,
    faults=(ROT,),
    draw=draw_bit_rot,
    unfit=unfit_bit_rot,
    excuse=Excuse.NODES | Excuse.MEMORY | Excuse.WRITES,
    probe="files that were read back with the change.",
    heals="the node starts with the changed file, and keeps it.",
    colour="#44aa99",
)
