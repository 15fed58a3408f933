"""Selection of the nodes that a fault strikes together: one, a minority, a majority, all, or all of a role."""

from harness.core.draw import Stream
from nemesis.topology import SUBSCRIBER, Topology

SELECTIONS = ("one", "one", "one", "minority", "majority", "all", "role")  # One node reveals most: three times.


def draw_nodes(topology: Topology, stream: Stream) -> tuple[tuple[str, ...], bool]:
    """The nodes, and True if they are so many of a role that nobody may be left to answer.

    Minority, majority and all are of the largest role of servers, where quorums are counted.
    """
    members = topology.largest_role()
    count = len(members)
    match stream.choice(SELECTIONS):
        case "minority" if count >= 3:
            return _some(members, (count - 1) // 2, stream), False
        case "majority" if count >= 3:
            return _some(members, count // 2 + 1, stream), True
        case "all":
            return members, True
        case "role":
            role = stream.choice(topology.roles())
            nodes = topology.of_role(role)
            return nodes, role != SUBSCRIBER and len(nodes) > 1
        case _:
            return (stream.choice(topology.ids()),), False


def _some(members: tuple[str, ...], count: int, stream: Stream) -> tuple[str, ...]:
    """`count` members at random, in their usual order."""
    chosen = stream.sample(members, count)
    return tuple(member for member in members if member in chosen)
