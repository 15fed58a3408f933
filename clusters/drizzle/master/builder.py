"""The builder of transaction messages, one for each session.

Theory of operation. A transaction's statements are collected in one message until that has so many rows as the
threshold; then it leaves as a piece, and the next row begins another one with the same transaction id. So pieces go out
before the outcome is known.
1. The pieces of a transaction are numbered from 1, without a hole; the last one alone has the end flag.
2. A cut inside a statement leaves it open: the next piece continues it, or cancels it.
3. What leaves the message by an error or a savepoint is cancelled if a piece with it has gone out, and else dropped.
4. A transaction of which a piece went out always gets a last piece: of its commit, perhaps empty, or its rollback.
"""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from clusters.drizzle import planted
from clusters.drizzle.messages import Change, Entry, Piece
from harness.core.machine import NodeId


class Mark(NamedTuple):
    """A savepoint: the piece in progress, its entries, and how many statements the transaction has by then."""

    segment: int
    entries: tuple[Entry, ...]
    keep: int


class LogRefused(Exception):
    """A log refused a piece."""


class Builder:
    """The message of one session. `send` carries a piece to all streams; `new_trx` gives transaction ids."""

    def __init__(
        self,
        server: NodeId,
        bugs: frozenset[str],
        threshold: int,
        new_trx: Callable[[], int],
        send: Callable[[Piece], bool],
        now_ns: Callable[[], int],
    ) -> None:
        self._server, self._bugs, self._threshold = server, bugs, threshold
        self._new_trx, self._send, self._now_ns = new_trx, send, now_ns
        self.reset()

    def reset(self) -> None:
        """Begin a transaction."""
        self.trx: int | None = None
        self.has_sent = False
        self.pieces: list[Piece] = []  # The pieces so far.
        self._segment = 1
        self._entries: list[Entry] = []
        self._start_ns = 0
        self._keep = 0  # Its complete statements that were not undone.
        self._is_open = False  # A statement is in progress,
        self._is_cut = False  # and a piece with rows of it went out.

    def add(self, table: str, version: int, change: Change) -> None:
        """Add a row of the statement in progress, and cut before it if the message is full. Raises LogRefused."""
        if self.trx is None:
            self.trx, self._start_ns = self._new_trx(), self._now_ns()
        segment = 1
        if self._is_full():
            segment = self._cut()
        entries = self._entries
        if self._is_open and segment == 1 and entries and not entries[-1].is_end:
            entries[-1] = replace(entries[-1], changes=(*entries[-1].changes, change))
        elif not (self._is_cut and planted.FINAL_WITH_OPEN_STMT in self._bugs):
            entries.append(Entry("rows", table, segment, False, version, changes=(change,)))
        self._is_open = True

    def _is_full(self) -> bool:
        if planted.THRESHOLD_ON_STATEMENT in self._bugs:
            return bool(self._entries) and self._is_open and len(self._entries[-1].changes) >= self._threshold
        return sum(len(entry.changes) for entry in self._entries) >= self._threshold

    def _cut(self) -> int:
        """Send the message as a piece, and return the number of the next piece in the statement in progress."""
        segment = self._entries[-1].segment + 1 if self._is_open and not self._entries[-1].is_end else 1
        self._is_cut = self._is_open
        self._leave(is_end=planted.END_FLAG_ALWAYS_TRUE in self._bugs)
        if planted.SEG_ID_NOT_RAISED not in self._bugs:
            self._segment += 1
        if planted.TRX_ID_NEW_PER_PIECE in self._bugs:
            self.trx, self._segment = self._new_trx(), 1
        if planted.CONTEXT_OF_NOW in self._bugs:
            self._start_ns = self._now_ns()
        return segment

    def end_statement(self) -> None:
        """The statement in progress is done."""
        if self._is_open:
            self._close()
            self._keep += 1

    def _close(self) -> None:
        if self._entries and not self._entries[-1].is_end:
            self._entries[-1] = replace(self._entries[-1], is_end=True)
        self._is_open = self._is_cut = False

    def fail_statement(self) -> None:
        """The statement in progress failed (3)."""
        if not self._is_open:
            return
        if planted.STMT_ERROR_KEEPS_PARTIAL in self._bugs and not self._is_cut:
            self._close()
            return
        if planted.STMT_ERROR_SEGMENTED_IGNORED not in self._bugs or not self._is_cut:
            if self._entries and not self._entries[-1].is_end:
                self._entries.pop()
            if self._is_cut:
                self._entries.append(Entry("rollback-statement"))
        if planted.STMT_ERROR_CLEARS_ALL in self._bugs and not self._is_cut:
            self._entries.clear()
        self._is_open = self._is_cut = False

    def mark(self) -> Mark:
        """A savepoint here."""
        return Mark(self._segment, tuple(self._entries), self._keep)

    def rollback_to(self, mark: Mark) -> None:
        """Take back all statements since that savepoint (3)."""
        if planted.SAVEPOINT_IGNORED in self._bugs:
            return
        if planted.SAVEPOINT_COPY in self._bugs:
            self._segment, self._entries = mark.segment, list(mark.entries)
        elif mark.segment == self._segment:
            self._entries = list(mark.entries)
        else:
            self._entries = [Entry("rollback-to", keep=mark.keep)]
        self._keep = mark.keep
        self._is_open = self._is_cut = False

    def schema_change(self, trx: int, table: str, version: int) -> Piece:
        """The message of a schema change, which is a transaction by itself."""
        self.trx, self._start_ns = trx, self._now_ns()
        self._entries = [Entry("ddl", table, version=version)]
        return self._piece(is_end=True)

    def last_piece(self) -> Piece | None:
        """The last piece of a commit (4); None if the transaction has nothing to log."""
        if self.trx is None or not (self.has_sent or self._entries):
            return None
        if not self._entries and planted.EMPTY_FINAL_DROPPED in self._bugs:
            return None
        return self._piece(is_end=True)

    def finish(self, last: Piece) -> None:
        """Send the last piece. Raises LogRefused."""
        if not self._send(last):
            raise LogRefused

    def rollback_piece(self) -> Piece | None:
        """The piece of a rollback (4); None if nothing went out."""
        if planted.ROLLBACK_FOR_SINGLE in self._bugs and self.trx is not None and not self.has_sent:
            self.trx += 1  # The id that the next transaction gets.
        elif not self.has_sent or planted.NO_ROLLBACK_MESSAGE in self._bugs or self._is_missed():
            return None
        if planted.ROLLBACK_OWN_ID in self._bugs:
            self.trx = self._new_trx()
        self._entries = [Entry("rollback")]
        return self._piece(is_end=True)

    def _is_missed(self) -> bool:
        """True if a planted bug finds no reason for a rollback in the message."""
        is_seen = any(each.segment > 1 for each in self._entries)
        return planted.ROLLBACK_BY_STATEMENT_SEG in self._bugs and not is_seen

    def _piece(self, *, is_end: bool) -> Piece:
        assert self.trx is not None
        return Piece(self._server, self.trx, self._segment, is_end, self._start_ns, tuple(self._entries))

    def _leave(self, *, is_end: bool) -> None:
        """Send the message as a piece. Raises LogRefused."""
        piece = self._piece(is_end=is_end)
        if self._send(piece):
            self.pieces.append(piece)
            self.has_sent = True
        elif planted.MID_PIECE_ERROR_IGNORED not in self._bugs:
            raise LogRefused
        self._entries = []
