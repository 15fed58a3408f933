"""The seams between a test and what carries it out. Nobody sleeps but by `Clock`; nobody calls but by `Connection`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol, TypeGuard

import msgspec

from harness.core.generator import Generator
from harness.core.machine import Delivery, Links, Machine, Message, NodeId, Settings
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.record import Json, MicroOp, Outcome


class CallFailed(Exception):
    """A call had no answer. `is_definite`: the request certainly never reached a machine that could act on it."""

    def __init__(self, reason: str, *, is_definite: bool) -> None:
        super().__init__(reason)
        self.is_definite = is_definite


class Clock(Protocol):
    """The runtime's time: virtual in the simulation, the wall's in containers."""

    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""

    async def sleep_ns(self, duration_ns: int) -> None:
        """Return when that much time has passed."""


class Connection(Protocol):
    """One client's way to the nodes."""

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        """The answer to `message`. Raises CallFailed when the link breaks or the time is over."""

    async def close(self) -> None:
        """Give up all calls and links."""


class Network(Protocol):
    """Makes connections; each client process has one of its own, under its own address."""

    def connect(self, address: str) -> Connection: ...


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """What a generator asks a client process to do. A transaction has `mops`, anything else has `value`."""

    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended. `fail` only if it certainly did not happen and will not; what is unclear is `info`."""

    outcome: Outcome
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None
    error: str | None = None
    node: str | None = None
    txn: int | None = None
    start_ts: int | None = None
    read_ts: int | None = None
    commit_ts: int | None = None
    epoch: int | None = None


class Client(Protocol):
    """Speaks to the system for one process. It raises nothing: CallFailed becomes an outcome."""

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion: ...


class Node(msgspec.Struct, frozen=True):
    """A node of a cluster. `role` is what faults are aimed at: coordinator, data, subscriber, or the cluster's own."""

    id: NodeId
    role: str


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask of the system: `load` under faults, then `final` after healing, until it is exhausted.

    `types` are the kinds of operation that must have succeeded for the run to mean something. `checks` names the
    checkers that can judge the history. `promises` is what a system promises by offering the workload at all.
    """

    name: str
    load: Generator
    final: Generator
    types: tuple[str, ...]
    checks: tuple[str, ...]
    promises: tuple[Promise, ...] = ()


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A number of the cluster that each seed draws from [low, high]."""

    name: str
    low: int
    high: int
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may choose about the cluster: one of `values`, of which the first is the default."""

    name: str
    values: tuple[str, ...]
    text: str


class Cluster(Protocol):
    """A system under test, declared as data. Each is one of two kinds: a `MachineCluster` or a `ServiceCluster`."""

    name: str
    summary: str
    nodes: tuple[Node, ...]
    links: Links
    promises: tuple[Promise, ...]
    stream: StreamContract | None
    bugs: Mapping[str, str]  # Name of a planted bug -> what it does.
    parameters: tuple[Parameter, ...]
    options: tuple[Option, ...]
    points: tuple[str, ...]  # Failpoints, in the words of `Context.point`.
    goals: tuple[str, ...]  # `sometimes` goals.
    faults: tuple[str, ...]  # The packages of nemesis/ that make sense here.
    workloads: tuple[str, ...]  # The first is the default.
    settle_ns: int  # After healing, within this time everything must be available and delivered.

    def bounds(self, settings: Settings) -> Bounds:
        """The numbers by which a run with those settings is judged."""

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """Those of `promises` that hold with those settings."""


class MachineCluster(Cluster, Protocol):
    """A cluster whose nodes are sans-IO machines of this project: it runs in the simulation and in containers."""

    def machine(self, node: NodeId) -> Machine:
        """A new machine for that node, before `recover`."""

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""


class Address(NamedTuple):
    """Where a node can be dialled."""

    host: str
    port: int


Doors = Mapping[NodeId, Address]  # Where one client, subscriber or node dials the others: through proxies.
Deliver = Callable[[Delivery], Awaitable[None]]  # Returns when the event is recorded, and the next may be handled.


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The software of one node, in a container started from an image.

    `hello` is what probes send: the server must answer with at least a byte. Empty: it speaks first. `folder` is where
    its data is; the container keeps it when its processes are killed. Where neither the engine nor a registry has the
    image, one is built from `debian_packages`: then `command` is run in it as it stands. `capabilities` are those of
    Linux that it needs beyond the ones that every such container has: see `harness.containers.confinement`.
    """

    image: str = ""  # One of seamark's own (see seamark images), or any that the engine has or can pull.
    debian_packages: tuple[str, ...] = ()
    port: int
    hello: bytes
    folder: str
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    memory_mb: int = 512
    capabilities: tuple[str, ...] = ()  # "IPC_LOCK", ...


class ServiceClient(Client, Protocol):
    """A client that holds connections of its own."""

    async def close(self) -> None:
        """Give them up. Raises nothing."""


class Subscriber(Protocol):
    """Reads the change stream of a service. What it must still know after a crash, it keeps in `kept`."""

    async def receive(self, deliver: Deliver) -> None:
        """One session, until the connection ends, or a crash cancels it. Raises OSError if there is none to be had.

        The session number of what it delivers is set by who calls.
        """


class ServiceCluster(Cluster, Protocol):
    """A cluster of servers as others wrote them: it runs in containers only. `harness.core.system` makes one.

    `dials` are pairs of roles: who opens connections to whom. Subscribers are nodes too (role "subscriber"), but live
    in the harness.
    """

    dials: tuple[tuple[str, str], ...]

    def service(self, node: NodeId, peers: Doors, settings: Settings, /) -> Service:
        """What to start for that node; `peers` are those that it dials."""

    async def prepare(self, doors: Doors, settings: Settings, /) -> None:
        """Make what clients and subscribers need, once all nodes answer: tables, slots."""

    def client(self, process: int, doors: Doors, settings: Settings, /) -> ServiceClient:
        """A client for that process."""

    def subscriber(self, node: NodeId, doors: Doors, settings: Settings, kept: dict[str, object], /) -> Subscriber:
        """That subscriber, as it starts with what it has kept."""

    async def fail_over(self, dead: NodeId, doors: Doors, settings: Settings, /) -> NodeId:
        """Let another node take the place of one that is down for good; which one. Raises OSError if it does not."""


def is_of_machines(cluster: Cluster) -> TypeGuard[MachineCluster]:
    """Which of the two kinds is it?"""
    return hasattr(cluster, "machine")


def is_of_services(cluster: Cluster) -> TypeGuard[ServiceCluster]:
    """Which of the two kinds is it?"""
    return hasattr(cluster, "service")
