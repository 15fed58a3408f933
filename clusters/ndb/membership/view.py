"""A view: the members of the cluster. Every node acts on its installed view; a view of a higher number replaces it."""

from msgspec import Struct

from clusters.ndb.shape import DATA_NODES, FRAGMENTS, GROUPS, group_of, group_of_fragment
from harness.core.machine import NodeId


class Member(Struct, frozen=True, array_like=True):
    """A node in a view. `since` is the number of the view in which this life of it joined.

    A member that is not started takes part in transactions and epochs, but does not yet hold all data, nor all
    unacknowledged rows, and cannot restore them alone: with only this member the group counts as dead.
    """

    node: NodeId
    since: int
    is_started: bool = True
    life: int = 0  # The start of the process, in nanoseconds: distinguishes lives before any view.


class View(Struct, frozen=True, tag=True):
    """Members, oldest first: the first is the master. `generation` is the view with which the whole cluster started."""

    number: int
    generation: int
    members: tuple[Member, ...]

    @property
    def master(self) -> NodeId:
        """The oldest member: it leads checkpoints, changes of the view, and take-overs."""
        return self.members[0].node

    def nodes(self) -> tuple[NodeId, ...]:
        """All members, oldest first."""
        return tuple(member.node for member in self.members)

    def started(self) -> tuple[NodeId, ...]:
        """The members that hold all data."""
        return tuple(member.node for member in self.members if member.is_started)

    @property
    def joiner(self) -> Member | None:
        """The member that is not started, if there is one: nodes join one at a time."""
        return next((member for member in self.members if not member.is_started), None)

    def since(self, node: NodeId) -> int | None:
        """The view in which that node's life joined; None if it is not a member."""
        for member in self.members:
            if member.node == node:
                return member.since
        return None

    def begins(self, node: NodeId, life: int) -> bool:
        """True if this life of the node joins in this view."""
        return any((m.node, m.since, m.life) == (node, self.number, life) for m in self.members)

    def replicas(self, fragment: int) -> tuple[NodeId, ...]:
        """The nodes with a fragment: the primary, then its backups.

        A node that joined later never precedes an older one.
        """
        group = GROUPS[group_of_fragment(fragment)]
        turn = fragment // len(GROUPS) % len(group)
        preferred = group[turn:] + group[:turn]
        held = sorted((since, preferred.index(node)) for node in group if (since := self.since(node)) is not None)
        return tuple(preferred[place] for _, place in held)

    def chains(self) -> tuple[tuple[NodeId, ...], ...]:
        """The replicas of every fragment, by its number."""
        return tuple(self.replicas(fragment) for fragment in range(FRAGMENTS))

    def peer(self, node: NodeId) -> NodeId | None:
        """The other member of a node's group, if there is one."""
        return next(
            (other for other in GROUPS[group_of(node)] if other != node and self.since(other) is not None), None
        )


def has_every_group(nodes: tuple[NodeId, ...]) -> bool:
    """True if these nodes can serve all data."""
    return {group_of(node) for node in nodes} == set(range(len(GROUPS)))


def has_whole_group(nodes: tuple[NodeId, ...]) -> bool:
    """True if they include a whole node group: then no other nodes can serve all data."""
    return any(set(group) <= set(nodes) for group in GROUPS)


def by_rank(nodes: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The nodes in the cluster's fixed order."""
    return tuple(node for node in DATA_NODES if node in nodes)
