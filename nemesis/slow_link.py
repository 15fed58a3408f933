"""Slow and faulty links between two roles."""

from harness.core.draw import Stream
from nemesis.overlap import ends
from nemesis.topology import CLIENT, DATAGRAM, ENOUGH, FIFO, Strike, Topology

MS = 1_000_000


def draw_slow_link(topology: Topology, stream: Stream) -> Strike:
    """A strike that slows some links."""
    links = _some_links(topology, stream)
    latency_ns = stream.between(20, 250) * MS
    return Strike(fault="delay", targets=links, args={"latency_ns": latency_ns, "jitter_ns": latency_ns // 2})


def draw_flaky_link(topology: Topology, stream: Stream) -> Strike:
    """A strike that closes connections again and again, after a few messages: those of one node to its role, or all to
    clients.

    Between servers only one node's: if all connections break all the time, no work is done, and nothing is tested.
    """
    members = topology.largest_role()
    near, far = ((stream.choice(members),), members) if stream.chance(2, 3) else (members, (CLIENT,))
    links = topology.existing([pair for one in near for other in far for pair in ((one, other), (other, one))])
    connections = tuple(link for link in links if topology.kind(*ends(link)) == FIFO)
    return Strike(
        fault="limit-data",
        targets=connections or topology.all_links(FIFO),
        args={"bytes": stream.between(200, 1500)},
    )


def draw_datagrams(topology: Topology, stream: Stream) -> Strike:
    """A strike on all datagram links: some messages are lost, duplicated or reordered."""
    fault = stream.choice(("drop", "duplicate", "reorder"))
    return Strike(fault=fault, targets=topology.all_links(DATAGRAM), args={"permille": stream.between(20, 300)})


def unfit_slow_link(topology: Topology) -> str | None:
    """The reason why there is no link to slow down, or None."""
    return None if topology.all_links() else "no link is declared"


def unfit_flaky_link(topology: Topology) -> str | None:
    """The reason why there is no connection to close, or None."""
    return None if topology.all_links(FIFO) else "no link is a connection"


def unfit_datagrams(topology: Topology) -> str | None:
    """The reason why there is no datagram to lose, or None."""
    return None if topology.all_links(DATAGRAM) else "no link is a datagram link"


def _some_links(topology: Topology, stream: Stream) -> tuple[str, ...]:
    """All links between two roles, or, in one direction, those of one node within its role, or a single one.

    Protocols rarely fail when everything is equally slow; delays at a single node reveal more.
    """
    members = topology.largest_role()
    form = stream.choice(("roles", "one-node", "one-node", "one-link")) if len(members) >= ENOUGH else "roles"
    match form:
        case "one-node":
            chosen = stream.choice(members)
            pairs = [(chosen, other) for other in members if other != chosen]
            pairs = pairs if stream.chance(1, 2) else [(target, source) for source, target in pairs]
        case "one-link":
            near, far = stream.sample(members, 2)
            pairs = [(near, far)]
        case _:
            source, target = stream.choice(tuple(topology.links))
            one, other_role = topology.of_role(source), topology.of_role(target)
            pairs = [pair for a in one for b in other_role for pair in ((a, b), (b, a))]
    return topology.existing(pairs)
