"""Declarations of faults: their arguments, targets and effects, the faults that they hide, and their texts for users.

A *fault* is what one step of a plan does to nodes or links; both runtimes carry it out by its name. A *package* is a
family of faults that are drawn together. Each file of nemesis/faults declares one package, and the faults that it
introduces.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.plan import FaultName, Step
from nemesis.topology import Strike, Topology

MS: Final = 1_000_000
HOUR_NS: Final = 3600 * 1000 * MS


class Targets(Enum):
    """The targets of a fault, in the words of the page of faults."""

    NODES = "nodes"
    CLOCKS = "nodes with separate clocks"
    LINKS = "links"
    CONNECTIONS = "links that are connections"
    PACKETS = "datagram links and direct links"
    CLIENTS = "links from clients to servers"

    @property
    def are_links(self) -> bool:
        """True for links of any kind."""
        return self not in (Targets.NODES, Targets.CLOCKS)


class Range(msgspec.Struct, frozen=True):
    """Integers from `low` to `high`."""

    low: int
    high: int


Allowed = Range | tuple[str, ...]  # In place of a range: the allowed names.
POINT: Final[Mapping[str, Allowed]] = {"point": ()}  # The names of failpoints depend on the cluster.


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: its arguments, its targets, and the conditions under which it has an effect."""

    name: FaultName
    does: str  # Until its step ends.
    targets: Targets
    required: Mapping[str, Allowed] = {}
    optional: Mapping[str, Allowed] = {}
    needs_one: bool = False  # Of the optional arguments.
    is_silencing: bool = False  # Its targets carry or handle no messages, which hides other faults of messages.
    needs_messages: bool = False  # It only slows the handling of messages.
    is_prepared: bool = False  # It is prepared when a server is started, so it cannot strike attached servers.
    procedure: str | None = None  # What the cluster must declare for it: one of `Topology.procedures`.
    beyond: Mapping[str, str] = {}  # The runtimes that cannot do it, each with the reason.


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A family of faults. `draw` returns one of them, or None if the drawn one does not exist in that topology.

    Users choose it by its name, and reports count under it. docs/faults.md quotes the texts, and the first paragraph of
    the docstring of `draw`.
    """

    name: str
    about: str | None  # The docstring of its file.
    faults: tuple[Fault, ...]  # All that `draw` uses.
    draw: Callable[[Topology, Stream], Strike | None]
    unfit: Callable[[Topology], str | None] = lambda topology: None if topology.nodes else "there is no node"
    excuse: Excuse = Excuse.DELAYS
    probe: str  # The measure of its effect.
    heals: str
    colour: str  # The colour of its bands in reports; colour-blind readers can distinguish neighbours.
    is_prepared: bool = False  # Or its faults lose what only our own servers can lose.
    least_ns: int = 0  # A shorter step has no effect, so none is drawn.
    is_last: bool = False  # Nothing heals it: it strikes once, after all others.
    former: str | None = None  # Its name in runs recorded by older versions.

    @property
    def is_attachable(self) -> bool:
        """True if it can strike servers that were started by someone else."""
        return not self.is_prepared and not any(fault.is_prepared for fault in self.faults)

    @property
    def takes_down(self) -> bool:
        """True if the nodes that it strikes stand still while it is in force."""
        return all(fault.is_silencing and not fault.targets.are_links for fault in self.faults)


def step_of(package: Package, strike: Strike, *, at_ns: int, until_ns: int) -> Step:
    """A strike that the package drew as a step from `at_ns` to `until_ns`, both since the start of the load."""
    return Step(
        fault=strike.fault,
        package=package.name,
        at_ns=at_ns,
        until_ns=until_ns,
        targets=strike.targets,
        args=strike.args,
    )
