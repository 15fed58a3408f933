"""Failovers: the leading node is lost for good, and another takes its place."""

from harness.core.draw import Stream
from nemesis.topology import Strike, Topology


def draw_failover(topology: Topology, _: Stream) -> Strike:
    """A failover of the first data node: it leads at the start, and only this fault changes that."""
    return Strike(fault="failover", targets=topology.largest_role()[:1])


def unfit_failover(topology: Topology) -> str | None:
    """The reason why no node could take over, if there is only one; else None."""
    return None if len(topology.largest_role()) > 1 else "nobody could take the place of the only node"
