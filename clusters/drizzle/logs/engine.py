"""The storage engine: rows, row locks, and the table log, which is a table of it.

Theory of operation.
1. A session locks each row that it reads or changes, until its transaction has committed or was rolled back. A schema
   change locks its table.
2. A transaction is prepared, with its pieces, before the file logs have its last piece. It commits after that: it gets
   the next commit id, and rows and table log change together. It is visible once that is durable.
3. After a crash the file log decides about prepared transactions: those whose last piece is there commit.
4. A server that applies another one's transaction has the rows, its own table log, and its position in the source's log
   in one record.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Rows
from clusters.drizzle.messages import Change, Committed, Piece
from clusters.drizzle.shape import PEOPLE, table_of
from clusters.drizzle.site import Site
from harness.core.machine import Message, NodeId
from harness.core.record import Json

LOG: Final = "engine"
Lock = Json | tuple[str, str]  # Of a row, by its key; or ("table", name).


class Prepared(Struct, frozen=True, tag=True):
    """On disk: a transaction that may commit. `rows` are what it changes, and `pieces` what its log entry will have."""

    trx: int
    rows: Rows
    pieces: tuple[Piece, ...]


class Taken(Struct, frozen=True, tag=True):
    """On disk: the rows of a committed transaction."""

    rows: Rows
    committed: Committed


class Undone(Struct, frozen=True, tag=True):
    """On disk: a prepared transaction was rolled back."""

    trx: int


class Engine:
    """The rows of a server."""

    def __init__(self, site: Site, records: Iterable[Message]) -> None:
        self._site = site
        self.lists: dict[Json, list[Json]] = {}
        self.people: dict[Json, Json] = {}
        self.versions: dict[str, int] = {}  # By table.
        self.log: list[Committed] = []  # The table log, without what is not visible yet.
        self.positions: dict[NodeId, int] = {}
        self.left_out: list[tuple[NodeId, int]] = []  # Transactions of sources that met an error here.
        self.prepared: dict[int, Prepared] = {}
        self._last_commit = 0
        self._locks: dict[Lock, object] = {}
        for record in records:
            self._recover(record)

    def _recover(self, record: Message) -> None:
        match record:
            case Prepared():
                self.prepared[record.trx] = record
            case Undone(trx):
                self.prepared.pop(trx, None)
            case Taken(_, committed):
                self.prepared.pop(committed.trx, None)
                self._last_commit = max(self._last_commit, committed.commit)
                self.show(record)

    def lock(self, session: object, name: Lock) -> bool:
        """True if the session has that lock."""
        others = [held for held, owner in self._locks.items() if owner is not session]
        if isinstance(name, tuple):
            is_free = not any(held == name or _table(held) == name[1] for held in others)
        else:
            is_free = name not in others and ("table", _table(name)) not in others
        if is_free:
            self._locks[name] = session
        return is_free

    def release(self, session: object) -> None:
        """Give up all locks of a session."""
        self._locks = {name: owner for name, owner in self._locks.items() if owner is not session}

    def next_commit(self) -> int:
        """The next commit id (2)."""
        self._last_commit += 1
        return self._last_commit

    def prepare(self, trx: int, rows: Rows, pieces: tuple[Piece, ...]) -> None:
        """Put a transaction on disk that may commit (2)."""
        self.prepared[trx] = Prepared(trx, rows, pieces)
        self._site.context.append(LOG, self.prepared[trx])

    def undo(self, trx: int) -> None:
        """Roll a prepared transaction back."""
        if self.prepared.pop(trx, None) is not None:
            self._site.context.append(LOG, Undone(trx))

    def commit(self, rows: Rows, committed: Committed) -> Taken:
        """Write the commit of a transaction (2, 4). It is to be shown once that is durable."""
        self.prepared.pop(committed.trx, None)
        taken = Taken(rows, committed)
        self._site.context.append(LOG, taken)
        return taken

    def show(self, taken: Taken) -> None:
        """Make a transaction visible."""
        for entry, changes in taken.rows:
            if entry.kind == "ddl":
                self.versions[entry.table] = self.versions.get(entry.table, 0) + 1
            for change in changes:
                self._change(entry.table, change)
        committed = taken.committed
        if committed.is_logged:
            self.log.append(committed)
        if committed.source is not None:
            if committed.is_left_out:
                self.left_out.append((committed.source, committed.position))
            self.positions[committed.source] = max(committed.position, self.positions.get(committed.source, 0))

    def _change(self, table: str, change: Change) -> None:
        if table != PEOPLE:
            self.lists.setdefault(change.key, []).append(change.value)
        else:
            change_people(self.people, change)

    def decide(self, finals: list[int]) -> None:
        """Decide about what a crash left prepared: `finals` have their last piece in the file log, in its order (3)."""
        for trx in finals if planted.LOG_BEFORE_COMMIT_NO_RECOVERY not in self._site.bugs else ():
            if (prepared := self.prepared.get(trx)) is not None:
                self._site.context.sometimes("recovery committed a prepared transaction")
                self.show(self.commit(prepared.rows, entry(self._site.node, self.next_commit(), trx, prepared.pieces)))
        for trx in [*self.prepared]:
            self._site.context.sometimes("recovery rolled a prepared transaction back")
            self.undo(trx)

    def readable(self) -> list[Committed]:
        """The table log as its readers see it (2)."""
        if planted.DIRTY_LOG_READ not in self._site.bugs:
            return self.log
        first = self._last_commit + 1
        return [
            *self.log,
            *(
                entry(self._site.node, first + at, each.trx, each.pieces)
                for at, each in enumerate(self.prepared.values())
            ),
        ]


def entry(node: NodeId, commit: int, trx: int, pieces: tuple[Piece, ...]) -> Committed:
    """The entry of the table log for a transaction that was born there."""
    return Committed(commit, trx, node, commit, pieces, is_logged=bool(pieces))


def applied(commit: int, trx: int, source: NodeId, found: Committed, *, is_logged: bool) -> Committed:
    """The entry of the table log for a transaction that was fetched from `source`. It keeps its origin."""
    return replace(found, commit=commit, trx=trx, source=source, position=found.commit, is_logged=is_logged)


def change_people(people: dict[Json, Json], change: Change) -> None:
    """Carry out a change of the table of people."""
    if change.verb == "delete":
        people.pop(change.key, None)
    elif change.verb == "insert":
        people[change.key] = change.value
    else:
        people.pop(change.key, None)
        people[change.after] = change.value


def _table(lock: Lock) -> str:
    """The table of a row's lock."""
    return table_of(lock) if isinstance(lock, int) else PEOPLE
