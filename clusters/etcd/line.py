"""One connection to a member, over gRPC.

Only this file uses grpcio. It sends nothing twice: gRPC's own retries are off. Each line has connections of its own.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Any, Final, Self

from clusters.etcd.errors import is_definite
from clusters.etcd.messages import CALLS, MESSAGES, WATCH
from clusters.servers.client import Broken, Refused
from harness.core.seams import Address, Doors

_CONNECTED_WITHIN_S: Final = 1.0
_ANSWERED_WITHIN_S: Final = 1.5
_OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 400),
)


class Line:
    """A channel to one member. Close it in the end."""

    def __init__(self, address: Address) -> None:
        grpc = _grpc()
        self._errors = grpc.RpcError
        self._channel = grpc.aio.insecure_channel(f"{address.host}:{address.port}", options=_OPTIONS)
        self._calls: Mapping[str, Any] = {
            name: self._channel.unary_unary(
                path,
                request_serializer=MESSAGES[request].SerializeToString,
                response_deserializer=MESSAGES[answer].FromString,
            )
            for name, (path, request, answer) in CALLS.items()
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def connected(self, within_s: float) -> None:
        """Return when the connection stands. Raises Broken if it does not in time; then nothing was sent."""
        try:
            async with asyncio.timeout(within_s):
                await self._channel.channel_ready()
        except TimeoutError:
            raise Broken(f"no connection within {within_s:g} s") from None

    async def ask(self, call: str, request: Any) -> Any:
        """The answer to one request. Raises Refused."""
        try:
            return await self._calls[call](request)
        except self._errors as error:
            raise _refused(error) from None

    def watch(self) -> "Watch":
        """A stream of watches."""
        path, request, answer = WATCH
        stream = self._channel.stream_stream(
            path,
            request_serializer=MESSAGES[request].SerializeToString,
            response_deserializer=MESSAGES[answer].FromString,
        )
        return Watch(stream(), self._errors)

    async def close(self) -> None:
        """End the connection, and all calls on it."""
        await self._channel.close()


async def asked(doors: Doors, call: str, request: Any) -> Any:
    """The answer of the first member that gives one. Raises OSError with the reason of the last."""
    reason = "there is no other member"
    for node in sorted(doors):
        try:
            async with asyncio.timeout(_ANSWERED_WITHIN_S), Line(doors[node]) as line:
                await line.connected(_CONNECTED_WITHIN_S)
                return await line.ask(call, request)
        except (OSError, Refused) as error:
            reason = f"{node}: {str(error) or 'no answer in time'}"
    raise OSError(reason)


class Watch:
    """An open stream of watches."""

    def __init__(self, call: Any, errors: type[Exception]) -> None:
        self._call, self._errors = call, errors
        self._reading: asyncio.Task[Any] | None = None
        self._repeating: asyncio.Task[None] | None = None

    def repeat(self, request: Any, every_s: float) -> None:
        """Send that request again and again, until the stream ends."""

        async def telling() -> None:
            with suppress(Broken):  # The reader learns of it.
                while True:
                    await self.tell(request)
                    await asyncio.sleep(every_s)

        self._repeating = asyncio.create_task(telling())

    async def tell(self, request: Any) -> None:
        """Send a request. Raises Broken when the stream has ended."""
        try:
            await self._call.write(request)
        except (self._errors, asyncio.InvalidStateError) as error:
            raise Broken(str(error)) from None

    async def received(self, within_s: float) -> Any:
        """The next response, or None if none arrives in time. Raises Broken when the stream has ended."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
        # Not by a time-out of the read itself: that would cancel the whole stream.
        done, _ = await asyncio.wait((self._reading,), timeout=within_s)
        if not done:
            return None
        reading, self._reading = self._reading, None
        try:
            response = reading.result()
        except self._errors as error:
            raise Broken(str(_refused(error))) from None
        if not isinstance(response, MESSAGES[WATCH[2]]):
            raise Broken("the stream has ended")
        return response

    def close(self) -> None:
        """End the stream."""
        if self._repeating is not None:
            self._repeating.cancel()
        self._call.cancel()
        if self._reading is not None:
            self._reading.add_done_callback(lambda reading: reading.cancelled() or reading.exception())


@cache
def _grpc() -> Any:
    """The library, loaded by the first connection: a list of clusters does not need it."""
    import grpc  # noqa: PLC0415
    import grpc.aio  # noqa: PLC0415

    return grpc


def _refused(error: Any) -> Refused:
    code, details = error.code().name, error.details() or ""
    return Refused(f"{code}: {details}", is_definite=is_definite(code, details))
