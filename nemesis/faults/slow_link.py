"""Slow links: messages take longer, between two roles or at a single node.

Links take 20 to 250 ms longer, plus up to half of that. Messages of one connection never overtake.
"""

from harness.core.draw import Stream
from nemesis.fault import HOUR_NS, MS, Fault, Package, Range, Targets
from nemesis.topology import DIRECT, ENOUGH, Strike, Topology, ends

DELAY = Fault(
    name="delay",
    does="each message takes `latency_ns` longer, plus up to `jitter_ns`, without overtaking on a fifo link",
    targets=Targets.LINKS,
    required={"latency_ns": Range(0, HOUR_NS)},
    optional={"jitter_ns": Range(0, HOUR_NS)},
)


def draw_slow_link(topology: Topology, stream: Stream) -> Strike:
    """All links between two roles, both ways. Where a role has three or more nodes, three times in four something
    narrower: one node's links to its like, or from them, or a single link.
    """
    links = _some_links(topology, stream)
    latency_ns = stream.between(20, 250) * MS
    return Strike(fault="delay", targets=links, args={"latency_ns": latency_ns, "jitter_ns": latency_ns // 2})


def unfit_slow_link(topology: Topology) -> str | None:
    """The reason why there is no link to slow down, or None."""
    return None if any(kind != DIRECT for kind in topology.links.values()) else "no link is declared"


def _some_links(topology: Topology, stream: Stream) -> tuple[str, ...]:
    """All links between two roles, or, in one direction, those of one node within its role, or a single one."""
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
            source, target = stream.choice(tuple(pair for pair, kind in topology.links.items() if kind != DIRECT))
            one, other_role = topology.of_role(source), topology.of_role(target)
            pairs = [pair for a in one for b in other_role for pair in ((a, b), (b, a))]
    found = topology.existing(pairs)
    return tuple(link for link in found if topology.kind(*ends(link)) != DIRECT)


PACKAGE = Package(
    name="slow-link",
    about=__doc__,
    faults=(DELAY,),
    draw=draw_slow_link,
    unfit=unfit_slow_link,
    probe="messages delayed.",
    heals="links are as fast as before.",
    colour="#56b4e9",
)
