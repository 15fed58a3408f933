"""Transactions put together again from their pieces.

Theory of operation. A reader keeps what it has of each transaction, and knows its rows when the last piece comes.
1. Pieces come in the order of their numbers, without a hole. A piece that does not fit is an error.
2. A statement that was cut goes on in the next entry, or is cancelled there; a statement that was not cancelled is
   complete when the transaction is.
"""

from typing import Final

from clusters.drizzle.messages import Change, Entry, Piece

Rows = tuple[tuple[Entry, tuple[Change, ...]], ...]
ROLLED_BACK: Final = "rolled back"


class BadPieces(Exception):
    """The pieces of a transaction are not what they must be."""


class Assembly:
    """What a reader has of one transaction: its complete statements, and the one in progress."""

    def __init__(self) -> None:
        self._next = 1
        self._done: list[tuple[Entry, tuple[Change, ...]]] = []
        self._open: tuple[Entry, tuple[Change, ...]] | None = None
        self.is_rolled_back = False

    def add(self, piece: Piece) -> bool:
        """Add a piece. True if it is the last one. Raises BadPieces."""
        if piece.segment != self._next:
            raise BadPieces(f"piece {piece.segment} of {piece.trx} came, and {self._next} is the next one")
        self._next += 1
        for entry in piece.entries:
            self._add(entry, piece)
        if piece.is_end and self._open is not None and not self.is_rolled_back:
            raise BadPieces(f"{piece.trx} ended inside a statement")
        return piece.is_end

    def _add(self, entry: Entry, piece: Piece) -> None:
        match entry.kind:
            case "rollback":
                self.is_rolled_back = True
            case "rollback-statement":
                self._open = None
            case "rollback-to":
                self._open = None
                del self._done[entry.keep :]
            case "rows" | "ddl":
                if (self._open is None) != (entry.segment == 1):
                    raise BadPieces(f"a statement of {piece.trx} is not continued in piece {piece.segment}")
                before = () if self._open is None else self._open[1]
                whole = (entry, (*before, *entry.changes))
                self._open = None if entry.is_end else whole
                if entry.is_end:
                    self._done.append(whole)

    @property
    def rows(self) -> Rows:
        """The statements that count, each with its changes."""
        return () if self.is_rolled_back else tuple(self._done)

    @property
    def so_far(self) -> Rows:
        """The statements of which pieces have come, with what they have."""
        return (*self._done, self._open) if self._open is not None else tuple(self._done)


def assembled(pieces: tuple[Piece, ...]) -> Rows:
    """The statements of a transaction, all of whose pieces are there. Raises BadPieces."""
    whole = Assembly()
    ended = [whole.add(piece) for piece in pieces]
    if ended != [False] * (len(pieces) - 1) + [True]:
        raise BadPieces("pieces are missing")
    return whole.rows
