"""From a client's request to its answer, under one reign.

Theory of operation. A transaction reads, or writes one table, or reads and then writes. A read-then-write names all
tables that it reads or writes, and holds them alone (locks.py).
"""

from collections.abc import Callable, Iterable, Mapping

from clusters.materialize import planted
from clusters.materialize.catalog.records import Created, Dropped
from clusters.materialize.compute.views import VIEWS
from clusters.materialize.coordinator.commits import Commits, Write
from clusters.materialize.coordinator.reads import NOT_CONFIRMED, PATIENCE_NS, Failed, Found, free_read, strict_read
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.messages import (
    Change,
    Count,
    Define,
    Done,
    Query,
    ReadPast,
    Refused,
    Transact,
    Unclear,
    Wanted,
)
from clusters.materialize.shape import COUNT, COUNTED, LISTS, MS, SOURCE, UNIT_NS, WALL, table_of
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from harness.core.record import Json, MicroOp

SERIALIZABLE = "serializable"
NO_TABLE = "there is no such table"
TWO_TABLES = "a transaction writes one table"
Answer = Done | Refused | Unclear
Reply = Callable[[Answer], None]


class Sequencer:
    """The requests of clients under one reign: transactions, changes, reads of the past, queries, tables."""

    def __init__(self, reign: Reign, commits: Mapping[str, Commits], tables: Callable[[], tuple[str, ...]]) -> None:
        self._reign = reign
        self._commits = commits[WALL]
        self._counts = commits[COUNT]
        self._tables = tables
        self._is_free = reign.site.options.get("isolation") == SERIALIZABLE

    def transact(self, request: Transact, reply: Reply) -> None:
        """Carry out a transaction."""
        reads = [mop for mop in request.mops if mop.f == "r"]
        appends = [mop for mop in request.mops if mop.f == "append"]
        written = dict.fromkeys(_table(mop) for mop in appends)
        if len(written) > 1:
            reply(Refused(TWO_TABLES))
        elif [mop.f for mop in request.mops] != ["r"] * len(reads) + ["append"] * len(appends):
            reply(Refused("reads come before appends, and there is nothing else"))
        elif any(_table(mop) not in self._tables() for mop in request.mops):
            self._reign.site.procedures.run(self._no_table(reply))
        elif not appends:
            self._reign.site.procedures.run(self._read(request, reply))
        else:
            (table,) = written
            changes = tuple((mop.key, mop.value, 0, 1) for mop in appends)
            if reads:
                self._read_then_append(request.mops, table, changes, reply)
            else:
                self._insert(table, changes, reply, request.mops)

    def change(self, request: Change, reply: Reply) -> None:
        """Insert rows, or delete all rows of keys."""
        if request.table not in self._tables():
            self._reign.site.procedures.run(self._no_table(reply))
        elif any(diff < 0 for _, _, diff in request.rows):
            self._delete(request, reply)
        else:
            changes = tuple((key, value, 0, 1) for key, value, _ in request.rows)
            rows: Json = [[request.table, key, value, 1] for key, value, _ in request.rows]
            self._insert(request.table, changes, reply, (), rows)

    def read_past(self, request: ReadPast, reply: Reply) -> None:
        """Read lists at any timestamp, or as they were some time ago."""
        ts = None if request.age_ms is None else self._past(request.age_ms)
        self._reign.site.procedures.run(self._read_at(request.keys, ts, reply))

    def query(self, request: Query, reply: Reply) -> None:
        """Read a whole collection."""
        if request.name not in (*self._tables(), *VIEWS, SOURCE):
            self._reign.site.procedures.run(self._no_table(reply))
            return
        ts = None if request.age_ms is None else self._past(request.age_ms)
        self._reign.site.procedures.run(self._query(request.name, ts, reply))

    def count(self, request: Count, reply: Reply) -> None:
        """Append to the list of the timeline that counts its writes, or read it."""
        element = request.element
        if element is None:
            self._reign.site.procedures.run(self._counted(reply, is_mixed=request.is_mixed))
            return

        def then(ts: int) -> None:
            reply(Done(self._reign.epoch, value=[ts, element]))

        self._counts.add(Write(COUNTED, ((COUNTED, element, 0, 1),), then, (COUNTED,)))

    # Reads.

    def _past(self, age_ms: int) -> int:
        """The timestamp of an age; a negative age gives a timestamp to come."""
        return max(0, self._reign.wall.oracle.read_ts - age_ms * MS // UNIT_NS)

    def _any(self, wanted: tuple[Wanted, ...], seen: int = 0) -> Procedure[Found | Failed]:
        """The rows at the isolation that was chosen, for a session that has seen that timestamp."""
        if self._is_free:
            return (yield from free_read(self._reign, wanted, least=seen))
        return (yield from strict_read(self._reign, wanted))

    def _read(self, request: Transact, reply: Reply) -> Procedure[None]:
        mops = request.mops
        found = yield from self._any(_wanted((_table(mop), mop.key) for mop in mops), request.seen)
        if isinstance(found, Failed):
            reply(Refused(found.reason))
        else:
            reply(self._done(found.ts, mops=_filled(mops, found)))

    def _read_at(self, keys: tuple[Json, ...], ts: int | None, reply: Reply) -> Procedure[None]:
        found = yield from free_read(self._reign, _wanted((table_of(key), key) for key in keys), ts)
        if isinstance(found, Failed):
            reply(Refused(found.reason))
        else:
            value: Json = [[key, [*found.rows[table_of(key)][key][0]]] for key in keys]
            reply(self._done(found.ts, value=value))

    def _query(self, name: str, ts: int | None, reply: Reply) -> Procedure[None]:
        wanted = (Wanted(name, None),)
        found = yield from (self._any(wanted) if ts is None else free_read(self._reign, wanted, ts))
        if isinstance(found, Failed):
            reply(Refused(found.reason))
        else:
            rows: Json = [[key, _plain(value)] for key, (values, _) in found.rows[name].items() for value in values]
            reply(self._done(found.ts, value=[name, rows]))

    def _counted(self, reply: Reply, *, is_mixed: bool) -> Procedure[None]:
        beside = (Wanted(LISTS[0], (COUNTED,)),) if is_mixed else ()
        found = yield from strict_read(self._reign, (Wanted(COUNTED, (COUNTED,)), *beside))
        if isinstance(found, Failed):
            reply(Refused(found.reason))
        else:
            reply(Done(self._reign.epoch, value=[found.ts, [*found.rows[COUNTED][COUNTED][0]]]))

    def _no_table(self, reply: Reply) -> Procedure[None]:
        """Refuse what names a table that is not there: a read of the catalog, so only a leader knows."""
        (answer,) = yield Ask((self._reign.confirm(),), PATIENCE_NS)
        reply(Refused(NO_TABLE if self._reign.is_confirmed(answer) else NOT_CONFIRMED))

    # Writes.

    def _insert(
        self,
        table: str,
        changes: tuple[tuple[Json, Json, int, int], ...],
        reply: Reply,
        mops: tuple[MicroOp, ...],
        value: Json = None,
    ) -> None:
        def then(ts: int) -> None:
            reply(Done(self._reign.epoch, mops, value, commit_ts=ts))

        self._commits.add(Write(table, changes, then, (table,)))

    def _read_then_append(
        self, mops: tuple[MicroOp, ...], table: str, changes: tuple[tuple[Json, Json, int, int], ...], reply: Reply
    ) -> None:
        reads = tuple(mop for mop in mops if mop.f == "r")

        def prepare(write: Write) -> Procedure[None]:
            found = yield from self._inner(_wanted((_table(mop), mop.key) for mop in reads))
            if isinstance(found, Failed):
                self._commits.drop(write)
                reply(Refused(found.reason))
                return
            seen = _filled(mops, found)
            write.then = lambda ts: reply(Done(self._reign.epoch, seen, None, found.ts, ts))
            self._commits.ready(write)

        tables = tuple(dict.fromkeys([table, *(_table(mop) for mop in reads)]))
        self._commits.add(Write(table, changes, _nothing, tables, is_alone=True, prepare=prepare))

    def _delete(self, request: Change, reply: Reply) -> None:
        table = request.table

        def prepare(write: Write) -> Procedure[None]:
            found = yield from self._inner(_wanted((table, key) for key, _, _ in request.rows))
            if isinstance(found, Failed):
                self._commits.drop(write)
                reply(Refused(found.reason))
                return
            held = [
                (key, value, rank, -1)
                for key, (values, ranks) in found.rows[table].items()
                for value, rank in zip(values, ranks, strict=True)
            ]
            rows: Json = [[table, key, value, -1] for key, value, _, _ in held]
            if not held:  # There is nothing to write: it ends as the read that it was.
                self._commits.drop(write)
                reply(self._done(found.ts, value=rows))
                return
            write.changes = tuple(held)
            write.then = lambda ts: reply(Done(self._reign.epoch, (), rows, found.ts, ts))
            self._commits.ready(write)

        self._commits.add(Write(table, (), _nothing, (table,), is_alone=True, prepare=prepare))

    def _inner(self, wanted: tuple[Wanted, ...]) -> Procedure[Found | Failed]:
        """The read of a read-then-write, which is always strict."""
        self._reign.site.context.sometimes("a read-then-write read")
        if planted.RTW_STALE_READ in self._reign.bugs:
            return (yield from free_read(self._reign, wanted))
        is_confirmed = planted.RTW_NOT_LINEARIZED not in self._reign.bugs
        return (yield from strict_read(self._reign, wanted, is_confirmed=is_confirmed))

    # Tables.

    def define(self, request: Define, reply: Reply, then: Callable[[], None]) -> None:
        """Create a table, or drop it: one record of the catalog."""
        names, kind = self._reign.names, Dropped if request.is_drop else Created
        if (request.table in names) != request.is_drop:
            reply(Refused(NO_TABLE if request.is_drop else "that name was given before"))
            return
        names.add(request.table)

        def written() -> None:
            then()
            reply(Done(self._reign.epoch))

        self._reign.record(kind(self._reign.epoch, request.table), written)

    def _done(self, ts: int, *, mops: tuple[MicroOp, ...] = (), value: Json = None) -> Done:
        return Done(self._reign.epoch, mops, value, read_ts=ts)


def _plain(value: Json) -> Json:
    """The value; a pair, which is a tuple in memory, as a list."""
    return [*value] if isinstance(value, tuple) else value


def _nothing(ts: int) -> None:
    """Do nothing: a read-then-write has no answer before it has read."""


def _table(mop: MicroOp) -> str:
    return mop.table or table_of(mop.key)


def _wanted(pairs: Iterable[tuple[str, Json]]) -> tuple[Wanted, ...]:
    """The keys of each table."""
    found: dict[str, dict[Json, None]] = {}
    for table, key in pairs:
        found.setdefault(table, {})[key] = None
    return tuple(Wanted(table, tuple(keys)) for table, keys in found.items())


def _filled(mops: tuple[MicroOp, ...], found: Found) -> tuple[MicroOp, ...]:
    """The micro-operations with the results of their reads."""
    return tuple(
        MicroOp("r", mop.key, [*found.rows[_table(mop)][mop.key][0]], mop.table, mop.lock) if mop.f == "r" else mop
        for mop in mops
    )
