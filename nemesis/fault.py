"""Declarations: what a fault needs, does and hides, and what users see of it.

A *fault* is what one step of a plan does to nodes or links; both runtimes carry it out by its name. A *package* is a
family of faults with one draw. Each file of nemesis/faults declares one package, and the faults that it introduces.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.plan import FaultName
from nemesis.topology import Strike, Topology

MS: Final = 1_000_000
HOUR_NS: Final = 3600 * 1000 * MS


class Targets(Enum):
    """What a fault strikes, in the words of the page of faults."""

    NODES = "nodes"
    CLOCKS = "nodes with a clock of their own"
    LINKS = "links"
    CONNECTIONS = "links that are connections"
    DATAGRAMS = "datagram links"

    @property
    def are_links(self) -> bool:
        """True for links of any kind."""
        return self not in (Targets.NODES, Targets.CLOCKS)


class Range(msgspec.Struct, frozen=True):
    """Integers from `low` to `high`."""

    low: int
    high: int


Allowed = Range | tuple[str, ...]  # Or one of these names.
POINT: Final[Mapping[str, Allowed]] = {"point": ()}  # The names of failpoints depend on the cluster.


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: its arguments, its targets, and what keeps it from having an effect."""

    name: FaultName
    does: str  # Until its step ends.
    targets: Targets
    required: Mapping[str, Allowed] = {}
    optional: Mapping[str, Allowed] = {}
    needs_one: bool = False  # Of the optional arguments.
    is_silencing: bool = False  # Its targets carry or handle no messages, which hides what others do to messages there.
    needs_messages: bool = False  # It slows the handling of messages: without any it has no effect.
    is_prepared: bool = False  # When a server is started: so attached servers cannot have it.
    beyond: Mapping[str, str] = {}  # The runtimes that cannot do it, and the reason.


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A family of faults. `draw` returns one of them, or None if its draw does not exist in that topology.

    Users choose it by its name, and reports count under it. docs/faults.md quotes the texts, and the beginning of the
    docstring of `draw`.
    """

    name: str
    about: str | None  # The docstring of its file.
    faults: tuple[Fault, ...]  # All that `draw` uses.
    draw: Callable[[Topology, Stream], Strike | None]
    unfit: Callable[[Topology], str | None] = lambda topology: None if topology.nodes else "there is no node"
    excuse: Excuse = Excuse.DELAYS
    probe: str  # The measure of its effect.
    heals: str
    colour: str  # Of its bands in reports; chosen so that colour-blind readers can distinguish neighbours.
    is_prepared: bool = False  # Even if its faults are not: they lose what only our own servers can lose.
    is_last: bool = False  # Nothing heals it: it strikes once, after all others.

    @property
    def is_attachable(self) -> bool:
        """True if it can strike servers that somebody else started."""
        return not self.is_prepared and not any(fault.is_prepared for fault in self.faults)

    @property
    def takes_down(self) -> bool:
        """True if the nodes that it strikes stand still while it is in force."""
        return all(fault.is_silencing and not fault.targets.are_links for fault in self.faults)
