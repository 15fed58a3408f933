"""Slow and faulty links between two roles."""

from harness.core.draw import Stream
from nemesis.topology import DATAGRAM, ENOUGH, Strike, Topology

MS = 1_000_000


def draw_slow_link(topology: Topology, stream: Stream) -> Strike:
    """Links take longer: all between two roles, or in one direction those of one node to its like, or a single one.

    Protocols are rarely wrong when everything is slow alike; what only one node hears late tells more.
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
    latency_ns = stream.between(20, 250) * MS
    args: dict[str, int | str] = {"latency_ns": latency_ns, "jitter_ns": latency_ns // 2}
    links = topology.existing(pairs)
    return Strike(fault="delay", targets=links, args=args)


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
