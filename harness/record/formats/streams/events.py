"""The events of a foreign stream: columns as the file has them, and from these the rows of a history.

Keys and values are ids of names. Sessions, partitions, tables and units are places in tables of the file. NEVER stands
for what a line does not have.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from harness.core.columns import COMMIT, KINDS, NAMED, NEVER, OPEN, Bools, Int64s
from harness.core.record import Json
from harness.record.formats.parquet.names import Names
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.journal import canonical_rows

_BATCH: Final = 50_000
_TAG: Final = "event"
_INT_MAX: Final = (1 << 63) - 1
CELLS: Final = (
    "kind", "session", "span", "table", "key", "value", "position", "ordinal", "epoch", "unit", "unit_rows", "ns",
    "line", "file",
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

    def values(self) -> list[Any]:
        """All values in order."""
        return list(self._places)


class Cells:
    """The events of a file as they are read, one after another."""

    def __init__(self) -> None:
        self._cells = array("q")
        self.add = self._cells.extend  # Adds one event: its cells in the order of CELLS.

    def __len__(self) -> int:
        return len(self._cells) // len(CELLS)

    def columns(self) -> Columns:
        """A copy of all events."""
        whole = np.frombuffer(self._cells, np.int64).reshape(-1, len(CELLS))
        return {name: whole[:, place].copy() for place, name in enumerate(CELLS)}


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
    columns: Columns, names: Names, subscribers: Sequence[str], spans: Sequence[str]
) -> Iterator[tuple[pa.Table, memoryview]]:
    """The events as tables of a history, each with the bytes of its records that the history's hash covers."""
    texts: dict[str, Sequence[str]] = {"subscriber": subscribers, "kind": KINDS, "span": spans}
    value_of = _reader(names)
    for begin in range(0, len(columns["ns"]), _BATCH):
        some = {name: columns[name][begin : begin + _BATCH] for name in FIELDS}
        count = len(some["ns"])
        table = {"seq": pa.array(np.arange(begin, begin + count))}
        fields: list[Sequence[object]] = [[_TAG] * count]
        for name, column in some.items():
            numbers = pa.array(column, mask=column == NEVER)
            own = texts.get(name)
            table[name] = numbers if own is None else pa.array(own, pa.string()).take(numbers)
            cells = _cells(column)
            if own is not None:
                cells = [None if cell is None else own[cell] for cell in cells]
            elif name in ("key", "value"):
                cells = [cell if cell is None or cell < NAMED else value_of(cell) for cell in cells]
            fields.append(cells)
        yield pa.table(table, schema=SCHEMAS["events"]), canonical_rows(list(zip(*fields, strict=True)))


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


def _reader(names: Names) -> Callable[[int], Json]:
    """The function that gives the value of an id which has a name."""
    texts, decode = names.texts(), msgspec.json.Decoder().decode
    return lambda number: decode(texts[number - NAMED])
