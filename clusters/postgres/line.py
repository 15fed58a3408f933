"""One connection to a server, over libpq as psycopg wraps it, waiting on the running event loop.

This is the only file that knows psycopg. Statements go through libpq itself rather than psycopg's connections. When a
task is cancelled (a time-out, a crash) those send the server a cancel request, which at COMMIT would end the wait for
the standby and so weaken what is tested; and they do not speak the replication protocol.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from psycopg import Error, generators, pq, waiting
from psycopg.abc import PQGen

from clusters.postgres.service import conninfo
from harness.core.seams import Address

Row = tuple[bytes | None, ...]
T = TypeVar("T")
_INTERVAL_S: Final = 1.0  # How often waiting looks up for nothing; nobody depends on it.
_DONE: Final = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Broken(OSError):
    """The connection could not be made, or has ended."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, *, severity: str, sqlstate: str, message: str) -> None:
        super().__init__(f"{severity} {sqlstate}: {message}")
        self.severity, self.sqlstate = severity, sqlstate

    @property
    def ends_connection(self) -> bool:
        """Has the server hung up with it?"""
        return self.severity != "ERROR"


class Line:
    """An open connection. `warnings` are the codes of the warnings that came since it was last emptied."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[str, bytes] = {}
        self.warnings: list[str] = []
        pgconn.notice_handler = self._noticed

    def close(self) -> None:
        """Hang up. The server undoes what is open."""
        self._pgconn.finish()

    async def run(self, statement: str) -> str:
        """Carry out statements without parameters; returns the tag of the last. Raises Broken, Refused."""
        results = await self._results(lambda: self._pgconn.send_query(statement.encode()))
        return (results[-1].command_status or b"").decode()

    async def ask(self, statement: str, *parameters: bytes) -> list[Row]:
        """The rows of a statement, which is prepared when it is first asked. Raises Broken, Refused."""
        name = self._names.get(statement)
        if name is None:
            name = b"s%d" % len(self._names)
            await self._results(lambda: self._pgconn.send_prepare(name, statement.encode()))
            self._names[statement] = name
        results = await self._results(lambda: self._pgconn.send_query_prepared(name, parameters))
        result = results[-1]
        return [
            tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)
        ]

    async def start_replication(self, statement: str) -> None:
        """From now on only `received` and `send` may be used. Raises Broken, Refused."""
        await self._results(lambda: self._pgconn.send_query(statement.encode()), pq.ExecStatus.COPY_BOTH)

    async def received(self, within_s: float) -> list[bytes]:
        """What has come, after a while if nothing has; perhaps nothing. Raises Broken when the stream has ended."""
        messages = self._drained()
        if not messages:
            await self._wait(_arrival(), within_s)
            try:
                self._pgconn.consume_input()
            except Error as error:
                raise Broken(str(error)) from error
            messages = self._drained()
        return messages

    async def send(self, message: bytes) -> None:
        """Tell the source of a stream something. Raises Broken."""
        try:
            await self._wait(generators.copy_to(self._pgconn, message))
        except Error as error:
            raise Broken(str(error)) from error

    def _drained(self) -> list[bytes]:
        messages = []
        try:
            while True:
                count, data = self._pgconn.get_copy_data(1)
                if count > 0:
                    messages.append(bytes(data))
                elif count == 0 or messages:
                    return messages
                else:
                    raise Broken("the stream has ended")
        except Error as error:
            raise Broken(str(error)) from error

    async def _results(
        self, send: Callable[[], None], further: pq.ExecStatus = pq.ExecStatus.COMMAND_OK
    ) -> Sequence[pq.abc.PGresult]:
        """The results of what `send` puts on its way; each done, or of the `further` status."""
        try:
            send()
            results: list[pq.abc.PGresult] = await self._wait(generators.execute(self._pgconn))
        except Error as error:
            raise Broken(str(error)) from error
        for result in results:
            if result.status not in (*_DONE, further):
                raise _trouble(result)
        if not results:
            raise Broken("the server said nothing")
        return results

    async def _wait(self, generator: PQGen[T], interval_s: float = _INTERVAL_S) -> T:
        return await waiting.wait_async(generator, self._pgconn.socket, interval_s)

    def _noticed(self, result: pq.abc.PGresult) -> None:
        if _field(result, pq.DiagnosticField.SEVERITY_NONLOCALIZED) == "WARNING":
            self.warnings.append(_field(result, pq.DiagnosticField.SQLSTATE))


async def dial(address: Address, *, name: str, **more: str) -> Line:
    """A connection, under that name; `more` are further words of the connection string. Raises Broken."""
    words = conninfo(address, application_name=name, sslmode="disable", gssencmode="disable", **more)
    try:
        return Line(await waiting.wait_conn_async(generators.connect(words), _INTERVAL_S))
    except Error as error:
        raise Broken(str(error)) from error


def _arrival() -> PQGen[None]:
    """Something has come, or it has been waited for long enough."""
    yield waiting.Wait.R


def _trouble(result: pq.abc.PGresult) -> Exception:
    """What an answer that is an error means. One without a code is made by libpq, where the connection has ended."""
    sqlstate = _field(result, pq.DiagnosticField.SQLSTATE)
    if not sqlstate:
        return Broken(result.get_error_message().strip() or f"an answer of status {result.status}")
    return Refused(
        severity=_field(result, pq.DiagnosticField.SEVERITY_NONLOCALIZED),
        sqlstate=sqlstate,
        message=_field(result, pq.DiagnosticField.MESSAGE_PRIMARY),
    )


def _field(result: pq.abc.PGresult, which: pq.DiagnosticField) -> str:
    return (result.error_field(which) or b"").decode(errors="replace")
