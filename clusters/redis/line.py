"""One connection to a server or a Sentinel, and commands on it.

Only this file uses redis-py, and of that library only its connection: it does not reconnect, and sends nothing twice.
"""

import asyncio
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple

from clusters.redis.errors import is_definite
from clusters.servers.client import Broken, Refused
from harness.core.seams import Address

Command = tuple[bytes | str | int, ...]
_MASTER: Final = b"master"


class Line:
    """A connection. `needs_master`: a server that is no master is as good as none. Close it in the end."""

    def __init__(self, address: Address, *, needs_master: bool = True) -> None:
        self._address, self._needs_master = address, needs_master
        self._connection: Any = None

    async def connected(self, within_s: float) -> None:
        """Return when the connection stands. Raises Broken if it does not in time; then nothing was sent."""
        if self._connection is not None:
            if not self._connection.is_connected:
                raise Broken("the connection has ended")
            return
        try:
            async with asyncio.timeout(within_s):
                await self._connect()
        except TimeoutError:
            raise Broken(f"no connection within {within_s:g} s") from None
        except Refused as refused:
            raise Broken(str(refused)) from None

    async def _connect(self) -> None:
        library = _library()
        self._connection = library.Connection(
            host=self._address.host,
            port=self._address.port,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=library.Retry(library.NoBackoff(), 0),
        )
        try:
            await self._connection.connect()
        except (library.RedisError, OSError) as error:
            raise Broken(str(error)) from None
        if self._needs_master:
            _, role = await self.run(("PING",), ("ROLE",))  # PING is refused by a server that still loads its file.
            if role[0] != _MASTER:
                raise Broken("it is no master")

    async def run(self, *commands: Command, within_s: float | None = None) -> list[Any]:
        """The answers to commands that are sent together. Raises Broken, and Refused if any of them is an error."""
        library = _library()
        answers: list[Any] = []
        try:
            async with asyncio.timeout(within_s):
                await self._connection.send_packed_command(self._connection.pack_commands(commands), check_health=False)
                for _ in commands:
                    try:
                        answers.append(await self._connection.read_response(disable_decoding=True))
                    except library.ResponseError as error:
                        answers.append(error)
        except TimeoutError:
            raise Broken(f"no answer within {within_s:g} s") from None
        except (library.RedisError, OSError) as error:
            raise Broken(str(error)) from None
        inner = (part for answer in answers if isinstance(answer, list) for part in answer)
        errors = [each for each in (*answers, *inner) if isinstance(each, library.ResponseError)]
        if errors:
            raise Refused(
                "; ".join(map(str, errors)), is_definite=any(is_definite(type(each).__name__) for each in errors)
            )
        return answers

    async def transaction(
        self, *commands: Command, then: tuple[Command, ...] = (), within_s: float | None = None
    ) -> list[Any]:
        """The answers to the commands of a transaction, or None if a watched key has changed; then those of `then`.

        Raises Broken, Refused.
        """
        answers = await self.run(("MULTI",), *commands, ("EXEC",), *then, within_s=within_s)
        return answers[len(commands) + 1 :]

    async def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # Whatever the library makes of a connection that is gone.
                await connection.disconnect(nowait=True)


class Library(NamedTuple):
    """The parts of redis-py that are used here."""

    Connection: Any
    Retry: Any
    NoBackoff: Any
    RedisError: type[Exception]
    ResponseError: type[Exception]


@cache
def _library() -> Library:
    """The library, loaded by the first connection: a list of clusters does not need it."""
    from redis.asyncio.connection import Connection  # noqa: PLC0415
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.exceptions import RedisError, ResponseError  # noqa: PLC0415

    return Library(Connection, Retry, NoBackoff, RedisError, ResponseError)
