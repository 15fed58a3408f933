"""What the servers show at the end, put together again in plain steps that share nothing with the servers' own code."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from checkers.history.names import Dictionary
from checkers.history.tables import rows, states
from harness.core.columns import APPEND
from harness.core.errors import HistoryError
from harness.core.record import Json

PEOPLE: Final = "people"
FULL, FILTERED, TABLE = "file", "filtered", "table"
LACKING: Final = "the servers showed no logs at rest"
Row = Mapping[str, Any]


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A row change in a log."""

    verb: str
    key: Json
    value: Json
    after: Json


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a piece."""

    kind: str
    table: str
    segment: int
    is_end: bool
    version: int
    keep: int
    changes: tuple[Change, ...]


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A piece in a log."""

    server: str
    trx: int
    segment: int
    is_end: bool
    start_ns: int
    entries: tuple[Entry, ...]

    @property
    def id(self) -> tuple[str, int]:
        """The transaction that it names."""
        return self.server, self.trx


class Logged(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a table log."""

    commit: int
    trx: int
    origin: str
    origin_commit: int
    pieces: tuple[Piece, ...]


class FileLog(msgspec.Struct, frozen=True, array_like=True):
    """A file log, with the heads of its records."""

    threshold: int
    heads: tuple[tuple[int, int], ...]
    pieces: tuple[Piece, ...]


class Held(msgspec.Struct, frozen=True, array_like=True):
    """The rows of a server."""

    lists: tuple[tuple[Json, tuple[Json, ...]], ...]
    people: tuple[tuple[Json, Json], ...]
    versions: tuple[tuple[str, int], ...]
    error: str | None


class Observed(msgspec.Struct, frozen=True, array_like=True):
    """What the observer has of a master: the pieces so far, lists, open transactions, and what stopped it."""

    place: int
    lists: tuple[tuple[Json, tuple[Json, ...]], ...]
    opened: tuple[str, ...]
    error: str | None


class Whole(NamedTuple):
    """A transaction of a log that ended there, and was not rolled back: its statements that count."""

    id: tuple[str, int]
    statements: tuple[tuple[Entry, tuple[Change, ...]], ...]

    @property
    def name(self) -> str:
        """Its name in sentences."""
        return f"{self.id[0]}:{self.id[1]}"

    def rows(self, tables: frozenset[str] | None = None) -> list[tuple[Json, Json]]:
        """The elements that it appends, in order; only to those tables, if given."""
        return [
            (change.key, change.value)
            for entry, changes in self.statements
            if entry.kind == "rows" and entry.table != PEOPLE and (tables is None or entry.table in tables)
            for change in changes
        ]


class Shown(NamedTuple):
    """All that the servers showed. `files` are by master and name."""

    files: Mapping[tuple[str, str], FileLog]
    tables: Mapping[str, tuple[Logged, ...]]
    held: Mapping[str, Held]
    skipped: Mapping[str, tuple[tuple[str, int], ...]]
    observed: Mapping[str, Observed]

    def logs(self) -> Iterator[tuple[str, str, list[Whole]]]:
        """Each log of what was born at its master: master, name, its transactions in order."""
        for (master, name), log in self.files.items():
            yield master, name, [*wholes(log.pieces)]
        for master, table in self.tables.items():
            yield master, TABLE, [*wholes([piece for each in table if each.origin == master for piece in each.pieces])]


def shown(history: Path) -> Shown | None:
    """What the servers showed; None if they showed nothing. Raises HistoryError if a record is damaged."""
    found = states(history, Dictionary(history), "file-log", "table-log", "rows", "skipped", "observed")
    try:
        files = {}
        for state in found["file-log"]:
            master, name = str(state.key).split(" ")
            files[master, name] = msgspec.convert(state.value, FileLog)
        tables = {str(each.key): msgspec.convert(each.value, tuple[Logged, ...]) for each in found["table-log"]}
        held = {str(each.key): msgspec.convert(each.value, Held) for each in found["rows"]}
        observed = {str(each.key): msgspec.convert(each.value, Observed) for each in found["observed"]}
        left = {str(each.key): msgspec.convert(each.value, tuple[tuple[str, int], ...]) for each in found["skipped"]}
    except (msgspec.ValidationError, ValueError) as error:
        raise HistoryError(f"{history}: the state of a server is damaged ({error})") from None
    return Shown(files, tables, held, left, observed) if files else None


def wholes(pieces: Sequence[Piece]) -> Iterator[Whole]:
    """The transactions whose last piece is there and that were not rolled back, in the order of their last pieces."""
    opened: dict[tuple[str, int], list[Entry]] = {}
    for piece in pieces:
        entries = opened.setdefault(piece.id, [])
        entries.extend(piece.entries)
        if piece.is_end:
            del opened[piece.id]
            if not any(entry.kind == "rollback" for entry in entries):
                yield Whole(piece.id, tuple(_statements(entries)))


def _statements(entries: Sequence[Entry]) -> list[tuple[Entry, tuple[Change, ...]]]:
    """The statements that count; one that stays open counts as well."""
    done: list[tuple[Entry, tuple[Change, ...]]] = []
    is_open = False
    for entry in entries:
        if entry.kind in ("rollback-statement", "rollback-to"):
            if is_open:
                done.pop()
            if entry.kind == "rollback-to":
                del done[entry.keep :]
            is_open = False
        elif is_open and entry.segment > 1:
            first, changes = done.pop()
            done.append((first, (*changes, *entry.changes)))
            is_open = not entry.is_end
        else:
            done.append((entry, entry.changes))
            is_open = not entry.is_end
    return done


def changed(people: dict[Json, Json], change: Change) -> None:
    """Carry out a change of a person: it has the key `after` from then on."""
    people.pop(change.key, None)
    people[change.after] = change.value


class Op(NamedTuple):
    """An operation that appends, with its appends in order."""

    number: int
    row: Row
    appends: list[tuple[Json, Json]]


def ops(history: Path) -> list[Op]:
    """All operations that append."""
    names = Dictionary(history)
    columns = ["index", "f", "outcome", "node", "invoke_ns", "complete_ns", "is_txn", "txn"]
    appends: dict[int, list[tuple[Json, Json]]] = {}
    for mop in rows(history, "mops", ["op", "position", "f", "key", "value"], f=[APPEND]):
        appends.setdefault(mop["op"], []).append((names.value(mop["key"]), names.value(mop["value"])))
    return [
        Op(row["index"], row, appends[row["index"]]) for row in rows(history, "ops", columns) if row["index"] in appends
    ]
