"""The path of one operation to one of several servers, any of which may be asked; and its outcome.

Theory of operation.
1. An operation sends at most one request that writes, and sends it once. Until that request is handed to the connection
   every outcome is `fail`. After that only an answer counts, or an error that the server documents as without effect.
2. After an error a client closes the connection, so that nothing more of the operation is sent, and the next operation
   begins with another server. So it does after some operations without an error: else all clients would be with the
   servers that were never struck, and later faults of the others would disturb nothing.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from harness.core.machine import NodeId
from harness.core.seams import Address, Completion, Doors, Invocation

_SECOND_NS: Final = 1_000_000_000
_STAY: Final = 32  # Operations on one connection.
_DIALS: Final = 3  # One attempt to connect gets this fraction (1 / n) of an operation's time.
_ATTEMPTS: Final = 10  # One attempt of `in_time` gets this fraction of its time.
_PAUSE_S: Final = 0.1


class Refused(Exception):
    """A server answered with an error. `is_definite`: a request that writes has changed nothing, and never will."""

    def __init__(self, reason: str, *, is_definite: bool = False) -> None:
        super().__init__(reason)
        self.is_definite = is_definite


class Broken(OSError):
    """The connection could not be opened, or has ended."""


class Line(Protocol):
    """A connection to one server."""

    async def connected(self, within_s: float) -> None:
        """Return when the connection stands. Raises Broken if it does not in time; then nothing was sent."""

    async def close(self) -> None:
        """End the connection. Raises nothing."""


L = TypeVar("L", bound=Line)
T = TypeVar("T")


@dataclass(slots=True)
class Progress:
    """The progress of an operation, which decides its outcome."""

    has_sent_write: bool = False
    node: NodeId | None = None


class ServerClient(ABC, Generic[L]):
    """A process's connection to one server: one of `nodes`, by default all, or the one to which such a node leads."""

    def __init__(self, process: int, doors: Doors, nodes: Sequence[NodeId] = ()) -> None:
        self._doors, self._nodes = doors, nodes or sorted(doors)
        self._turn = process
        self._line: L | None = None
        self._server: NodeId | None = None  # The server at the other end of the line.
        self._asked = 0  # Operations on this connection.

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of an operation, carried out once within that time."""
        progress, within_s = Progress(), timeout_ns / _SECOND_NS
        if self._asked == _STAY:
            await self.close()
        self._asked += 1
        try:
            async with asyncio.timeout(within_s):
                line = await self._connected(progress, within_s / _DIALS)
                done = await self._carry_out(line, invocation, progress)
                return msgspec.structs.replace(done, node=progress.node)
        except (Refused, OSError) as error:  # These include time-outs.
            await self.close()
            is_sure = isinstance(error, Refused) and error.is_definite
            is_open = progress.has_sent_write and not is_sure
            reason = str(error).strip() or "no answer in time"
            return Completion(outcome="info" if is_open else "fail", error=reason, node=progress.node)

    async def close(self) -> None:
        """Close the connection; the next operation begins with another server."""
        line, self._line, self._asked = self._line, None, 0
        if line is not None:
            self._turn += 1
            await line.close()

    async def _connected(self, progress: Progress, within_s: float) -> L:
        """The open connection, or a new one to the first server that accepts one. Raises Broken."""
        reason = "no node"
        for _ in self._nodes:
            progress.node = self._nodes[self._turn % len(self._nodes)]
            try:
                if self._line is None:
                    self._server = await self._server_by(progress.node, within_s)
                    self._line = self._dial(self._doors[self._server])
                progress.node = self._server
                await self._line.connected(within_s)
            except Broken as error:
                reason = f"{progress.node}: {error}"
                self._turn += self._line is None
                await self.close()
            else:
                return self._line
        raise Broken(reason)

    async def _server_by(self, node: NodeId, within_s: float) -> NodeId:
        """The server to which that node leads: itself. Raises Broken."""
        return node

    @abstractmethod
    def _dial(self, address: Address) -> L:
        """A connection to the server at that address, which need not stand yet."""

    @abstractmethod
    async def _carry_out(self, line: L, invocation: Invocation, progress: Progress) -> Completion:
        """The completion of an operation. Raises Refused, OSError."""


async def in_time(attempt: Callable[[], Awaitable[T]], within_s: float, what: str) -> T:
    """The result of `attempt`, which is repeated until it raises neither Refused nor Broken. Raises OSError."""
    reason = "no answer"
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(within_s / _ATTEMPTS):
                        try:
                            return await attempt()
                        except (Refused, Broken) as error:
                            reason = str(error)
                await asyncio.sleep(_PAUSE_S)
    raise OSError(f"{what}: {reason}")
