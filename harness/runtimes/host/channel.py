"""The node's end of the control channel: listens, checks the token, and keeps the newest connection only."""

import asyncio
import hmac
from typing import Final, Protocol

from harness.core.machine import Message
from harness.runtimes.host.control import FROM_HARNESS, FromHarness, Open
from harness.runtimes.host.frames import CONTROL_MAX, HANDSHAKE_MAX, BadFrame, Splitter, decode_as, encode_frame

_OPEN_S: Final = 5.0  # The longest that a connection may stay without its first frame.


class Owner(Protocol):
    """The receiver of the harness's connections and orders."""

    def opened(self) -> None:
        """Handle a new connection of the harness, the first or a later one."""

    def commanded(self, message: FromHarness) -> None:
        """Handle an order of the harness."""


class Channel:
    """At most one connection with the harness. Messages sent while there is none are lost."""

    def __init__(self, owner: Owner, token: str) -> None:
        self.bad_frames = 0
        self._owner, self._token = owner, token
        self._connection: _Connection | None = None

    async def listen(self, host: str, port: int) -> None:
        """Accept connections from now on."""
        await asyncio.get_running_loop().create_server(lambda: _Connection(self), host, port)

    def tell(self, message: Message) -> None:
        """Send a message. Raises ValueError if it is too large."""
        self.write(encode_frame(message, CONTROL_MAX))

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        if self._connection is not None:
            self._connection.transport.write(frame)

    def received(self, connection: "_Connection", message: FromHarness) -> None:
        """Handle a received frame."""
        if connection is self._connection:
            self._owner.commanded(message)
        elif isinstance(message, Open) and hmac.compare_digest(message.token.encode(), self._token.encode()):
            if self._connection is not None:
                self._connection.transport.abort()
            self._connection = connection
            connection.splitter.limit = CONTROL_MAX
            self._owner.opened()
        else:
            raise BadFrame("no Open with the token of this run")

    def lost(self, connection: "_Connection") -> None:
        """Forget a connection that ended."""
        if connection is self._connection:
            self._connection = None


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, channel: Channel) -> None:
        self.splitter = Splitter(HANDSHAKE_MAX)
        self._channel = channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._too_late = asyncio.get_running_loop().call_later(_OPEN_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        self.splitter.feed(data)
        try:
            while not self.transport.is_closing() and (payload := self.splitter.take()) is not None:
                self._channel.received(self, decode_as(FROM_HARNESS, payload))
                self._too_late.cancel()
        except BadFrame:
            self._channel.bad_frames += 1
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        self._channel.lost(self)
