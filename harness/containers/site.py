"""What faults ask of a deployment: `harness.containers.deployment` is one, and tests have another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from docker.errors import DockerException

from harness.containers.links import Toxic
from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.host.control import Clocks, Counters, FromHarness, LinkCounters
from nemesis.plan import Effect

GONE: Final = (DeployError, DockerException, TimeoutError)  # What a container that is gone, or does not answer, raises.
PAUSED: Final = "paused"
SETTLED_S: Final = 5.0  # What was healed answers within that, or is left to those who watch the deployment.


class Control(Protocol):
    """The harness's end of a node's control channel."""

    life: int
    lost_records: int
    is_foreign: bool  # Of a server that counts nothing for us.

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
    may_end: bool  # By itself, for what was done to it.

    @property
    def folder(self) -> str: ...

    @property
    def control(self) -> Control: ...


class Proxies(Protocol):
    """The server in the links. Its methods block."""

    def enable(self, name: str) -> None: ...
    def disable(self, name: str) -> None: ...
    def add_toxic(self, name: str, toxic: Toxic) -> None: ...
    def remove_toxic(self, name: str, toxic_name: str) -> None: ...


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
    async def start(self, node: NodeId) -> None: ...
    async def pause(self, node: NodeId) -> None: ...
    async def unpause(self, node: NodeId) -> None: ...
    async def put(self, node: NodeId, path: str, content: bytes) -> None: ...


# What all clients together have sent to a node and received from it; a closed or refused connection is one of theirs.
ClientTraffic = Callable[[NodeId], LinkCounters]


class Struck(Protocol):
    """One step at work."""

    async def begin(self) -> None:
        """Bring it about. Raises one of GONE if it cannot."""

    async def end(self) -> None:
        """Undo it, also if it was brought about in part only, and if a container is gone. Once more does nothing."""

    async def effect(self) -> Effect:
        """What it did so far."""


class Holds:
    """What several steps want of one thing at a time: it is done for the first, and undone after the last."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def take(self, what: str, where: str) -> bool:
        """Is this the first that wants it?"""
        count = self._counts.get((what, where), 0)
        self._counts[what, where] = count + 1
        return count == 0

    def drop(self, what: str, where: str) -> bool:
        """Was this the last that wanted it?"""
        count = self._counts.get((what, where), 0)
        self._counts[what, where] = max(0, count - 1)
        return count == 1

    def has(self, what: str, where: str) -> bool:
        """Does anybody want it?"""
        return self._counts.get((what, where), 0) > 0


def listed(names: Sequence[str]) -> str:
    """Names in a note, the first few of many."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
