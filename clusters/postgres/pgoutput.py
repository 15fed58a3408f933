"""The messages of a replication connection, decoded into transactions: bytes in, values out.

Two layers. The replication protocol carries messages of a plugin, and keep-alives with the position up to which the
source has decoded. The plugin pgoutput, version 1, sends each transaction when it has been committed, whole, in the
order of commits: a begin, its rows, a commit; and the description of a table before its first row.
1. A position is the end of a transaction's commit record. Rows are delivered once the commit has arrived: before that
   the end is not known, and a connection that breaks in between leaves no partial delivery.
2. A keep-alive names the position up to which the source has read its log and sent all commits. So nothing at or below
   it follows; it says nothing about open transactions, as their commits lie above. At the start of a session the
   source reads from before the requested position, and names lower positions: those carry no new information.
Source: documentation of PostgreSQL 15, chapters 55.4, 55.5 and 55.9 (replication protocol, formats of pgoutput).
"""

import struct
from dataclasses import dataclass, field
from typing import Final

from harness.core.errors import ProtocolError

_SENT: Final = struct.Struct("!qqq")  # The message's position in the log, the end of the log, the source's clock.
_ALIVE: Final = struct.Struct("!qqB")
_BEGIN: Final = struct.Struct("!qqI")
_COMMIT: Final = struct.Struct("!Bqqq")
_STATUS: Final = struct.Struct("!cqqqqB")
_SHORT: Final = struct.Struct("!H")
_LONG: Final = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a transaction left it: its table, and its columns as text, None for null."""

    table: str
    columns: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction: its number, the position of its commit, and the rows that it changed, in order."""

    txn: int
    position: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing at or below that position follows. `asks`: the source requests a reply."""

    position: int
    asks: bool


@dataclass(slots=True)
class Reader:
    """A decoder of one session's messages, in order."""

    _tables: dict[int, str] = field(default_factory=dict)
    _txn: int | None = None
    _rows: list[Row] = field(default_factory=list)

    def read(self, message: bytes) -> Committed | Alive | None:
        """The result of a message; None if it only adds to a transaction. Raises ProtocolError."""
        try:
            match message[:1]:
                case b"w":
                    return self._plugin(message[1 + _SENT.size :])
                case b"k":
                    position, _, asks = _ALIVE.unpack_from(message, 1)
                    return Alive(position, bool(asks))
        except (struct.error, ValueError) as error:
            raise ProtocolError(f"a message of the stream is cut short: {message[:60]!r}") from error
        raise ProtocolError(f"a message of the stream is of an unknown kind: {message[:60]!r}")

    def _plugin(self, message: bytes) -> Committed | None:
        match message[:1]:
            case b"B":
                _, _, self._txn = _BEGIN.unpack_from(message, 1)
                self._rows = []
            case b"R":
                self._describe(message)
            case b"I" | b"U":
                self._change(message)
            case b"C":
                _, _, position, _ = _COMMIT.unpack_from(message, 1)
                return self._committed(position)
            case b"D" | b"T":
                raise ProtocolError("a row was deleted, or a table emptied: no workload does that")
            case _:
                pass  # Origins and types: our subscribers do not need them.
        return None

    def _committed(self, position: int) -> Committed:
        if self._txn is None:
            raise ProtocolError("a commit came without its begin")
        txn, self._txn = self._txn, None
        return Committed(txn, position, tuple(self._rows))

    def _describe(self, message: bytes) -> None:
        (number,) = _LONG.unpack_from(message, 1)
        _, name, _ = message[1 + _LONG.size :].split(b"\0", 2)
        self._tables[number] = name.decode()

    def _change(self, message: bytes) -> None:
        """Add an insert, or an update, which may have the row's former key or columns first."""
        if self._txn is None:
            raise ProtocolError("a row came outside a transaction")
        (number,) = _LONG.unpack_from(message, 1)
        if number not in self._tables:
            raise ProtocolError(f"a row is of table {number}, which was never described")
        at = 1 + _LONG.size
        if message[at : at + 1] in (b"K", b"O"):
            at, _ = _columns(message, at + 1)
        if message[at : at + 1] != b"N":
            raise ProtocolError(f"a row came without its new values: {message[:60]!r}")
        _, columns = _columns(message, at + 1)
        self._rows.append(Row(self._tables[number], columns))


def status(confirmed: int, *, asks: bool = False) -> bytes:
    """The message that confirms everything up to that position; `asks` requests a keep-alive in return.

    The clock is left out: the source keeps it for display only.
    """
    return _STATUS.pack(b"r", confirmed, confirmed, confirmed, 0, asks)


def lsn(position: int) -> str:
    """A position as the server writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def _columns(message: bytes, at: int) -> tuple[int, tuple[bytes | None, ...]]:
    """The end of the columns that begin there, and the columns."""
    (count,) = _SHORT.unpack_from(message, at)
    at += _SHORT.size
    columns: list[bytes | None] = []
    for _ in range(count):
        kind = message[at : at + 1]
        at += 1
        if kind == b"n":
            columns.append(None)
            continue
        if kind != b"t":
            raise ProtocolError(f"a column came as {kind!r}, not as text: it was too long to be sent unchanged")
        (length,) = _LONG.unpack_from(message, at)
        at += _LONG.size
        if at + length > len(message):
            raise ValueError("a column is longer than its message")
        columns.append(message[at : at + length])
        at += length
    return at, tuple(columns)
