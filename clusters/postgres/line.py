"""One connection to a server, over libpq as psycopg wraps it, waiting on the running event loop.

Only this file uses psycopg. Statements go through libpq itself rather than psycopg's connections. When a task is
cancelled (a time-out, a crash) those send the server a cancel request, which at COMMIT would end the wait for the
standby and so weaken the test; and they do not support the replication protocol.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from psycopg import Error, generators, pq, waiting
from psycopg.abc import PQGen

from clusters.postgres.service import conninfo
from harness.core.seams import Address

Row = tuple[bytes | None, ...]
Request = tuple[str, *tuple[bytes, ...]]  # A statement, and its parameters.
T = TypeVar("T")
_INTERVAL_S: Final = 1.0  # How often a wait wakes up without a reason; no behaviour depends on it.
_DONE: Final = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COPY_BOTH)


class Answer(NamedTuple):
    """The result of a statement: its tag, such as COMMIT, and its rows."""

    tag: str
    rows: list[Row]


class Broken(OSError):
    """The connection could not be opened, or has ended."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, *, severity: str, sqlstate: str, message: str) -> None:
        super().__init__(f"{severity} {sqlstate}: {message}")
        self.severity, self.sqlstate = severity, sqlstate

    @property
    def ends_connection(self) -> bool:
        """True if the server closed the connection with the error."""
        return self.severity != "ERROR"


class Line:
    """An open connection. `warnings` are the codes of warnings received since it was last emptied."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[str, bytes] = {}  # The names of prepared statements.
        self._prepared = 0
        self.warnings: list[str] = []
        pgconn.notice_handler = self._noticed
        pgconn.enter_pipeline_mode()

    def close(self) -> None:
        """Close the connection. The server rolls back an open transaction."""
        self._pgconn.finish()

    async def ask(self, *requests: Request) -> AsyncGenerator[Answer, None]:
        """The answers to statements with their parameters, all sent at once; each is yielded as it arrives.

        Statements after the first failing one are not carried out. Raises Refused for that one, and Broken.
        """
        known = dict(self._names)
        with _broken():
            reported = [is_reported for request in requests for is_reported in self._send(*request)]
            self._pgconn.pipeline_sync()
        await self._wait(generators.send(self._pgconn))
        refused: Refused | None = None
        for is_reported in reported:
            results = await self._wait(generators.fetch_many(self._pgconn))
            try:
                if refused is None:
                    result = _checked(results)
                    if is_reported:
                        yield _answer(result)
            except Refused as error:
                if error.ends_connection:
                    raise
                refused = error
        await self._wait(generators.fetch_many(self._pgconn))  # The server reports that this was all.
        if refused is not None:
            self._names = known  # Statements after it were not prepared.
            raise refused

    async def run(self, *requests: Request) -> list[Answer]:
        """All the answers of `ask`. Raises Broken, Refused."""
        return [answer async for answer in self.ask(*requests)]

    async def start_replication(self, statement: str) -> None:
        """Start replication; from now on only `received` and `tell` may be used. Raises Broken, Refused."""
        with _broken():
            self._pgconn.exit_pipeline_mode()
            self._pgconn.send_query(statement.encode())
        _checked(await self._wait(generators.execute(self._pgconn)))

    async def received(self, within_s: float) -> list[bytes]:
        """The received messages, after a wait if there are none; possibly empty.

        Raises Broken when the stream has ended.
        """
        messages = self._drained()
        if not messages:
            await self._wait(_arrival(), within_s)
            with _broken():
                self._pgconn.consume_input()
            messages = self._drained()
        return messages

    async def tell(self, message: bytes) -> None:
        """Send a message to the source of a stream. Raises Broken."""
        await self._wait(generators.copy_to(self._pgconn, message))

    def _drained(self) -> list[bytes]:
        messages = []
        with _broken():
            while True:
                count, data = self._pgconn.get_copy_data(1)
                if count > 0:
                    messages.append(bytes(data))
                elif count == 0 or messages:
                    return messages
                else:
                    raise Broken("the stream has ended")

    def _send(self, statement: str, *parameters: bytes) -> tuple[bool, ...]:
        """Send a statement. Returns, for each result to come, True if it is the requested one."""
        is_new = statement not in self._names
        if is_new:
            self._prepared += 1
            self._names[statement] = b"s%d" % self._prepared
            self._pgconn.send_prepare(self._names[statement], statement.encode())
        self._pgconn.send_query_prepared(self._names[statement], parameters)
        return (False, True) if is_new else (True,)

    async def _wait(self, generator: PQGen[T], interval_s: float = _INTERVAL_S) -> T:
        with _broken():
            return await waiting.wait_async(generator, self._pgconn.socket, interval_s)

    def _noticed(self, result: pq.abc.PGresult) -> None:
        if _field(result, pq.DiagnosticField.SEVERITY_NONLOCALIZED) == "WARNING":
            self.warnings.append(_field(result, pq.DiagnosticField.SQLSTATE))


async def dial(address: Address, *, name: str, **more: str) -> Line:
    """A connection under that name; `more` are further options of the connection string. Raises Broken."""
    words = conninfo(address, application_name=name, sslmode="disable", gssencmode="disable", **more)
    with _broken():
        return Line(await waiting.wait_conn_async(generators.connect(words), _INTERVAL_S))


@contextmanager
def _broken() -> Iterator[None]:
    """Turn libpq's exceptions into Broken, since they mean a lost connection: errors of the server are results."""
    try:
        yield
    except Error as error:
        raise Broken(str(error)) from error


def _arrival() -> PQGen[None]:
    """Wait until something arrives or the interval has passed."""
    yield waiting.Wait.R


def _checked(results: Sequence[pq.abc.PGresult]) -> pq.abc.PGresult:
    """The result of one statement. Raises Refused, Broken."""
    for result in results:
        if result.status not in _DONE:
            raise _trouble(result)
    if not results:
        raise Broken("the server said nothing")
    return results[-1]


def _answer(result: pq.abc.PGresult) -> Answer:
    columns = range(result.nfields)
    rows = [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]
    return Answer((result.command_status or b"").decode(), rows)


def _trouble(result: pq.abc.PGresult) -> Exception:
    """The exception for an error result. Without a code it was made by libpq, because the connection has ended."""
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
