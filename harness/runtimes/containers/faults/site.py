"""The interface of a deployment for faults: `containers.deployment` implements it, and tests have another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from docker.errors import DockerException

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.disks.power import Canaries
from harness.runtimes.containers.disks.rot import Rotten
from harness.runtimes.containers.links.late import Lateness
from harness.runtimes.containers.links.links import Toxic
from harness.runtimes.containers.links.queues import Held, Holding
from harness.runtimes.host.control import Clocks, Counters, FromHarness, LinkCounters
from nemesis.plan import Effect

GONE: Final = (DeployError, DockerException, TimeoutError)  # Raised for a container that is gone, or does not answer.
PAUSED: Final = "paused"
DOWN: Final = "down"  # A claim of each fault that keeps a node from running.
SETTLED_S: Final = 5.0  # A healed link or node should answer within this; else the deployment reports it.


class Control(Protocol):
    """The harness's end of a node's control channel."""

    life: int
    lost_records: int
    is_foreign: bool  # True for a server, which counts nothing for us.
    serves_after_full_disk: bool

    async def clocks(self) -> Clocks: ...
    async def counters(self) -> Counters: ...
    def total(self) -> Counters: ...
    async def ready(self, within_s: float) -> bool: ...
    async def probe(self, to: NodeId, timeout_s: float) -> str | None: ...
    def arm(self, point: str, reached: Callable[[], None]) -> int: ...
    def disarm(self, number: int) -> None: ...
    def release(self, number: int) -> None: ...
    def tell(self, message: FromHarness) -> None: ...


class Place(Protocol):
    """A node and its container."""

    is_down: bool
    may_end: bool  # True if a fault may make it end by itself.

    @property
    def folder(self) -> str: ...

    @property
    def control(self) -> Control: ...


class Proxies(Protocol):
    """The proxy server in the links. Its methods block."""

    def enable(self, name: str) -> None: ...
    def disable(self, name: str) -> None: ...
    def add_toxic(self, name: str, toxic: Toxic) -> None: ...
    def remove_toxic(self, name: str, toxic_name: str) -> None: ...


class Queue(Protocol):
    """Packets that are held up on one link."""

    async def held(self) -> Held: ...
    async def close(self) -> Held: ...


class Site(Protocol):
    """The deployment of one run."""

    @property
    def proxies(self) -> Proxies: ...
    @property
    def nodes(self) -> Mapping[NodeId, Place]: ...
    @property
    def client_ports(self) -> Mapping[NodeId, int]: ...
    def port_of(self, source: str, target: str) -> int: ...
    async def run_in(self, node: NodeId, command: list[str]) -> str: ...
    async def kill(self, node: NodeId) -> None: ...
    async def stop(self, node: NodeId) -> bool: ...
    async def start(self, node: NodeId) -> None: ...
    async def pause(self, node: NodeId) -> None: ...
    async def unpause(self, node: NodeId) -> None: ...
    async def put(self, node: NodeId, path: str, content: bytes) -> None: ...
    def lateness(self, link: str) -> Lateness | None: ...
    async def address_of(self, node: NodeId) -> str: ...
    async def filter_packets(self, node: NodeId, arguments: Sequence[str]) -> str: ...
    async def hold_packets(self, node: NodeId, number: int, holding: Holding) -> Queue: ...
    async def rot(self, node: NodeId, *, how: str, place: int) -> Rotten: ...
    def loses_power(self, node: NodeId) -> bool: ...
    async def fail_power(self, node: NodeId, *, is_torn: bool) -> None: ...
    async def canaries(self, node: NodeId) -> Canaries: ...


class Procedures(Protocol):
    """What a system declares how to do. All of them raise DeployError."""

    async def promote(self, dead: NodeId) -> NodeId: ...
    async def upgrade(self, node: NodeId) -> None: ...
    async def leave(self, node: NodeId, within_s: float) -> None: ...
    async def join(self, node: NodeId, within_s: float) -> None: ...
    async def members(self, beside: NodeId, within_s: float) -> frozenset[NodeId]: ...


# The counts between all clients and a node; a closed or refused connection is one of the clients'.
ClientTraffic = Callable[[NodeId], LinkCounters]


class Struck(Protocol):
    """One step in force."""

    async def begin(self) -> None:
        """Apply the step. Raises one of GONE if it cannot."""

    async def end(self) -> None:
        """Undo the step, even if only part of it was applied, or a container is gone. A repeated call does nothing."""

    async def effect(self) -> Effect:
        """The effect so far."""


class Holds:
    """Claims by several steps on one object: the first claim applies the action, and the last release undoes it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def take(self, what: str, where: str) -> bool:
        """Add a claim; returns True if it is the first."""
        count = self._counts.get((what, where), 0)
        self._counts[what, where] = count + 1
        return count == 0

    def drop(self, what: str, where: str) -> bool:
        """Release a claim; returns True if it was the last."""
        count = self._counts.get((what, where), 0)
        self._counts[what, where] = max(0, count - 1)
        return count == 1

    def has(self, what: str, where: str) -> bool:
        """True if any claim is held."""
        return self._counts.get((what, where), 0) > 0


def listed(names: Sequence[str]) -> str:
    """Names for a note; of many the first few."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
