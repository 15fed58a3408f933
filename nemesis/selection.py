"""Selection of the nodes that a fault strikes together: one, a minority, a majority, all, or all of a role."""

from harness.core.draw import Stream
from nemesis.topology import SUBSCRIBER, Topology

# A fault of one node reveals most, so it is drawn three times as often.
SELECTIONS = ("one", "one", "one", "minority", "majority", "all", "role")


def draw_nodes(topology: Topology, stream: Stream) -> tuple[tuple[str, ...], bool]:
    """The nodes; and True if they are so many of a role that perhaps no other can answer.

    Minority, majority and all are those of the servers' largest role, in which quorums are counted.
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
