"""Commits and rollbacks: the order between the engine, the file logs and the table log.

Theory of operation.
1. Prepare; last piece to all streams; durable; commit in the engine, with the next commit id; durable; visible, locks
   released; answer. Transactions pass each of these in one order, as the disk completes syncs in order.
2. A refused last piece, or any error before, rolls the transaction back: the streams that have pieces of it get a
   rollback.
3. After a crash the file log decides about what was prepared, and what is open there gets a rollback, before anything
   new is written. Ids of transactions are never used again.
"""

from collections.abc import Generator
from typing import Final, Literal

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Rows
from clusters.drizzle.logs.engine import Engine, entry
from clusters.drizzle.logs.file_log import FileLog
from clusters.drizzle.logs.streams import Streams
from clusters.drizzle.master.builder import Builder
from clusters.drizzle.messages import Committed, Entry, Piece
from clusters.drizzle.shape import FIRST_TRX, LIFE_TRXS, MS
from clusters.drizzle.site import Site

DISK: Final[Literal["disk"]] = "disk"
Wait = Generator[int | Literal["disk"], None, None]
PAUSE_NS: Final = 30 * MS  # With planted bugs.


class Commits:
    """The commits of one server, in its `life`: the number of its starts."""

    def __init__(self, site: Site, engine: Engine, full: FileLog, filtered: FileLog, life: int) -> None:
        self.site, self.engine = site, engine
        self._full = full
        first = 0 if planted.CRASH_LEAVES_OPEN in site.bugs else life * LIFE_TRXS
        self._next_trx = FIRST_TRX + first
        self.streams = Streams(site.bugs, full, filtered)
        self.behind = 0  # Durable pieces that the observer does not have.

    def recover(self) -> None:
        """Decide about what a crash left open (3)."""
        self.streams.recover()
        last: dict[int, Piece] = {}
        for piece in self._full.pieces:
            last[piece.trx] = piece
        self.engine.decide([piece.trx for piece in self._full.pieces if piece.is_end and not _is_rollback(piece)])
        if planted.CRASH_LEAVES_OPEN in self.site.bugs:
            return
        for trx, piece in last.items():
            if not piece.is_end:
                self.site.context.sometimes("a restart rolled back what was open in the log")
                rollback = (Entry("rollback"),)
                self.streams.send(Piece(piece.server, trx, piece.segment + 1, True, piece.start_ns, rollback))

    def new_trx(self, *, is_ddl: bool = False) -> int:
        """The id of a new transaction."""
        if not (is_ddl and planted.DUP_TRX_ID_RAW_SQL in self.site.bugs):
            self._next_trx += 1
        return self._next_trx

    def commit(self, session: object, builder: Builder, rows: Rows) -> Wait:
        """Commit (1). Raises LogRefused."""
        bugs, trx = self.site.bugs, builder.trx
        final = builder.last_piece()
        if trx is None or (final is None and not rows):
            self.engine.release(session)
            return
        begin_ns = self.site.now_ns()
        pieces = (*builder.pieces, final) if final is not None else ()
        commit = None
        if planted.COMMIT_ID_BEFORE_COMMIT in bugs:
            commit = self.engine.next_commit()
            yield self.site.context.draw("pause").below(PAUSE_NS)
        self.engine.prepare(trx, rows, pieces)
        self.site.context.point("prepared")
        if planted.LOCKS_RELEASED_AT_PREPARE in bugs:
            self.engine.release(session)
            yield self.site.context.draw("pause").below(PAUSE_NS)
        if planted.DIRTY_LOG_READ in bugs:
            yield self.site.context.draw("pause").below(PAUSE_NS)
        is_late = planted.LOG_AFTER_COMMIT in bugs or planted.LOG_ORDER_NOT_COMMIT_ORDER in bugs
        if final is not None and not is_late:
            builder.finish(final)
            self.site.context.point("logged")
            if planted.SYNC_SKIPPED not in bugs:
                yield DISK
        if planted.COMMIT_WAITS_REPLICA in bugs:
            while self.behind:
                yield MS
        self.site.context.point("log-durable")
        yield from self._take(session, trx, rows, pieces, commit)
        self.site.context.point("committed")
        if final is not None and is_late:
            yield self.site.context.draw("pause").below(PAUSE_NS)
            builder.finish(final)
            yield DISK
        self.engine.release(session)
        self.site.context.probe("commit-ms", (self.site.now_ns() - begin_ns) // MS)

    def _take(self, session: object, trx: int, rows: Rows, pieces: tuple[Piece, ...], commit: int | None) -> Wait:
        """Commit in the engine."""
        number = self.engine.next_commit() if commit is None else commit
        taken = self.engine.commit(rows, entry(self.site.node, number, trx, pieces))
        self.site.context.point("commit-written")
        if planted.SYNC_SKIPPED not in self.site.bugs:
            yield DISK
        self.engine.show(taken)
        if planted.LOG_ORDER_NOT_COMMIT_ORDER in self.site.bugs:
            self.engine.release(session)

    def rollback(self, session: object, builder: Builder) -> None:
        """Roll back (2)."""
        had_sent = builder.has_sent
        if builder.trx is not None:
            self.engine.undo(builder.trx)
        piece = builder.rollback_piece()
        if piece is not None:
            self.site.context.sometimes("a transaction was rolled back of which pieces had gone out")
            self.streams.send(piece)
        if had_sent:
            self.engine.log.append(Committed(0, 0, self.site.node, 0, ()))  # An entry that is marked as deleted.
            if piece is not None and planted.ROLLBACK_PIECE_ALONE in self.site.bugs:
                commit = self.engine.next_commit()
                self.engine.show(self.engine.commit((), entry(self.site.node, commit, piece.trx, (piece,))))
        self.engine.release(session)


def _is_rollback(piece: Piece) -> bool:
    return any(each.kind == "rollback" for each in piece.entries)
