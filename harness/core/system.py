"""A cluster of third-party servers, declared by composition: supply the parts that yours has; the rest has defaults."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from types import MappingProxyType
from typing import Any

from harness.core.errors import ScenarioError
from harness.core.machine import Links, NodeId, Settings
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.seams import (
    FAULTS,
    SETTLE_NS,
    SUMMARY,
    WORKLOADS,
    Doors,
    Membership,
    Node,
    Option,
    Parameter,
    Service,
    ServiceClient,
    Subscriber,
)

SERVER = "server"
SUBSCRIBER = "subscriber"
CLIENT = "client"
SECOND = 1_000_000_000


async def nothing_to_prepare(*_: object) -> None:
    """Do nothing: clients create what they need."""


def _no_subscriber(node: NodeId, *_: object) -> Subscriber:
    raise ScenarioError(f"{node} has the role subscriber, but the system has no change stream: give it one, or none")


async def _nobody_takes_over(dead: NodeId, *_: object) -> NodeId:
    raise OSError(f"no other node can replace {dead}")


def _always(*_: object) -> bool:
    return True


@dataclass(kw_only=True)
class System:
    """A `harness.core.seams.ServiceCluster`, whose methods document the callables here.

    The default is one server n1, to which clients connect. `dials` defaults to clients and subscribers connecting to
    all other nodes; servers without doors between them have direct links. Pairs in `idle` have no traffic that a fault
    could disturb, so no fault is drawn for them. With `membership` nodes can leave and join. `holds` decides which
    promises hold with given settings. `checks` are modules, or files beside the system's own, with checks that only
    this system needs.
    """

    name: str
    service: Callable[[NodeId, Doors, Settings], Service]
    client: Callable[[int, Doors, Settings], ServiceClient]
    subscriber: Callable[[NodeId, Doors, Settings, dict[str, object]], Subscriber] = _no_subscriber
    prepare: Callable[[Doors, Settings], Coroutine[Any, Any, None]] = nothing_to_prepare
    fail_over: Callable[[NodeId, Doors, Settings], Coroutine[Any, Any, NodeId]] = _nobody_takes_over
    membership: Membership | None = None
    holds: Callable[[Promise, Settings], bool] = _always
    summary: str = SUMMARY
    nodes: tuple[Node, ...] = (Node(NodeId("n1"), SERVER),)
    dials: tuple[tuple[str, str], ...] = ()
    idle: tuple[tuple[str, str], ...] = ()
    promises: tuple[Promise, ...] = ()
    stream: StreamContract | None = None
    checks: tuple[str, ...] = ()
    naming: Naming = field(default_factory=Naming)
    bugs: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    faults: tuple[str, ...] = FAULTS
    workloads: tuple[str, ...] = WORKLOADS
    settle_ns: int = SETTLE_NS
    limits: Bounds = field(default_factory=Bounds)
    points: tuple[str, ...] = field(default=(), init=False)
    goals: tuple[str, ...] = field(default=(), init=False)
    links: Links = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        roles = tuple(dict.fromkeys(node.role for node in self.nodes))
        outside = (CLIENT, *(role for role in roles if role == SUBSCRIBER))
        every = tuple((source, target) for source in outside for target in roles if target != SUBSCRIBER)
        self.dials = self.dials or every
        both_ways = (pair for source, target in self.dials for pair in ((source, target), (target, source)))
        links = dict.fromkeys(both_ways, "fifo")
        servers = [node.role for node in self.nodes if node.role != SUBSCRIBER]
        # Servers without a door between them know each other by name.
        links |= {pair: "direct" for pair in permutations(servers, 2) if pair not in links}
        self.links = MappingProxyType(links)

    def bounds(self, settings: Settings) -> Bounds:
        """The same limits for all settings."""
        return self.limits

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """The promises that hold with those settings."""
        return tuple(promise for promise in self.promises if self.holds(promise, settings))
