"""Crashes: memory is lost, and perhaps unsynced writes. The end of the step starts the nodes again."""

from harness.core.draw import Stream
from nemesis.selection import draw_nodes
from nemesis.topology import Strike, Topology


def draw_crash(topology: Topology, stream: Stream) -> Strike:
    """A crash of a process, whose writes survive in the system's cache; every second time, at a failpoint."""
    return _crash(topology, stream, "kept")


def draw_lost_writes(topology: Topology, stream: Stream) -> Strike:
    """A power loss of a machine: unsynced writes are lost, or a torn prefix of them survives."""
    return _crash(topology, stream, stream.choice(("lost", "lost", "torn")))


def _crash(topology: Topology, stream: Stream, disk: str) -> Strike:
    if topology.points and stream.chance(1, 2):
        # It is unknown which node reaches the failpoint: target all that may, and the first one is struck.
        targets = tuple(stream.shuffled(topology.servers()))
        return Strike(fault="crash", targets=targets, args={"disk": disk, "point": stream.choice(topology.points)})
    targets, is_total = draw_nodes(topology, stream)
    return Strike(fault="crash", targets=targets, args={"disk": disk}, is_total=is_total)
