"""Group commit: all writes that wait get one timestamp, and go to their tables together.

Theory of operation. Writes queue. At a tick, if the clock has reached the last timestamp that was handed out, all
writes that can hold their tables (locks.py) are committed together.
1. One timestamp is handed out in a unit of time at most, so timestamps do not run ahead of the clock.
2. If there is no write for an interval, an empty group commit advances all tables, so that reads stay fresh.
3. A client gets its answer when its rows are durable, and reads see them: the oracle's read timestamp moves first.
4. A read-then-write gets its tables first, reads, and then commits with a later group commit.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusters.materialize import planted
from clusters.materialize.collections import Update
from clusters.materialize.coordinator.locks import Locks
from clusters.materialize.coordinator.oracle import Timeline
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.coordinator.tables import Entry, Table
from clusters.materialize.shape import MS
from clusters.parts.routing import Procedure
from harness.core.record import Json

Change = tuple[Json, Json, int, int]  # A row to be written: key, value, its rank if it goes (else 0), and its diff.


@dataclass(slots=True)
class Write:
    """Rows for one table. `then` gets the timestamp at which they are durable.

    `tables` are held until then; with `is_alone` a read-then-write holds them already. `prepare`: it still has to read.
    """

    table: str
    changes: tuple[Change, ...]
    then: Callable[[int], None]
    tables: tuple[str, ...]
    is_alone: bool = False
    prepare: "Callable[[Write], Procedure[None]] | None" = None


class Commits:
    """The group commits of a timeline under one reign."""

    def __init__(self, reign: Reign, timeline: Timeline, tables: Mapping[str, Table], interval_ms: int) -> None:
        self._reign = reign
        self._timeline = timeline
        self._tables = tables
        self._interval_ns = interval_ms * MS
        self._queue: deque[Write] = deque()
        self._ready: list[Write] = []  # Read-then-writes that have read.
        self._locks = Locks()
        self._last_ns = 0
        self._is_saving = False
        self._missing = 0  # Tables that do not have the last group yet.
        self.is_waiting = False  # For the clock.

    def add(self, write: Write) -> None:
        """Queue a write."""
        self._queue.append(write)

    def ready(self, write: Write) -> None:
        """Commit a read-then-write that has read, with the next group."""
        self._ready.append(write)

    def drop(self, write: Write) -> None:
        """Give up a read-then-write that has nothing to write."""
        self._locks.release(self._held(write), is_alone=True)

    def tick(self) -> None:
        """Commit what waits, if it is time."""
        reign, oracle = self._reign, self._timeline.oracle
        is_lax = planted.PERSIST_AFTER_USE in reign.bugs
        if reign.is_over or (self._is_saving and not is_lax):
            return
        if self._missing and planted.ONE_SHARD_BLOCKS_ALL in reign.bugs:
            return
        self._start_reads()
        now = self._timeline.now()
        is_hasty = planted.NO_THROTTLE in reign.bugs or planted.NONMONOTONE_CLOCK in reign.bugs
        self.is_waiting = oracle.write_ts > now and not is_hasty
        if self.is_waiting:
            reign.site.context.sometimes("a group commit waited for the clock")
            return
        is_due = self._timeline is reign.wall and reign.site.now_ns() >= self._last_ns + self._interval_ns
        if not is_due and not self._ready and not any(write.prepare is None for write in self._queue):
            return
        ts = self._next(now)
        if ts >= oracle.bound and not self._is_saving:
            self._is_saving = True
            reign.persist_bound(self._timeline, ts, self._saved)
            if not is_lax:
                return
        oracle.take(ts)
        reign.site.context.point("timestamp-taken")
        self._commit(ts, [*self._ready, *self._startable()])
        self._ready = []

    def _next(self, now: int) -> int:
        """The timestamp of the next group."""
        if planted.NONMONOTONE_CLOCK in self._reign.bugs:
            return now
        if planted.WRITE_REUSES_READ_TS in self._reign.bugs:
            return max(self._timeline.oracle.read_ts, now)
        return self._timeline.oracle.next_write(now)

    def _saved(self) -> None:
        self._is_saving = False
        self.tick()

    def _held(self, write: Write) -> tuple[str, ...]:
        return () if write.is_alone and planted.OCC_RETRY_SAME_DIFFS in self._reign.bugs else write.tables

    def _start_reads(self) -> None:
        """Let the read-then-writes begin that can hold their tables, in the order of the queue."""
        self._scan(is_reading=True)

    def _startable(self) -> list[Write]:
        """The plain writes that can hold their tables, in the order of the queue."""
        return self._scan(is_reading=False)

    def _scan(self, *, is_reading: bool) -> list[Write]:
        """Take the writes of one kind, except where an earlier one waits for the same table."""
        blocked: set[str] = set()
        left: deque[Write] = deque()
        found = []
        for write in self._queue:
            tables, is_alone = self._held(write), write.is_alone
            is_free = blocked.isdisjoint(tables) and self._locks.is_free(tables, is_alone=is_alone)
            if is_free and is_alone == is_reading:
                self._locks.take(tables, is_alone=is_alone)
                found.append(write)
            else:
                if is_alone or not is_free:
                    blocked.update(tables)
                left.append(write)
        self._queue = left
        if is_reading:
            for write in found:
                assert write.prepare is not None
                self._reign.site.procedures.run(write.prepare(write))
        return found

    def _commit(self, ts: int, batch: list[Write]) -> None:
        """Append the rows of a batch, and nothing to all other tables."""
        reign = self._reign
        self._last_ns = reign.site.now_ns()
        self._missing = len(self._tables)
        if len({write.table for write in batch}) > 1:
            reign.site.context.sometimes("a group commit wrote several tables")
        rank = 0
        for shift, (name, table) in enumerate(self._tables.items()):
            own = [write for write in batch if write.table == name]
            at = ts + shift if planted.BATCH_SPLIT in reign.bugs else ts
            updates = []
            for write in own:
                for key, value, old, diff in write.changes:
                    rank += 1
                    updates.append(Update(key, value, old or ts << 20 | rank, at, diff))
            table.push(Entry(at, tuple(updates), lambda own=own: self._durable(ts, own)))  # type: ignore[misc]  # A default.
        if planted.BATCH_SPLIT in reign.bugs:
            self._timeline.oracle.take(ts + len(self._tables))
        if not batch:
            reign.site.context.sometimes("an empty group commit advanced the tables")

    def _durable(self, ts: int, writes: list[Write]) -> None:
        """Show durable rows to reads, and answer who wrote them (3)."""
        self._missing -= 1
        self._reign.site.context.point("before-apply")
        self._reign.applied(self._timeline, ts)
        self._reign.site.context.point("before-answer")
        for write in writes:
            self._locks.release(self._held(write), is_alone=write.is_alone)
            write.then(ts)
