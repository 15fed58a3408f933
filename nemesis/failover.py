"""Failovers: the node that leads is lost for good, and another takes its place."""

from harness.core.draw import Stream
from nemesis.topology import Strike, Topology


def draw_failover(topology: Topology, _: Stream) -> Strike:
    """The first of those that hold the data leads at the start, and no fault but this changes that."""
    return Strike(fault="failover", targets=topology.largest_role()[:1])


def unfit_failover(topology: Topology) -> str | None:
    """With one node there is nobody to take its place."""
    return None if len(topology.largest_role()) > 1 else "nobody could take the place of the only node"
