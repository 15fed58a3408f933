"""The connections of the server: each brings one request within a time, and takes its response, or is closed.

Whoever reaches the port can open connections, without the token. Those that wait for their request are cheap, and there
is a limit: a new one takes the place of the one that waits longest, so that a client which sends its request at once is
served however many others wait.
"""

from asyncio import AbstractEventLoop, BaseTransport, TimerHandle
from typing import Any, Final

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

REQUEST_S: Final = 10.0  # The time for a whole request, from the opening of its connection.
WRITE_S: Final = 60.0  # The time for the client to take what was written, some 64 KiB.
HEAD_MAX: Final = 8 << 10  # The most bytes of a request.
WAITING_MAX: Final = 2048  # The most connections that wait for their request.
PENDING_MAX: Final = 1024  # The most connections in the kernel's queue: fewer, as they are accepted all at once.


class Waiting:
    """The connections of one server that wait for their request."""

    def __init__(self, limit: int = WAITING_MAX) -> None:
        self._connections: dict[Connection, None] = {}  # The oldest first.
        self._limit = limit

    def add(self, connection: "Connection") -> None:
        """Add a connection; beyond the limit, the one that waits longest is closed."""
        self._connections[connection] = None
        if len(self._connections) > self._limit:
            next(iter(self._connections)).abort()

    def remove(self, connection: "Connection") -> None:
        """Remove a connection, if it is there."""
        self._connections.pop(connection, None)


class Connection(H11Protocol):
    """A connection for one request: the server closes it after the response."""

    def __init__(
        self,
        waiting: Waiting,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting = waiting
        self._timer: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin to wait for the request."""
        super().connection_made(transport)  # type: ignore[arg-type]  # That of a stream.
        self._abort_after(REQUEST_S)
        self._waiting.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End, whatever the reason."""
        self._waiting.remove(self)
        self._abort_after(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of the request; what follows it is neither answered nor kept."""
        if not self._has_request():
            super().data_received(data)
            if self._has_request():
                self._waiting.remove(self)
                self._abort_after(None)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was written."""
        super().pause_writing()
        self._abort_after(WRITE_S)

    def resume_writing(self) -> None:
        """Go on: the client has taken most of it."""
        super().resume_writing()
        self._abort_after(WRITE_S if self.cycle.response_complete else None)

    def on_response_complete(self) -> None:
        """Begin to wait for the client to take the rest."""
        super().on_response_complete()
        self._abort_after(WRITE_S)

    def abort(self) -> None:
        """Close the connection at once, whatever is left to write."""
        self._waiting.remove(self)
        self.transport.abort()

    def _has_request(self) -> bool:
        return self.cycle is not None

    def _abort_after(self, seconds: float | None) -> None:
        """Abort the connection after that time, in place of an earlier one; None: never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.abort)
