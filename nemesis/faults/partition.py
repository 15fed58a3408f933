"""Partitions: links are cut or stalled.

A cut closes connections and refuses new ones; both ends learn of it, at different times. A stall lets no message
through, notifies no node, and loses nothing on a connection.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.topology import CLIENT, Strike, Topology

CUT = Fault(name="cut", does="connections close, and new ones are refused", targets=Targets.LINKS, is_silencing=True)
STALL = Fault(
    name="stall",
    does="messages wait, no message is lost, connections stay open",
    targets=Targets.LINKS,
    is_silencing=True,
)

HALVED = (2, 3)  # The share of divisions into halves.

# Pairs (source, target): messages of the source do not reach the target. The functions below are pure and keep the
# order of the nodes; shuffle these first for randomness. Source: jepsen.nemesis, for the idea and the forms.
Grudge = tuple[tuple[str, str], ...]
Draft = Callable[[Topology, Stream], Strike | None]


def complete_grudge(groups: Sequence[Sequence[str]]) -> Grudge:
    """A grudge that separates each group from all others."""
    return tuple(pair for group in groups for other in groups if group is not other for pair in product(group, other))


def one_way_grudge(silent: Sequence[str], deaf: Sequence[str]) -> Grudge:
    """A grudge from `silent` to `deaf`. The other direction works."""
    return tuple(product(silent, deaf))


def halves(nodes: Sequence[str]) -> Grudge:
    """A grudge between two groups of nearly equal size, the first the smaller."""
    middle = len(nodes) // 2
    return complete_grudge((nodes[:middle], nodes[middle:]))


def one_alone(nodes: Sequence[str]) -> Grudge:
    """A grudge between the first node and all others."""
    return complete_grudge((nodes[:1], nodes[1:]))


def bridge(nodes: Sequence[str]) -> Grudge:
    """A grudge between two groups, both of which reach the first node."""
    return halves(nodes[1:])


def majority_ring(nodes: Sequence[str]) -> Grudge:
    """A grudge under which each node hears a majority, itself included, and no two hear the same majority.

    The nodes form a ring; each hears its neighbours. With fewer than three nodes none is cut off.
    """
    count = len(nodes)
    majority = count // 2 + 1
    before = majority // 2
    pairs = []
    for place, target in enumerate(nodes):
        heard = [(place - before + step) % count for step in range(majority)]
        pairs += [(nodes[other], target) for other in range(count) if other not in heard]
    return tuple(pairs)


def draw_partition(topology: Topology, stream: Stream) -> Strike | None:
    """One of six forms: halves, one node alone, a ring in which each node hears another majority, a bridge of one node
    between two halves, one direction of one node, between two roles. Clients are on one side, or reach both.

    None if the drawn form cuts no link of this topology.
    """
    form = stream.choice(tuple(FORMS))
    return FORMS[form](topology, stream)


def draw_division(topology: Topology, stream: Stream) -> Strike | None:
    """A complete division of the largest role: two sides that cannot reach each other. Twice in three times they are
    of equal size, or nearly, as nobody has a majority then. Each is as likely as any other of its size. Other servers
    are on a side, or reach both; clients and subscribers reach both.

    None if there are no links to cut. Source: Alquraan et al., "An Analysis of Network-Partitioning Failures in Cloud
    Systems", OSDI 2018: most of the failures studied came from complete partitions.
    """
    members = stream.shuffled(topology.largest_role())
    if len(members) < 2:
        return None
    half = len(members) // 2
    size = half if stream.chance(*HALVED) else stream.between(1, half)
    sides = [members[:size], members[size:]]
    for node in topology.servers():
        side = stream.below(3)
        if node not in members and side < len(sides):
            sides[side].append(node)
    return _strike(topology, stream, complete_grudge(sides))


def _halves(topology: Topology, stream: Stream) -> Strike | None:
    return _strike(topology, stream, halves(_with_clients(stream.shuffled(topology.ids()), stream)))


def _one(topology: Topology, stream: Stream) -> Strike | None:
    return _strike(topology, stream, one_alone(_with_clients(stream.shuffled(topology.ids()), stream)))


def _bridge(topology: Topology, stream: Stream) -> Strike | None:
    return _strike(topology, stream, bridge(stream.shuffled(topology.servers())))


def _majority_ring(topology: Topology, stream: Stream) -> Strike | None:
    return _strike(topology, stream, majority_ring(stream.shuffled(topology.servers())))


def _one_way(topology: Topology, stream: Stream) -> Strike | None:
    """A cut of all links to one node, or from it. Never a stall: a direction without traffic would not notice one.

    A node whose outgoing links are cut is of the largest role, whose nodes send to each other: a lone coordinator may
    have nothing more to send, so its messages would not be missed.
    """
    is_deaf = stream.chance(1, 2)
    chosen = stream.choice(topology.ids() if is_deaf else topology.largest_role())
    others = [node for node in topology.ids() if node != chosen]
    targets = topology.existing(one_way_grudge(others, [chosen]) if is_deaf else one_way_grudge([chosen], others))
    return Strike(fault="cut", targets=targets) if targets else None


def _between_roles(topology: Topology, stream: Stream) -> Strike | None:
    source, target = stream.choice(tuple(topology.links))
    one, other = topology.of_role(source), topology.of_role(target)
    grudge = (*one_way_grudge(one, other), *one_way_grudge(other, one))
    return _strike(topology, stream, grudge, is_total=CLIENT in (source, target))


def _with_clients(nodes: list[str], stream: Stream) -> list[str]:
    """The nodes with the clients beside the last one, on one side; in half of the cases without, on all sides."""
    return [*nodes, CLIENT] if stream.chance(1, 2) else nodes


def _strike(topology: Topology, stream: Stream, grudge: Grudge, *, is_total: bool = False) -> Strike | None:
    """A strike of links that are cut (connections close) or stalled (packets are dropped without notice)."""
    targets = topology.existing(grudge)
    fault = stream.choice((CUT.name, STALL.name))
    return Strike(fault=fault, targets=targets, is_total=is_total) if targets else None


FORMS: Mapping[str, Draft] = MappingProxyType(
    {
        "halves": _halves,
        "one": _one,
        "majority-ring": _majority_ring,
        "bridge": _bridge,
        "one-way": _one_way,
        "between-roles": _between_roles,
    }
)


PACKAGE = Package(
    name="partition",
    about=__doc__,
    faults=(CUT, STALL),
    draw=draw_partition,
    excuse=Excuse.LINKS,
    probe="connections closed, messages refused or lost; or messages held back.",
    heals="links carry messages again. Nodes that were cut off connect anew; messages held back by a stall arrive.",
    colour="#0072b2",
)
