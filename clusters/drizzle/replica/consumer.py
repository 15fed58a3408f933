"""The consumer of a replica: applies the queue, transaction by transaction.

Theory of operation.
1. It takes the transactions of a source in the order of their commit ids. A transaction must be whole: else the replica
   stops, and shows why. Nothing of it is applied, and nothing behind it.
2. All rows, the position in the source's log, and the entry of the replica's own table log are one record. So after a
   crash the position is where the rows are, and what lies below it leaves the queue.
3. A master logs what it applies with the origin that it had.
4. Rows must come under the version of their table that the replica has by then.
5. A transaction that inserts what is there already is left out, whole, and the replica shows so.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Assembly, BadPieces, Rows, assembled
from clusters.drizzle.logs.engine import Engine, Taken, applied, change_people, entry
from clusters.drizzle.messages import Change, Committed, Entry
from clusters.drizzle.replica.producer import Queued
from clusters.drizzle.shape import MASTERS, MS, OWN, PEOPLE, SOURCES
from clusters.drizzle.site import Site
from harness.core.machine import Message, NodeId
from harness.core.record import Json

LATER: Final = "later"
LATER_NS: Final = 15 * MS  # With planted bugs.


class Removed(Struct, frozen=True, tag=True):
    """On disk, with a planted bug: up to there the queue's transactions were taken out."""

    commit: int


class Consumer:
    """The consumer of a server, for all its sources. `removed` is what a planted bug has on disk."""

    def __init__(
        self, site: Site, engine: Engine, new_trx: Callable[[], int], removed: Callable[[str], Message | None]
    ) -> None:
        self._site, self._engine, self._new_trx = site, engine, new_trx
        self._queue: list[Queued] = []
        self.applied = dict(engine.positions)  # Written, and perhaps not yet durable, as the next two.
        self._people = dict(engine.people)
        self._versions = dict(engine.versions)
        self.error = ""
        self._known: set[int] = set()  # The rest is of planted bugs.
        self._removed = {source: _commit(removed(f"removed {source}")) for source in SOURCES[site.node]}
        self._in_memory: dict[NodeId, int] = {}
        self._half: Queued | None = None

    def queued(self, queued: Queued) -> None:
        """A transaction is in the queue."""
        if planted.BUFFER_BY_TRX_ONLY in self._site.bugs and queued.found.trx in self._known:
            return
        self._known.add(queued.found.trx)
        self._queue.append(queued)

    @property
    def is_empty(self) -> bool:
        """True if all that is in the queue is applied and durable."""
        return not self._queue and self._half is None and self.applied == self._engine.positions

    def is_applied(self, queued: Queued) -> bool:
        """True if a transaction is applied, by the position (2)."""
        position = self.applied.get(queued.source, 0)
        if planted.APPLY_THEN_DELETE in self._site.bugs:
            position = self._removed[queued.source]
        if planted.POSITION_IN_MEMORY in self._site.bugs:
            position = self._in_memory.get(queued.source, 0)
        return queued.found.commit <= position

    def forget(self, source: NodeId) -> None:
        """Forget what is only in memory, with a planted bug."""
        self._in_memory.pop(source, None)

    def apply(self) -> None:
        """Apply all that is in the queue (1)."""
        self._queue.sort(key=lambda each: (each.source, each.found.commit))
        while self._queue and not self.error and self._half is None:
            queued = self._queue.pop(0)
            if self.is_applied(queued):
                continue
            try:
                rows = self._translated(self._checked(queued))
            except BadPieces as reason:
                self.error = f"{queued.source} {queued.found.trx}: {reason}"
                self._site.context.sometimes("a replica stopped")
                return
            self._apply(queued, rows)

    def _checked(self, queued: Queued) -> Rows:
        """The statements of a transaction (1, 4). Raises BadPieces."""
        if planted.APPLY_INCOMPLETE in self._site.bugs:
            part = Assembly()
            part.add(queued.found.pieces[0])
            return part.so_far
        rows = assembled(queued.found.pieces)
        for each, _ in rows:
            if each.kind == "ddl":
                self._versions[each.table] = self._versions.get(each.table, 0) + 1
            if each.table != PEOPLE and each.version != self._versions.get(each.table, 0):
                raise BadPieces(f"rows of version {each.version} of {each.table} came")
        return rows

    def _translated(self, rows: Rows) -> Rows:
        """The statements as the replica runs them."""
        if planted.NULL_AND_ESCAPE in self._site.bugs:
            return tuple((each, tuple(map(_escaped, changes))) for each, changes in rows)
        if planted.UPDATE_BY_FULL_ROW in self._site.bugs:
            return tuple((each, tuple(map(_by_full_row, changes))) for each, changes in rows)
        return rows

    def _apply(self, queued: Queued, rows: Rows) -> None:
        """Apply a transaction (2), or leave it out (5)."""
        found, trx = queued.found, self._new_trx()
        self._site.context.point("before-apply")
        is_ddl = any(each.kind == "ddl" for each, _ in rows)
        if planted.POSITION_BEFORE_APPLY in self._site.bugs or (is_ddl and planted.DDL_SPLITS_APPLY in self._site.bugs):
            self._in_two_steps(queued, rows, trx, is_position_first=not is_ddl)
            return
        self.applied[queued.source] = max(found.commit, self.applied.get(queued.source, 0))
        self._in_memory[queued.source] = found.commit
        fitting = tuple((each, changes) for each, changes in rows if not self._conflicts(each, changes))
        is_left_out = len(fitting) < len(rows)
        if is_left_out:
            self._site.context.sometimes("a replica left a transaction out")
            rows = fitting if planted.IGNORE_ERRORS_PARTIAL in self._site.bugs else ()
        for each, changes in rows:
            for change in changes if each.table == PEOPLE else ():
                change_people(self._people, change)
        self._write(rows, replace(self._entry(queued, trx), is_left_out=is_left_out))
        self._site.context.point("applied")
        if planted.APPLY_THEN_DELETE in self._site.bugs:
            self._site.context.set_timer(LATER, LATER_NS)
        if len(found.pieces) > 1:
            self._site.context.sometimes("a replica applied a transaction of several pieces")

    def _conflicts(self, entry_: Entry, changes: tuple[Change, ...]) -> bool:
        """True if a row that is inserted is there already."""
        return entry_.table == PEOPLE and any(each.verb == "add" and each.key in self._people for each in changes)

    def insert(self, keys: tuple[Json, ...]) -> None:
        """Insert people that no master knows."""
        new = tuple(Change("add", key, OWN, key) for key in keys if key not in self._people)
        self._people.update({change.key: change.value for change in new})
        trx = self._new_trx()
        self._write(((Entry("rows", PEOPLE), new),), entry(self._site.node, self._engine.next_commit(), trx, ()))

    def _entry(self, queued: Queued, trx: int) -> Committed:
        """The entry of the replica's own table log (3)."""
        commit = self._engine.next_commit()
        own = applied(commit, trx, queued.source, queued.found, is_logged=self._site.node in MASTERS)
        if planted.ORIGIN_OVERWRITTEN in self._site.bugs:
            return Committed(
                commit, trx, self._site.node, commit, own.pieces, own.source, own.position, is_logged=own.is_logged
            )
        return own

    def _write(self, rows: Rows, committed: Committed) -> None:
        taken = self._engine.commit(rows, committed)
        self._site.sync(partial(self._durable, taken))

    def _durable(self, taken: Taken) -> None:
        self._engine.show(taken)

    def _in_two_steps(self, queued: Queued, rows: Rows, trx: int, *, is_position_first: bool) -> None:
        """Of planted bugs: rows and position in two records, some time apart."""
        self._half = queued
        whole = self._entry(queued, trx)
        nothing = entry(self._site.node, whole.commit, trx, ())
        self._steps = [((), whole), (rows, nothing)] if is_position_first else [(rows, nothing), ((), whole)]
        self._write(*self._steps.pop(0))
        self._site.context.point("applied")
        self._site.context.set_timer(LATER, LATER_NS)

    def go_on(self) -> None:
        """Make the second of two steps, of planted bugs."""
        if self._half is None:
            for source, position in self.applied.items():
                self._removed[source] = position
                self._site.context.put(f"removed {source}", Removed(position))
            return
        self._write(*self._steps.pop(0))
        source = self._half.source
        self.applied[source] = max(self._half.found.commit, self.applied.get(source, 0))
        self._half = None
        self.apply()


def _commit(removed: Message | None) -> int:
    return removed.commit if isinstance(removed, Removed) else 0


def _escaped(change: Change) -> Change:
    """A change as it is if NULL and quotes get lost."""
    value: Json = "" if change.value is None else change.value
    return Change(change.verb, change.key, value.replace("'", "") if isinstance(value, str) else value, change.after)


def _by_full_row(change: Change) -> Change:
    """A change whose row is looked for by its new key."""
    return change if change.after is None else Change(change.verb, change.after, change.value, change.after)
