"""Slow and faulty links between two roles."""

from harness.core.draw import Stream
from nemesis.topology import DATAGRAM, Strike, Topology

MS = 1_000_000


def draw_slow_link(topology: Topology, stream: Stream) -> Strike:
    """All links between two roles take longer, in both directions: who has no traffic would not notice a single one."""
    source, target = stream.choice(tuple(topology.links))
    one, other = topology.of_role(source), topology.of_role(target)
    links = topology.existing([pair for a in one for b in other for pair in ((a, b), (b, a))])
    latency_ns = stream.between(20, 250) * MS
    return Strike(fault="delay", targets=links, args={"latency_ns": latency_ns, "jitter_ns": latency_ns // 2})


def draw_datagrams(topology: Topology, stream: Stream) -> Strike:
    """Some messages on all datagram links are lost, come twice, or overtake each other."""
    fault = stream.choice(("drop", "duplicate", "reorder"))
    return Strike(fault=fault, targets=topology.all_links(DATAGRAM), args={"permille": stream.between(20, 300)})


def unfit_slow_link(topology: Topology) -> str | None:
    """Why there is no link to slow down, or None."""
    return None if topology.all_links() else "no link is declared"


def unfit_datagrams(topology: Topology) -> str | None:
    """Why there is no datagram to lose, or None."""
    return None if topology.all_links(DATAGRAM) else "no link is a datagram link"
