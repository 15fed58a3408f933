"""Full disks: no write finds room until the end."""

from harness.core.draw import Stream
from nemesis.topology import Strike, Topology


def draw_full_disk(topology: Topology, stream: Stream) -> Strike:
    """One node of those that hold the data: were all disks full, there would be nobody left to answer."""
    return Strike(fault="disk-full", targets=(stream.choice(topology.largest_role()),))
