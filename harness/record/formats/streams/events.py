"""The events of a foreign stream: columns as the file has them, and from these the rows of a history.

Keys and values are ids of names. Sessions, partitions, tables and units are places in tables of the file. NEVER stands
for what a line does not have.
"""

from collections.abc import Iterator, Sequence
from itertools import count, repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from harness.core.columns import COMMIT, KINDS, NAMED, NEVER, OPEN, Bools, Int64s
from harness.core.record import Json
from harness.record.formats.parquet.bulk_names import BulkNames
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.journal import canonical_rows

_BATCH: Final = 50_000
_PART: Final = 1_000
_TAG: Final = "event"
_INT_MAX: Final = (1 << 63) - 1
CELLS: Final = (
    "kind", "session", "span", "table", "key", "value", "position", "ordinal", "epoch", "unit", "unit_rows", "ns",
    "line", "file", "table_ordinal", "is_first",
)  # fmt: skip
FIELDS: Final = (
    "ns", "subscriber", "session", "number", "kind", "span", "key", "value", "position", "ordinal", "epoch", "unit",
    "unit_rows",
)  # fmt: skip
Columns = dict[str, Int64s]  # Arrays of one length, by name.


class Table:
    """Values and their places, in the order of their first appearances."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        """The place of that value, which it gets if it has none; NEVER for None."""
        return NEVER if value is None else self._places.setdefault(value, len(self._places))

    def places(self, values: Sequence[Any]) -> Int64s:
        """The places of those values."""
        distinct, known = dict.fromkeys(values), self._places
        new = [each for each in distinct if each is not None and each not in known]
        known.update(zip(new, count(len(known)), strict=False))
        if len(distinct) == 1:
            return np.full(len(values), known.get(values[0], NEVER))
        return np.array(list(map(known.get, values, repeat(NEVER))), np.int64)

    def values(self) -> list[Any]:
        """All values in order."""
        return list(self._places)


class Cells:
    """The events of a file as they are read, many at a time."""

    def __init__(self) -> None:
        self._parts: list[Int64s] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, columns: Columns) -> None:
        """Add events by their columns, which CELLS names."""
        self._parts.append(np.stack([columns[name] for name in CELLS]))
        self._count += self._parts[-1].shape[1]

    def columns(self) -> Columns:
        """A copy of all events."""
        none = np.empty((len(CELLS), 0), np.int64)
        return dict(zip(CELLS, np.concatenate([none, *self._parts], axis=1), strict=True))


class Commit(NamedTuple):
    """The end of a unit, by row `row` of the file; an event before row `before`. `rows`: the size of the unit."""

    before: int
    row: int
    unit: int
    rows: int


def in_sequence(columns: Columns, commits: Sequence[Commit], is_kept: Bools) -> tuple[Columns, Int64s]:
    """The kept events and the commits in their order; and for each its row among the columns, -1 for a commit.

    A commit of a unit before all other events is left out. Events without a time get their number as their time.
    """
    count, more = len(is_kept), len(commits)
    if not more and is_kept.all():  # As most files are: nothing moves.
        return columns | {"ns": np.where(columns["ns"] == NEVER, np.arange(count), columns["ns"])}, np.arange(count)
    order = np.argsort(np.append([each.before for each in commits], np.arange(count)), kind="stable")
    row = np.append(np.full(more, -1), np.arange(count))[order]
    added = {
        "kind": [COMMIT] * more,
        "session": [0] * more,  # Only a stream of one session has commits of this kind.
        "line": columns["line"][[each.row for each in commits]],
        "file": columns["file"][[each.row for each in commits]],
        "unit": [each.unit for each in commits],
        "unit_rows": [each.rows for each in commits],
    }
    result = {
        name: np.append(np.array(added.get(name, [NEVER] * more), np.int64), column)[order]
        for name, column in columns.items()
    }
    moment = np.cumsum(result["kind"] < len(KINDS)) - 1
    result["ns"] = np.where(result["ns"] == NEVER, moment, result["ns"])
    is_event = np.append(np.ones(more, np.bool_), is_kept)[order]
    is_end = (row < 0) & (result["unit"] != NEVER)
    is_event &= ~is_end | (np.cumsum(is_event & ~is_end) > 0)
    return {name: column[is_event] for name, column in result.items()}, row[is_event]


def with_sessions(
    columns: Columns, row: Int64s, sessions: Sequence[tuple[str, Json]], lowest: Int64s
) -> tuple[Columns, Int64s]:
    """The events with the numbers of their sessions and inside of them, and with the opens that sessions do not have.

    `lowest` (s,) are the positions just above which a session opens; NEVER for a session that needs no open.
    """
    which = columns["session"]
    present, first = np.unique(which, return_index=True)
    by_time = np.argsort(first)
    present, first = present[by_time], first[by_time]
    order = np.argsort(which, kind="stable")
    sizes = np.bincount(which, minlength=len(sessions))
    number = np.empty(len(which), np.int64)
    number[order] = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_opened = lowest[present] != NEVER
    opened, at = present[is_opened], first[is_opened]
    columns = columns | {
        "session": _session_numbers(sessions, present)[which],
        "subscriber": which,
        "number": number + np.isin(which, opened),
    }
    opens = {name: columns[name][at] for name in ("ns", "subscriber", "session", "line", "file")}
    opens |= {"number": np.zeros(len(at), np.int64), "kind": np.full(len(at), OPEN), "position": lowest[opened] - 1}
    nothing = np.full(len(at), NEVER)
    result = {name: np.insert(column, at, opens.get(name, nothing)) for name, column in columns.items()}
    return result, np.insert(row, at, -1)


def _session_numbers(sessions: Sequence[tuple[str, Json]], present: Int64s) -> Int64s:
    """The number of each session: its own if that is a number, else the subscriber's next."""
    result = np.zeros(len(sessions), np.int64)
    counts: dict[str, int] = {}
    for place in present.tolist():
        subscriber, session = sessions[place]
        is_own = type(session) is int and 0 <= session <= _INT_MAX
        result[place] = int(str(session)) if is_own else counts.get(subscriber, 0)
        counts[subscriber] = counts.get(subscriber, 0) + 1
    return result


def tables_of(
    columns: Columns, names: BulkNames, subscribers: Sequence[str], spans: Sequence[str]
) -> Iterator[tuple[pa.Table, Iterator[memoryview]]]:
    """The events as tables of a history, each with the bytes of its records that the history's hash covers."""
    texts: dict[str, Sequence[str]] = {"subscriber": subscribers, "kind": KINDS, "span": spans}
    shown = {name: {None: None, **dict(enumerate(own))} for name, own in texts.items()}
    for begin in range(0, len(columns["ns"]), _BATCH):
        some = {name: columns[name][begin : begin + _BATCH] for name in FIELDS}
        table = {"seq": pa.array(np.arange(begin, begin + len(some["ns"])))}
        for name, column in some.items():
            numbers = pa.array(column, mask=column == NEVER)
            table[name] = pa.array(texts[name], pa.string()).take(numbers) if name in texts else numbers
        yield pa.table(table, schema=SCHEMAS["events"]), _records(some, shown, names)


def _records(columns: Columns, shown: dict[str, dict[Any, str | None]], names: BulkNames) -> Iterator[memoryview]:
    """The bytes of the records, in parts so small that the processor's cache holds their values.

    `shown` has the texts of the columns whose cells are places in a table of texts.
    """
    for begin in range(0, len(columns["ns"]), _PART):
        some = {name: column[begin : begin + _PART] for name, column in columns.items()}
        fields: list[Sequence[object]] = [[_TAG] * len(some["ns"])]
        for name, column in some.items():
            cells = _values(column, names) if name in ("key", "value") else _cells(column)
            own = shown.get(name)
            fields.append(cells if own is None else list(map(own.__getitem__, cells)))
        yield canonical_rows(list(zip(*fields, strict=True)))


def _cells(column: Int64s) -> list[Any]:
    """The numbers, with None for NEVER."""
    is_missing = column == NEVER
    if not is_missing.any():
        return list(column.tolist())
    if is_missing.all():
        return [None] * len(column)
    cells = column.astype(object)
    cells[is_missing] = None
    return list(cells.tolist())


def _values(column: Int64s, names: BulkNames) -> list[Any]:
    """The values of those ids, with None for NEVER."""
    is_named = (column >= NAMED) & (column != NEVER)
    named = names.values(column[is_named])
    if len(named) == len(column):
        return named
    left = iter(named)
    cells = zip(_cells(column), is_named.tolist(), strict=True)
    return [next(left) if has_name else cell for cell, has_name in cells]
