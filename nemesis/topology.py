"""The possible targets of faults: the nodes of a cluster with their roles, its links, its failpoints."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import msgspec

from nemesis.plan import FaultName

CLIENT = "client"  # The address, and the role, of all clients together.
SUBSCRIBER = "subscriber"
FIFO = "fifo"
DATAGRAM = "datagram"
DIRECT = "direct"  # Connections between servers without a proxy: only packets can be stopped there.
MEMBERSHIP = "a change of members"
UPGRADES = "an upgrade from these options"
ENOUGH = 3  # If a role has fewer nodes, a single link between them may carry no traffic for a while.


class Topology(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The cluster as fault packages see it. A link exists if its direction was declared."""

    nodes: tuple[tuple[str, str], ...]  # Each node's id and role.
    links: Mapping[
        tuple[str, str], str
    ]  # From role, to role: "fifo", "datagram" or "direct". Clients have the role "client".
    points: tuple[str, ...] = ()
    point_roles: Mapping[str, str] = {}  # The role of the nodes that reach a failpoint, where one is declared.
    clockless: tuple[str, ...] = ()  # Nodes that have no clock of their own, or do not decide by it.
    procedures: tuple[str, ...] = ()  # Those that the cluster declares: MEMBERSHIP, UPGRADES.

    @cached_property
    def role_of(self) -> Mapping[str, str]:
        """The role of each node, and of the clients."""
        return MappingProxyType({**dict(self.nodes), CLIENT: CLIENT})

    def ids(self) -> tuple[str, ...]:
        """All nodes, in order."""
        return tuple(node for node, _ in self.nodes)

    def roles(self) -> tuple[str, ...]:
        """The roles that occur, each once, in order of appearance."""
        return tuple(dict.fromkeys(role for _, role in self.nodes))

    def of_role(self, role: str) -> tuple[str, ...]:
        """The nodes of that role; ("client",) for the clients."""
        return (CLIENT,) if role == CLIENT else tuple(node for node, its_role in self.nodes if its_role == role)

    def reaching(self, point: str) -> tuple[str, ...]:
        """The nodes that may reach a failpoint."""
        role = self.point_roles.get(point)
        return self.ids() if role is None else self.of_role(role)

    def servers(self) -> tuple[str, ...]:
        """The servers: all nodes except subscribers."""
        return tuple(node for node, role in self.nodes if role != SUBSCRIBER)

    def largest_role(self) -> tuple[str, ...]:
        """The nodes of the servers' role with most nodes; of equal roles the first."""
        roles = [role for role in self.roles() if role != SUBSCRIBER] or list(self.roles())
        return max((self.of_role(role) for role in roles), key=len)

    def kind(self, source: str, target: str) -> str | None:
        """The kind of link from source to target, or None if there is none."""
        roles = self.role_of
        if source == target or source not in roles or target not in roles:
            return None
        return self.links.get((roles[source], roles[target]))

    def existing(self, pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """The targets "source>target" for those of the pairs that are linked, each once."""
        linked = (f"{source}>{target}" for source, target in pairs if self.kind(source, target) is not None)
        return tuple(dict.fromkeys(linked))

    def all_links(self, kind: str | None = None) -> tuple[str, ...]:
        """All links of that kind; None: of any kind."""
        ends = (*self.ids(), CLIENT)
        pairs = [(source, target) for source in ends for target in ends]
        return self.existing([pair for pair in pairs if kind is None or self.kind(*pair) == kind])


def ends(link: str) -> tuple[str, str]:
    """The source and the target of a link "n1>n2"; two empty strings for anything else."""
    source, arrow, target = link.partition(">")
    return (source, target) if arrow and source and target else ("", "")


class Strike(msgspec.Struct, frozen=True, kw_only=True):
    """A fault as a package drew it, without a time."""

    fault: FaultName
    targets: tuple[str, ...]
    args: dict[str, int | str] = {}
    # Perhaps no node can answer meanwhile: the fault must be short, and alone.
    is_total: bool = False
