"""Seats for responses that take long: a response has its seat before it begins, and leaves it at its end."""

from collections.abc import AsyncIterable, Iterable, Mapping
from threading import Lock

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Seats:
    """That many seats. Safe to use from several threads."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = Lock()

    def take(self) -> bool:
        """Take a seat; False if none is free."""
        with self._lock:
            is_taken = self._free > 0
            self._free -= is_taken
            return is_taken

    def leave(self) -> None:
        """Make a taken seat free."""
        with self._lock:
            self._free += 1


class SeatedResponse(StreamingResponse):
    """A stream for which a seat was taken: the seat is free once the stream has ended, or its client has gone."""

    def __init__(
        self,
        seats: Seats,
        content: AsyncIterable[str] | Iterable[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._seats = seats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seats.leave()
