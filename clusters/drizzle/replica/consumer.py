"""The consumer of a replica: applies the queue, transaction by transaction.

Theory of operation.
1. It takes the transactions of a source in the order of their commit ids. A transaction must be whole: else the replica
   stops, and shows why. Nothing of it is applied, and nothing behind it.
2. All rows, the position in the source's log, and the entry of the replica's own table log are one record. So after a
   crash the position is where the rows are, and what lies below it leaves the queue.
3. A master logs what it applies with the origin that it had.
4. Rows must come under the version of their table that the replica has by then.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Assembly, BadPieces, Rows, assembled
from clusters.drizzle.logs.engine import Engine, Taken, applied, entry
from clusters.drizzle.messages import Change, Committed
from clusters.drizzle.replica.producer import Queued
from clusters.drizzle.shape import MASTERS, MS, PEOPLE
from clusters.drizzle.site import Site
from harness.core.machine import NodeId
from harness.core.record import Json

LATER: Final = "later"
LATER_NS: Final = 15 * MS  # Of planted bugs.


class Consumer:
    """The consumer of a server, for all its sources."""

    def __init__(self, site: Site, engine: Engine, new_trx: Callable[[], int]) -> None:
        self._site, self._engine, self._new_trx = site, engine, new_trx
        self._queue: list[Queued] = []
        self.applied: dict[NodeId, int] = dict(engine.positions)  # Written, and perhaps not yet durable.
        self.error = ""
        self._versions = dict(engine.versions)  # Of the tables, with what is not yet durable.
        self._half: Queued | None = None  # Of planted bugs: a transaction of which one of two steps was made.

    def queued(self, queued: Queued) -> None:
        """A transaction is in the queue."""
        self._queue.append(queued)

    @property
    def is_empty(self) -> bool:
        """True if all that is in the queue is applied and durable."""
        return not self._queue and self.applied == self._engine.positions

    def apply(self) -> None:
        """Apply all that is in the queue (1)."""
        while self._queue and not self.error and self._half is None:
            self._queue.sort(key=lambda each: (each.source, each.found.commit))
            queued = self._queue.pop(0)
            if queued.found.commit <= self.applied.get(queued.source, 0) and not self._looks_at_no_position():
                continue
            try:
                rows = self._checked(queued)
            except BadPieces as reason:
                self.error = f"{queued.source} {queued.found.trx}: {reason}"
                self._site.context.sometimes("a replica stopped")
                return
            self._apply(queued, rows)

    def _looks_at_no_position(self) -> bool:
        return bool({planted.APPLY_THEN_DELETE, planted.POSITION_IN_MEMORY} & self._site.bugs)

    def _checked(self, queued: Queued) -> Rows:
        """The statements of a transaction (1). Raises BadPieces."""
        pieces = queued.found.pieces
        if planted.APPLY_INCOMPLETE in self._site.bugs:
            part = Assembly()
            part.add(pieces[0])
            return part.so_far
        rows = assembled(pieces)
        versions = dict(self._versions)
        for entry_, _ in rows:
            if entry_.kind == "ddl":
                versions[entry_.table] = versions.get(entry_.table, 0) + 1
            if entry_.table != PEOPLE and entry_.version != versions.get(entry_.table, 0):
                raise BadPieces(f"rows of version {entry_.version} of {entry_.table} came")
        self._versions = versions
        if planted.NULL_AND_ESCAPE in self._site.bugs:
            return tuple((entry_, tuple(map(_escaped, changes))) for entry_, changes in rows)
        if planted.UPDATE_BY_FULL_ROW in self._site.bugs:
            return tuple((entry_, tuple(map(_by_full_row, changes))) for entry_, changes in rows)
        return rows

    def _apply(self, queued: Queued, rows: Rows) -> None:
        """Apply a transaction (2)."""
        found = queued.found
        trx = self._new_trx()
        self._site.context.point("before-apply")
        is_ddl = any(each.kind == "ddl" for each, _ in rows)
        if planted.POSITION_BEFORE_APPLY in self._site.bugs or (is_ddl and planted.DDL_SPLITS_APPLY in self._site.bugs):
            self._in_two_steps(queued, rows, trx, is_position_first=not is_ddl)
            return
        self.applied[queued.source] = max(found.commit, self.applied.get(queued.source, 0))
        self._write(rows, self._entry(queued, trx))
        self._site.context.point("applied")
        if len(found.pieces) > 1:
            self._site.context.sometimes("a replica applied a transaction of several pieces")

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
        self._site.context.set_timer(LATER, LATER_NS)

    def go_on(self) -> None:
        """Make the second of two steps."""
        if self._half is not None:
            self._write(*self._steps.pop(0))
            source = self._half.source
            self.applied[source] = max(self._half.found.commit, self.applied.get(source, 0))
            self._half = None
            self.apply()


def _escaped(change: Change) -> Change:
    """A change as it is if NULL and quotes get lost."""
    value: Json = "" if change.value is None else change.value
    return Change(change.verb, change.key, value.replace("'", "") if isinstance(value, str) else value, change.after)


def _by_full_row(change: Change) -> Change:
    """A change whose row is looked for by its new key."""
    return change if change.after is None else Change(change.verb, change.after, change.value, change.after)
