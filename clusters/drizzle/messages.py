"""The parts of transaction messages, and all messages, by sender and receiver."""

from msgspec import Struct

from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

# Transaction messages.


class Change(Struct, frozen=True):
    """A row change. `verb`: insert an element into the list `key`, update or delete the row `key` of people.

    An update moves the row to `after`, which is its key if that stays.
    """

    verb: str
    key: Json
    value: Json = None
    after: Json = None


class Entry(Struct, frozen=True):
    """A statement message, or a piece of one.

    `kind`: rows, ddl, rollback, rollback-statement (of the one in progress) or rollback-to (the first `keep` statements
    stay). Rows have the number of their piece in the statement, and the version of their table.
    """

    kind: str
    table: str = ""
    segment: int = 1
    is_end: bool = True
    version: int = 0
    keep: int = 0
    changes: tuple[Change, ...] = ()


class Piece(Struct, frozen=True):
    """A transaction message: one of the pieces of a transaction. `start_ns` is the start of the transaction."""

    server: NodeId
    trx: int
    segment: int
    is_end: bool
    start_ns: int
    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """Its size, in rows."""
        return sum(len(entry.changes) for entry in self.entries)


# From clients to servers.


class Statement(Struct, frozen=True):
    """A step of a session.

    `kind`: read, write (all its changes in one statement), fail (a write whose last row is there already), savepoint,
    rollback-to, ddl, rollback. A write with `refused` has the log refuse the next pieces.
    """

    kind: str
    keys: tuple[Json, ...] = ()
    changes: tuple[Change, ...] = ()


class Run(Struct, frozen=True, tag=True):
    """Run a transaction. `mops` are its effective steps; `refusal` is the piece that a log refuses, counted from 1."""

    mops: tuple[MicroOp, ...]
    steps: tuple[Statement, ...]
    refusal: int = 0


class ReadThere(Struct, frozen=True, tag=True):
    """Read these lists at one moment on a replica."""

    keys: tuple[Json, ...]


class Insert(Struct, frozen=True, tag=True):
    """Insert people on a replica, behind the back of its masters."""

    keys: tuple[Json, ...]


class Drain(Struct, frozen=True, tag=True):
    """Answer when everything has been replicated that the sources have now."""


class Done(Struct, frozen=True, tag=True):
    """It is done; reads have their results. `trx` names the transaction in the logs."""

    mops: tuple[MicroOp, ...] = ()
    value: Json = None
    trx: int | None = None


class Refused(Struct, frozen=True, tag=True):
    """It certainly has no effect, and never will."""

    reason: str


# Between replicas and their sources.


class ListCommits(Struct, frozen=True, tag=True):
    """A request for the transactions of the table log after a commit id."""

    number: int
    after: int
    only_local: bool


class Listed(Struct, frozen=True, tag=True):
    """The answer: commit ids with transaction ids, in order, and up to where the log was read."""

    number: int
    commits: tuple[tuple[int, int], ...]
    upto: int


class FetchPieces(Struct, frozen=True, tag=True):
    """A request for the pieces of these transactions."""

    number: int
    trxs: tuple[int, ...]


class Committed(Struct, frozen=True, tag=True):
    """A transaction of a table log, whole. The origin is where it was born.

    On disk it is also what changes the rows, the log, and the position that a replica has in its source.
    """

    commit: int
    trx: int
    origin: NodeId
    origin_commit: int
    pieces: tuple[Piece, ...]
    source: NodeId | None = None
    position: int = 0
    is_logged: bool = True
    is_left_out: bool = False


class Fetched(Struct, frozen=True, tag=True):
    """The answer."""

    number: int
    transactions: tuple[Committed, ...]


# Between the observer and the master that it follows.


class Follow(Struct, frozen=True, tag=True):
    """A request for all pieces of the file log from a place on."""

    session: int
    place: int


class Pushed(Struct, frozen=True, tag=True):
    """Pieces of the file log, from a place on."""

    session: int
    place: int
    pieces: tuple[Piece, ...]


class Got(Struct, frozen=True, tag=True):
    """From the observer: it has the pieces below that place."""

    session: int
    place: int
