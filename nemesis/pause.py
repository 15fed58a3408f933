"""Pauses: a node does nothing for a while, and then continues as if no time had passed."""

from harness.core.draw import Stream
from nemesis.selection import draw_nodes
from nemesis.topology import Strike, Topology


def draw_pause(topology: Topology, stream: Stream) -> Strike:
    """A pause of some nodes, as under a long garbage collection; every fourth time, at a failpoint."""
    if topology.points and stream.chance(1, 4):
        targets = tuple(stream.shuffled(topology.servers()))
        return Strike(fault="pause", targets=targets, args={"point": stream.choice(topology.points)})
    targets, is_total = draw_nodes(topology, stream)
    return Strike(fault="pause", targets=targets, is_total=is_total)
