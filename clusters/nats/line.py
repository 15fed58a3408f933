"""One connection to a server, and the requests of JetStream on it.

Only this file uses nats-py. The library does not reconnect here, and sends nothing twice.
"""

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from clusters.nats.errors import NO_RESPONDERS, is_definite
from clusters.nats.rows import STREAM
from clusters.servers.client import Broken, Refused
from harness.core.record import Json
from harness.core.seams import Address

_API: Final = "$JS.API"
_NO_MESSAGE: Final = 10037
_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_WITHIN_S: Final = 30.0  # An operation has its own, shorter time.


class Stored(NamedTuple):
    """A message of the stream."""

    sequence: int
    payload: bytes


class Received(NamedTuple):
    """A message that a consumer delivered, and its acknowledgement."""

    sequence: int
    subject: str
    payload: bytes
    ack: Any


class Line:
    """A connection to one server. Close it in the end."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._nats: Any = None

    async def connected(self, within_s: float) -> None:
        """Return when the connection stands. Raises Broken if it does not in time; then nothing was sent."""
        library = _library()
        try:
            if self._nats is None:
                async with asyncio.timeout(within_s):
                    self._nats = library.NATS()
                    await self._nats.connect(
                        f"nats://{self._address.host}:{self._address.port}",
                        allow_reconnect=False,
                        connect_timeout=within_s,
                        error_cb=_nothing,
                    )
        except (library.errors.Error, OSError) as error:
            raise Broken(str(error).strip() or f"no connection within {within_s:g} s") from None
        if not self._nats.is_connected:
            raise Broken("the connection has ended")

    async def publish(self, subject: str, payload: bytes, *, after: int | None = None) -> int:
        """The sequence of a message that is stored, once it is acknowledged.

        `after` is the sequence that the subject's last message must have; 0: there is none. Raises Refused, Broken.
        """
        headers = None if after is None else {_EXPECTED: str(after)}
        answer = _checked(await self._request(subject, payload, headers))
        return int(answer["seq"])

    async def stored(self, subject: str, sequence: int) -> Stored | None:
        """The subject's first message at or above that sequence, from the stream's leader. Raises Refused, Broken."""
        asked = msgspec.json.encode({"seq": sequence, "next_by_subj": subject})
        answer = await self._request(f"{_API}.STREAM.MSG.GET.{STREAM}", asked, None)
        if answer.get("error", {}).get("err_code") == _NO_MESSAGE:
            return None
        message = _checked(answer)["message"]
        return Stored(int(message["seq"]), base64.b64decode(message.get("data", "")))

    async def api(self, call: str, **asked: Json) -> Mapping[str, Any]:
        """The answer of JetStream's API. Raises Refused, Broken."""
        return _checked(await self._request(f"{_API}.{call}", msgspec.json.encode(asked), None))

    async def api_within(self, call: str, within_s: float) -> Mapping[str, Any]:
        """The answer of JetStream's API in that time. Raises Refused, Broken."""
        try:
            async with asyncio.timeout(within_s):
                return await self.api(call)
        except TimeoutError:
            raise Broken(f"no answer within {within_s:g} s") from None

    async def pull(self, consumer: str) -> "Pull":
        """The deliveries of a durable consumer. Raises Broken."""
        library = _library()
        try:
            return Pull(await self._nats.jetstream().pull_subscribe_bind(consumer, STREAM))
        except (library.errors.Error, OSError) as error:
            raise Broken(str(error)) from None

    async def close(self) -> None:
        """End the connection."""
        nats, self._nats = self._nats, None
        if nats is not None:
            with suppress(Exception):  # Whatever the library makes of a connection that is gone.
                async with asyncio.timeout(1):
                    await nats.close()

    async def _request(self, subject: str, payload: bytes, headers: Mapping[str, str] | None) -> dict[str, Any]:
        library = _library()
        try:
            answer = await self._nats.request(subject, payload, timeout=_WITHIN_S, headers=headers)
        except library.errors.NoRespondersError:
            raise Refused(NO_RESPONDERS, is_definite=True) from None
        except (library.errors.Error, OSError) as error:
            raise Broken(str(error)) from None
        try:
            return msgspec.json.decode(answer.data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Broken(f"an answer that is none of JetStream's: {error}") from None


class Pull:
    """The deliveries of a consumer."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription

    async def received(self, count: int, within_s: float) -> list[Received]:
        """At most that many messages; none if none arrives in time. Raises Broken."""
        library = _library()
        try:
            messages = await self._subscription.fetch(count, timeout=within_s)
        except TimeoutError:  # The library's own is one.
            return []
        except (library.errors.Error, OSError) as error:
            raise Broken(str(error)) from None
        return [Received(each.metadata.sequence.stream, each.subject, each.data, each.ack) for each in messages]

    async def ack(self, message: Received) -> None:
        """Acknowledge a message, without waiting for an answer. Raises Broken."""
        library = _library()
        try:
            await message.ack()
        except (library.errors.Error, OSError) as error:
            raise Broken(str(error)) from None


def _checked(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    if (error := answer.get("error")) is None:
        return answer
    code = int(error.get("err_code", 0))
    raise Refused(f"{code}: {error.get('description', '')}", is_definite=is_definite(code))


async def _nothing(_: Exception) -> None:
    """Do nothing: the library raises the same error where it matters."""


@cache
def _library() -> Any:
    """The library, loaded by the first connection: a list of clusters does not need it."""
    import nats.errors  # noqa: PLC0415
    from nats.aio.client import Client  # noqa: PLC0415

    class Library(NamedTuple):
        NATS: Any
        errors: Any

    return Library(Client, nats.errors)
