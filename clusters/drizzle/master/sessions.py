"""Sessions: each runs one transaction of a client, step by step, beside the others.

Theory of operation. A session is a generator that yields what it waits for: a time in ns, or the disk (`DISK`).
1. A row takes time, so that the pieces of several sessions come mixed. A session that waits too long for a lock is
   rolled back.
2. A failing statement is undone, and the transaction goes on. If a log refuses a piece, the transaction is rolled back.
3. Rows become visible at commit; a session sees its own before.
"""

from typing import Final

from clusters.drizzle import planted
from clusters.drizzle.logs.engine import Lock, change_people
from clusters.drizzle.master.builder import Builder, LogRefused, Mark
from clusters.drizzle.master.commits import Commits, Wait
from clusters.drizzle.messages import Change, Done, Entry, Piece, Refused, Run, Statement
from clusters.drizzle.shape import MS, PEOPLE, US, own_name, table_of
from harness.core.machine import Answer, NodeId
from harness.core.record import Json, MicroOp

LOCK_WAIT_NS: Final = 150 * MS
LOCK_POLL_NS: Final = 2 * MS


class RolledBack(Exception):
    """The transaction cannot go on."""


class Session:
    """One transaction of a client."""

    def __init__(self, commits: Commits, name: str, client: NodeId, number: int, run: Run) -> None:
        self._commits, self.name, self._client, self._number, self._run = commits, name, client, number, run
        self._site, self._engine = commits.site, commits.engine
        self._refusal = run.refusal
        self._done: list[tuple[Entry, tuple[Change, ...]]] = []
        self._results: list[MicroOp] = []
        self._savepoint: tuple[Mark, int] | None = None
        self._builder = Builder(
            self._site.node,
            self._site.bugs,
            self._site.parameters["threshold"],
            commits.new_trx,
            self._send,
            self._site.now_ns,
        )
        self.running = self._procedure()

    def _send(self, piece: Piece) -> bool:
        """Carry a piece to all streams. False if one of them refuses it."""
        self._refusal -= 1
        if self._refusal == 0:
            self._site.context.sometimes("a log refused a piece")
            return self._commits.streams.send(piece, refusing=piece.trx % 2)
        if not piece.is_end:
            self._site.context.sometimes("a piece left before its transaction ended")
        self._site.context.point("piece-sent")
        return self._commits.streams.send(piece)

    def _procedure(self) -> Wait:
        try:
            for step in self._run.steps:
                yield from self._step(step)
            rows = tuple(self._done)
            yield from self._commits.commit(self, self._builder, rows)
        except (RolledBack, LogRefused) as reason:
            self._commits.rollback(self, self._builder)
            self.answer(Refused(str(reason) or "a log refused a piece"))
        else:
            self.answer(Done(tuple(self._results), trx=self._builder.trx))

    def answer(self, answer: Done | Refused) -> None:
        """Answer the client."""
        self._site.context.point("before-answer")
        self._site.send(self._client, Answer(self._number, answer))

    def _step(self, step: Statement) -> Wait:
        match step.kind:
            case "read":
                yield from self._lock(step.keys[0])
                self._results.append(MicroOp("r", step.keys[0], self._seen(step.keys[0])))
            case "write" | "fail":
                yield from self._write(step)
                if step.kind == "write" and step.changes[0].verb == "insert":
                    self._results += [MicroOp("append", each.key, each.value) for each in step.changes if step.keys]
            case "savepoint":
                self._savepoint = (self._builder.mark(), len(self._done))
            case "rollback-to" if self._savepoint is not None:
                mark, length = self._savepoint
                del self._done[length:]
                self._builder.rollback_to(mark)
            case "ddl":
                table = own_name(str(step.keys[0]), self._site.node)
                yield from self._lock(("table", table))
                self._done.append((self._schema_change(table), ()))
            case "rollback":
                raise RolledBack("rolled back as requested")

    def _schema_change(self, table: str) -> Entry:
        version = self._engine.versions.get(table, 0) + 1
        self._builder.schema_change(self._commits.new_trx(is_ddl=True), table, version)
        return Entry("ddl", table, version=version)

    def _lock(self, name: Lock) -> Wait:
        end_ns = self._site.now_ns() + LOCK_WAIT_NS
        while not self._engine.lock(self, name):
            if self._site.now_ns() >= end_ns:
                self._site.context.sometimes("a session waited too long for a lock")
                raise RolledBack("waited too long for a lock")
            yield LOCK_POLL_NS

    def _write(self, step: Statement) -> Wait:
        """A statement, row by row. A row that was there already undoes all of it (2)."""
        table = PEOPLE if step.changes[0].verb != "insert" else table_of(step.changes[0].key)
        version = 0
        changes: list[Change] = []
        for place, wanted in enumerate(step.changes):
            for name in (wanted.key, wanted.after):
                if name is not None:
                    yield from self._lock(name)
            version = self._engine.versions.get(table, 0)  # It stays, as a row of the table is locked.
            is_last = place == len(step.changes) - 1
            if step.kind == "fail" and is_last:
                self._site.context.sometimes("a statement failed")
                self._builder.fail_statement()
                return
            change = self._effective(table, wanted)
            if change is None:
                continue
            self._builder.add(table, version, change)
            changes.append(change)
            yield self._site.parameters["row_us"] * US
        self._builder.end_statement()
        if changes:
            self._done.append((Entry("rows", table, version=version), tuple(changes)))

    def _effective(self, table: str, wanted: Change) -> Change | None:
        """What a statement changes; None if that is nothing: no event is logged then."""
        if table != PEOPLE:
            return wanted
        people = dict(self._engine.people)
        for entry, changes in self._done:
            for change in changes if entry.table == PEOPLE else ():
                change_people(people, change)
        if wanted.verb == "set":
            if wanted.key not in people:
                return Change("add", wanted.key, wanted.value, wanted.key)
            if people[wanted.key] == wanted.value and planted.NOOP_UPDATE_LOGGED not in self._site.bugs:
                self._site.context.sometimes("an update changed nothing")
                return None
            return Change("update", wanted.key, wanted.value, wanted.key)
        if wanted.key not in people or wanted.after in people:
            return None
        return Change("update", wanted.key, people[wanted.key], wanted.after)

    def _seen(self, key: Json) -> list[Json]:
        own = [
            each.value for entry, changes in self._done if entry.kind == "rows" for each in changes if each.key == key
        ]
        return [*self._engine.lists.get(key, ()), *own]
