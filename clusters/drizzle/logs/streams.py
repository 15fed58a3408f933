"""The streams of a master: each is a replicator, which may filter, with an applier that writes a file log.

Theory of operation.
1. A piece goes to all streams or to none: all are asked before any writes. A refused piece fails its statement.
2. A filtered stream numbers its own pieces, without a hole. It sends nothing of a transaction until there is a
   statement that it admits; from then on the transaction ends there as well, perhaps with an empty piece.
3. Cancellations concern statements: the filter counts those that it admitted.
4. The full log is written first, so a restart finds in it whatever the filtered log lacks.
"""

from collections.abc import Callable

from msgspec.structs import replace

from clusters.drizzle import planted
from clusters.drizzle.logs.file_log import FileLog
from clusters.drizzle.messages import Entry, Piece
from clusters.drizzle.shape import ADMITTED


class _Kept:
    """What a filter knows of one open transaction."""

    def __init__(self) -> None:
        self.segment = 0  # The pieces that went out.
        self.admitted: list[bool] = []  # For each complete statement.
        self.is_open_admitted: bool | None = None  # The same for the statement in progress.


class Filter:
    """A replicator that admits some tables alone."""

    def __init__(self, bugs: frozenset[str]) -> None:
        self._bugs = bugs
        self._kept: dict[int, _Kept] = {}

    def pass_on(self, piece: Piece) -> Piece | None:
        """The piece as the stream has it (2); None if nothing of it goes there."""
        kept = self._kept.setdefault(piece.trx, _Kept())
        entries = tuple(each for entry in piece.entries if (each := self._entry(entry, kept)) is not None)
        if piece.is_end:
            del self._kept[piece.trx]
        is_rollback = any(entry.kind == "rollback" for entry in entries)
        if not kept.segment and (not entries or is_rollback):
            return None
        if not entries and (not piece.is_end or planted.FILTER_DROPS_FINAL in self._bugs):
            return None
        kept.segment += 1
        return replace(piece, segment=kept.segment, entries=entries)

    def _entry(self, entry: Entry, kept: _Kept) -> Entry | None:
        match entry.kind:
            case "rollback":
                return entry
            case "rollback-statement":
                was_admitted, kept.is_open_admitted = kept.is_open_admitted, None
                return entry if was_admitted else None
            case "rollback-to":
                stays = sum(kept.admitted[: entry.keep])
                is_undone = stays < sum(kept.admitted) or bool(kept.is_open_admitted)
                del kept.admitted[entry.keep :]
                kept.is_open_admitted = None
                return replace(entry, keep=stays) if is_undone else None
            case _:
                is_admitted = entry.table in ADMITTED
                kept.is_open_admitted = None if entry.is_end else is_admitted
                if entry.is_end:
                    kept.admitted.append(is_admitted)
                return entry if is_admitted else None


class Streams:
    """All streams of a server."""

    def __init__(self, bugs: frozenset[str], full: FileLog, filtered: FileLog) -> None:
        self._bugs = bugs
        self._logs = (full, filtered)
        self._filter = Filter(bugs)

    def recover(self) -> None:
        """Write what a crash left out in the filtered log (4)."""
        passed = [each for piece in self._logs[0].pieces if (each := self._filter.pass_on(piece)) is not None]
        for piece in passed[len(self._logs[1].pieces) :]:
            self._logs[1].write(piece)

    def send(self, piece: Piece, refusing: int | None = None, then: Callable[[], None] | None = None) -> bool:
        """True if all streams have the piece (1); `then` is called when it is durable.

        `refusing`: the stream that refuses it.
        """
        if refusing is not None and planted.LOG_ERROR_IS_SUCCESS in self._bugs:
            if then is not None:
                then()
            return True
        if refusing is not None:
            if planted.TWO_STREAMS_PARTIAL in self._bugs:
                self._logs[1 - refusing].write(piece)
            return False
        self._logs[0].write(piece, then)
        if (passed := self._filter.pass_on(piece)) is not None:
            self._logs[1].write(passed)
        return True
