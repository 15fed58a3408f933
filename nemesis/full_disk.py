"""Full disks: no write finds room until the end."""

from harness.core.draw import Stream
from nemesis.topology import Strike, Topology


def draw_full_disk(topology: Topology, stream: Stream) -> Strike:
    """A full disk at one data node: if all disks were full, nobody could answer."""
    return Strike(fault="disk-full", targets=(stream.choice(topology.largest_role()),))
