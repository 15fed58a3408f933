"""The units of a foreign stream, from their rows, begins and ends.

The ends count only where they stand among the rows, each right after the rows of its unit: in a file that has them
apart, the place of an end shows nothing, unless the lines name their topics.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.columns import NEVER, TOMBSTONE, Int64s
from harness.core.record import Json
from harness.record.formats.streams.contents import BEGUN, UNIT
from harness.record.formats.streams.events import Columns
from harness.record.formats.streams.topics import Run, Topics

_Sizes = tuple[tuple[str, int], ...]


def runs_of(
    columns: Columns, units: Sequence[Json], places: Sequence[Any], sizes: Mapping[int, _Sizes]
) -> Iterator[Run]:
    """The runs of a file's events, of which those outside of units and tables are left out.

    `units` and `places` are the names of units, and of partitions and tables. `sizes`: what ends of units report, by
    the number of the end in the file.
    """
    kind, unit, table, span = (columns[name] for name in ("kind", "unit", "table", "span"))
    rows = np.flatnonzero(((table != NEVER) | (unit != NEVER)) & (kind != TOMBSTONE))
    is_new = np.diff(rows, prepend=-2) != 1
    is_new |= kind[rows] >= UNIT
    is_new[1:] |= kind[rows[:-1]] >= UNIT
    for column in (unit, table, span):
        is_new[1:] |= column[rows[1:]] != column[rows[:-1]]
    starts = np.flatnonzero(is_new)
    at, is_first = rows[starts], columns["is_first"]
    has_first = np.maximum.reduceat(is_first[rows], starts) if len(rows) else starts
    names: dict[int, Json] = {**dict(enumerate(units)), NEVER: None}
    where = {**dict(enumerate(places)), NEVER: None}
    cells = (kind, unit, span, table, columns["ordinal"], is_first)
    for row, which, name, partition, of, ordinal, first, any_first in zip(
        at.tolist(), *(column[at].tolist() for column in cells), has_first.tolist(), strict=True
    ):
        yield Run(
            {UNIT: "unit", BEGUN: "begun"}.get(which, "row"),
            row,
            names[name],
            where[partition],
            where[of],
            None if ordinal == NEVER else ordinal,
            bool(first),
            bool(any_first),
            sizes.get(row, ()),
        )


def holes(columns: Columns) -> list[int]:
    """The rows behind the holes of transactions that lack a row.

    In a hole, a row's number among those of its transaction and table jumps, on the only partition of that table. A
    topic that was compacted has honest holes. From the first key on that came twice it was not: the earlier row of the
    key would be gone.
    """
    kind, unit, table, span = (columns[name] for name in ("kind", "unit", "table", "span"))
    number = columns["table_ordinal"]
    rows = np.flatnonzero((table != NEVER) & (span != NEVER) & (kind < TOMBSTONE))
    numbered = rows[(number[rows] != NEVER) & (unit[rows] != NEVER)]
    if not len(numbered):
        return []
    twice = _first_again(rows, columns["key"], span)
    tables, counts = np.unique(pairs_of(table[rows], span[rows])[:, 0], return_counts=True)
    is_alone = np.isin(table, tables[counts == 1])
    grouped = numbered[np.lexsort((table[numbered], unit[numbered]))]
    is_new = np.append(True, (np.diff(unit[grouped]) != 0) | (np.diff(table[grouped]) != 0))
    starts = np.flatnonzero(is_new)
    first = grouped[starts]
    is_judged = is_alone[first] & (twice[span[first]] < first)
    expected = np.arange(len(grouped)) - np.repeat(starts, np.diff(starts, append=len(grouped))) + 1
    is_odd = np.logical_or.reduceat(number[grouped] != expected, starts)
    found = []
    for group in np.flatnonzero(is_judged & is_odd).tolist():
        end = starts[group + 1] if group + 1 < len(starts) else len(grouped)
        highest = 0
        for row in grouped[starts[group] : end].tolist():
            if number[row] > highest + 1:
                found.append(row)
                break
            highest = max(highest, int(number[row]))
    return sorted(found)


def pairs_of(one: Int64s, other: Int64s) -> Int64s:
    """The distinct pairs (n, 2) of places; NEVER counts as one."""
    first, second = (np.where(each == NEVER, 0, each + 1) for each in (one, other))
    width = int(second.max(initial=0)) + 1
    pairs = np.stack(np.divmod(np.unique(first * width + second), width), axis=1)
    return np.where(pairs == 0, NEVER, pairs - 1)


def _first_again(rows: Int64s, key: Int64s, span: Int64s) -> Int64s:
    """By partition, the first of these rows whose key came before in it; NEVER if there is none."""
    order = rows[np.lexsort((key[rows], span[rows]))]
    is_again = (np.diff(key[order]) == 0) & (np.diff(span[order]) == 0)
    again = order[1:][is_again]
    result = np.full(int(span[rows].max()) + 1, NEVER)
    np.minimum.at(result, span[again], again)
    return result


class Units:
    """What the pass over a file collects about units, by their names in the file."""

    def __init__(self, *, is_settled: bool = False) -> None:
        self._is_settled = is_settled
        self.numbers: dict[Json, int] = {}
        self._sizes: dict[Json, tuple[tuple[str, int], ...]] = {}
        self._collections: set[str] = set()
        self._last: Json = None  # The unit of the last row.
        self._left: dict[Json, None] = {}  # Units behind which another one came before their end.
        self._first: Json = None
        self._is_first_cut = False  # The file may begin inside its first unit.
        self._are_apart = False
        self._are_among = False
        self.topics = Topics(is_settled=is_settled)
        self._announced: set[tuple[str, Json]] = set()
        self._sent_again: set[Json] = set()
        self.again: list[tuple[int, Json]] = []  # The numbers of begins and ends that came before, and their units.

    @property
    def are_announced(self) -> bool:
        """True if lines begin or end units."""
        return bool(self._announced)

    @property
    def have_ends(self) -> bool:
        """True if ends of units stand among the rows."""
        return self.topics.are_apart or (self._are_among and not self._are_apart)

    def take(self, run: Run) -> None:
        """Note a run of rows, a begin or an end."""
        if run.kind in ("unit", "begun"):
            if (run.kind, run.unit) in self._announced:
                self.again.append((run.at, run.unit))
                self._sent_again |= {run.unit} if run.kind == "begun" else set()
            self._announced.add((run.kind, run.unit))
        self.topics.take(run)
        if run.kind == "unit":
            self._end(run)
        elif run.unit is not None:
            self._go_on(run)
        if run.collection is not None:
            self._collections.add(run.collection)

    def size(self, unit: Json) -> int | None:
        """The number of a unit's rows in this file's tables, if its end reports it."""
        if self.topics.are_apart:
            if not self.topics.has_passed(unit, (name for name, count in self._sizes.get(unit, ()) if count)):
                return None
        elif unit is None or self._are_apart or (unit == self._first and self._is_first_cut):
            return None
        sizes = self._sizes.get(unit, ())
        return sum(count for name, count in sizes if name in self._collections) or None

    def counts_end(self, unit: Json) -> bool:
        """True if the end of that unit is an event: of its rows, or of rows that never came."""
        if self._are_apart:
            return False
        return unit in self.numbers or (self._are_among and self.size(unit) is not None)

    def is_endless(self, unit: Json) -> bool:
        """True if that unit never ended, although a later one did, where ends stand among rows.

        Or although all was at rest: then the last one had to end, too.
        """
        is_over = unit in self._left or (self._is_settled and unit is not None and unit == self._last)
        return self.have_ends and is_over and unit not in self._sizes

    def is_sent_again(self, unit: Json) -> bool:
        """True if that unit begins again, as after a restart, or began before the file."""
        return unit in self._sent_again or (unit == self._first and self._is_first_cut)

    def number(self, unit: Json) -> int:
        """The number of a unit."""
        return self.numbers.setdefault(unit, len(self.numbers) + 1)

    def _go_on(self, run: Run) -> None:
        unit, is_begin = run.unit, run.kind == "begun"
        if self._first is None:
            self._first, self._is_first_cut = unit, not is_begin and run.ordinal not in (None, 1)
        if self._last not in (None, unit):
            self._left[self._last] = None
        self._last = unit
        if not is_begin:
            self._are_apart |= unit in self._sizes and self.numbers.get(unit) is None
            self.number(unit)

    def _end(self, run: Run) -> None:
        unit = run.unit
        if self._first is None:
            self._first, self._is_first_cut = unit, True
        if unit in self.numbers:
            self._are_among |= self._last == unit
            self._are_apart |= self._last != unit
        elif self._last not in (None, unit):
            self._left[self._last] = None
        self._sizes[unit] = run.sizes
