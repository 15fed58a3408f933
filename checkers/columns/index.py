"""Columns of a stream, grouped and searched without a loop over rows: dense codes, first rows, and an index by group.

Rows are sorted by packed int64 values that hold all columns and the row number: NumPy sorts these in a tenth of the
time of a sort by several columns. Searches are made in ascending order: one that misses the cache costs as much as ten
that do not.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Literal

import numpy as np

from checkers.columns import runs
from checkers.columns.runs import distinct, first_of_each, is_ascending
from harness.core.columns import NEVER, Bools, Int8s, Int64s
from harness.core.errors import HistoryError

_CACHED = 1 << 15  # This many numbers stay in the cache, in any order of access.
_SPARSITY = 4  # A table with this many slots for each value is still faster than a search.


def ascending(*columns: Int64s) -> Int64s:
    """Row numbers of `columns`, each (n,), in lexical order; equal rows keep their order. O(n log n)."""
    order: Int64s | None = None
    for packed in _packed_columns(columns):
        order = runs.ordered(packed)[0] if order is None else order[runs.ordered(packed[order])[0]]
    return np.arange(len(columns[0])) if order is None else order


def codes(*columns: Int64s) -> Int64s:
    """Dense numbers from 0 for the rows of `columns`, each (n,), in their lexical order. O(n log n)."""
    keys = list(_packed_columns(columns))
    if not keys:
        return np.zeros(len(columns[0]), np.int64)
    if len(keys) == 1 and int(keys[0].max()) <= 2 * len(keys[0]):
        return runs.codes(keys[0])[1]
    changed = np.zeros(len(columns[0]), np.bool_)
    if len(keys) == 1:
        order, inside = runs.ordered(keys[0])
        changed[1:] = inside[1:] != inside[:-1]
    else:
        order = ascending(*columns)
        for packed in keys:
            inside = packed[order]
            changed[1:] |= inside[1:] != inside[:-1]
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(changed)
    return result


def joint_codes(left: Sequence[Int64s], right: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """`codes` for the rows of two tables, by as many columns of each: equal rows have equal numbers."""
    code = codes(*(np.append(mine, theirs) for mine, theirs in zip(left, right, strict=True)))
    return code[: len(left[0])], code[len(left[0]) :]


def first_places(code: Int64s, count: int) -> Int64s:
    """For each number below `count` its first place in `code`; -1 if it does not occur. O(n)."""
    place = np.full(count, -1, np.int64)
    place[code[::-1]] = np.arange(len(code))[::-1]  # The last write is kept.
    return place


def last_places(code: Int64s, count: int) -> Int64s:
    """For each number below `count` its last place in `code`; -1 if it does not occur. O(n)."""
    place = np.full(count, -1, np.int64)
    place[code] = np.arange(len(code))
    return place


def is_kind(kind: Int8s, kinds: Sequence[int]) -> Bools:
    """True for events of one of those kinds. NumPy's `isin` takes ten times as long when there are only a few kinds."""
    result: Bools = reduce(or_, (kind == each for each in kinds))
    return result


def first_rows(*columns: Int64s) -> Int64s:
    """The first of all equal rows of `columns`, ascending."""
    code = codes(*columns)
    return np.sort(first_places(code, int(code.max(initial=-1)) + 1))


def earliest_of_each(group: Int64s, time: Int64s) -> Int64s:
    """The row of the earliest time of each group, in order of that time."""
    order = ascending(time, group)
    return order[first_rows(group[order])]


def _packed_columns(columns: tuple[Int64s, ...]) -> Iterator[Int64s]:
    """As few int64 columns as possible that sort rows like `columns`, the least significant first.

    Their numbers are 0 or more. There are no columns if all rows are equal.
    """
    room = 63 - len(columns[0]).bit_length()
    packed: Int64s | None = None
    used = 0
    for given in reversed(columns if len(columns[0]) else ()):
        column, bits = _from_zero(given, room)
        if bits == 0:
            continue
        if packed is not None and used + bits > room:
            yield packed
            packed, used = None, 0
        packed = column if packed is None else packed | (column << used)
        used += bits
    if packed is not None:
        yield packed


def _from_zero(column: Int64s, room: int) -> tuple[Int64s, int]:
    """The column as numbers from 0 on, in the same order, and the number of bits that they need.

    NEVER, which would need all bits, becomes the next number above all others.
    """
    low, high = int(column.min()), int(column.max())
    if low == high:
        return column, 0
    if (high - low).bit_length() > room:
        is_never = column == NEVER
        if is_never.any():
            high = int(column[~is_never].max(initial=low)) + 1
            column = np.where(is_never, high, column)
        if (high - low).bit_length() > room:
            column = runs.codes(column)[1]
            low, high = 0, int(column.max())
    numbers = column.astype(np.int64, copy=False)
    return numbers - low if low else numbers, (high - low).bit_length()


def count_so_far(group: Int64s, flag: Bools) -> Int64s:
    """For each row the number of flags in its group up to and including the row.

    Rows are in order of time, groups from 0.
    """
    if not flag.any():
        return np.zeros(len(group), np.int64)
    if is_ascending(group):
        total = np.cumsum(flag)
        return total - _at_begin(group, total - flag)
    rows = np.flatnonzero(flag)
    if len(rows) < _CACHED:  # Searching a few flags costs less than sorting all rows.
        flags = np.sort(group[rows] * len(group) + rows)
        begin = group * len(group)
        return searched(flags, begin + np.arange(len(group)), above=True) - searched(flags, begin)
    order, inside = runs.ordered(group)
    total = np.cumsum(flag[order])
    result = np.empty(len(order), np.int64)
    result[order] = total - _at_begin(inside, total - flag[order])
    return result


def segments(group: Int64s, flag: Bools, rows: Int64s | None = None) -> Int64s:
    """For each of `rows` (None: all) its segment: a new one begins at each flag and each group.

    Numbers ascend by group.

    Rows are in order of time, as for `count_so_far`. Meant for few groups: memory grows with their number.
    """
    flags, count = np.flatnonzero(flag), len(group)
    rows = np.arange(count) if rows is None else rows
    begins = distinct(np.append(np.arange(int(group.max(initial=-1)) + 1) * count, group[flags] * count + flags))
    return np.searchsorted(begins, group[rows] * count + rows, side="right")


def _at_begin(group: Int64s, column: Int64s) -> Int64s:
    """For each row the value of `column` in the first row of its group; `group` ascends."""
    begins = np.flatnonzero(first_of_each(group))
    return np.repeat(column[begins], np.diff(begins, append=len(group)))


def max_so_far(group: Int64s, height: Int64s) -> Int64s:
    """For each row the greatest height in its group up to and including the row. Rows are in order of time."""
    if len(group) == 0:
        return np.empty(0, np.int64)
    if group[0] == group[-1] and not np.any(group != group[0]):
        return np.maximum.accumulate(height)
    low, span = int(height.min()), int(height.max()) - int(height.min()) + 1
    base = group - group.min()
    if (int(base.max()) + 1) * span > np.iinfo(np.int64).max:
        levels, rank = runs.codes(height)
        dense = codes(group)
        _require_room(int(dense.max()) + 1, len(levels))
        reached: Int64s = levels[max_so_far(dense, rank)]
        return reached
    # One running maximum serves all groups: each group starts above all that the group before can reach.
    level = base * span + (height - low)
    if is_ascending(base):
        result: Int64s = np.maximum.accumulate(level) - base * span + low
        return result
    order, inside = runs.ordered(base)
    result = np.empty(len(order), np.int64)
    result[order] = np.maximum.accumulate(level[order]) - inside * span + low
    return result


class GroupIndex:
    """Rows sorted by group and height, for many binary searches at once.

    `group` and `height` are (n,). Groups are 0 or more, and a search for a negative group finds nothing. Rows of equal
    height keep their order. `rows[place]` is the row at that place in the sorted order. Building costs O(n log n), m
    searches O(m log n). Raises HistoryError if groups times heights overflow int64.
    """

    def __init__(self, group: Int64s, height: Int64s, rows: Int64s | None = None) -> None:
        order = ascending(group, height)
        self.rows: Int64s = order if rows is None else rows[order]
        self._group = group[order]
        inside = height[order]
        self._groups = int(group.max(initial=0)) + 2
        # Heights are used as they are if that leaves room for all groups, else by rank.
        self._low, self._top = int(height.min(initial=0)), int(height.max(initial=-1))
        self._span = self._top - self._low + 2
        self._levels: Int64s | None = None
        if self._groups * self._span > np.iinfo(np.int64).max:
            self._levels = distinct(height)
            self._span = len(self._levels) + 1
            _require_room(self._groups, self._span)
        self._key = self._group * self._span + self._rank(inside, above=False)

    def _rank(self, height: Int64s, *, above: bool) -> Int64s:
        if self._levels is not None:
            return searched(self._levels, height, above=above)
        inside = np.clip(height, self._low - above, self._top + (not above))
        inside += above - self._low
        return inside

    def place(self, group: Int64s, height: Int64s, *, above: bool = False) -> Int64s:
        """The first place in the group with at least that height (`above`: with more).

        If there is none, the group's end.
        """
        # Higher groups are empty, and their numbers might be too large.
        known = np.minimum(group, self._groups - 1)
        return searched(self._key, known * self._span + self._rank(height, above=above))

    def first(self, group: Int64s, height: Int64s, *, above: bool = False) -> Int64s:
        """The row of the group with the least height that is at least `height` (`above`: greater); -1 for none."""
        if len(self.rows) == 0:
            return np.full(len(group), -1, np.int64)
        return self._row(self.place(group, height, above=above), group)

    def last_before(self, group: Int64s, height: Int64s, *, or_equal: bool = False) -> Int64s:
        """The last row of the group with a height below `height` (`or_equal`: at most that); -1 if there is none."""
        if len(self.rows) == 0:
            return np.full(len(group), -1, np.int64)
        return self._row(self.place(group, height, above=or_equal) - 1, group)

    def _row(self, place: Int64s, group: Int64s) -> Int64s:
        inside = np.clip(place, 0, len(self.rows) - 1)
        is_found = (self._group[inside] == group) & (inside == place) & (group >= 0)
        return np.where(is_found, self.rows[inside], -1)


def searched(values: Int64s, wanted: Int64s, *, above: bool = False) -> Int64s:
    """The insertion point of each wanted number in ascending `values`: before equal ones, or with `above` after."""
    side: Literal["left", "right"] = "right" if above else "left"
    if len(values) < _CACHED or len(wanted) < _CACHED or is_ascending(wanted):
        return np.searchsorted(values, wanted, side)
    order, inside = runs.ordered(wanted)
    result = np.empty(len(wanted), np.int64)
    result[order] = np.searchsorted(values, inside, side)
    return result


class Places:
    """A search for numbers among ascending, distinct values (k,); by a table if the values are close together."""

    def __init__(self, values: Int64s) -> None:
        self._values = values
        self._low = int(values[0]) if len(values) else 0
        self._table: Int64s | None = None
        span = int(values[-1]) - self._low + 1 if len(values) else 1
        if span <= _SPARSITY * len(values) + _CACHED and self._low + span <= NEVER:
            # The last slot is for all other numbers, which become one more than the last value.
            self._table = np.full(span + 1, -1, np.int64)
            self._table[values - self._low] = np.arange(len(values))

    def of(self, wanted: Int64s) -> Int64s:
        """The place of each wanted number; -1 for a number that is not among the values."""
        if self._table is None:
            place = np.minimum(searched(self._values, wanted), len(self._values) - 1)
            return np.where(self._values[place] == wanted, place, -1)
        last = self._low + len(self._table) - 1
        if len(wanted) and (wanted.min() < self._low or wanted.max() >= last):
            wanted = np.where((wanted >= self._low) & (wanted < last), wanted, last)
        found: Int64s = self._table[wanted - self._low if self._low else wanted]
        return found


class FirstTimes:
    """The first time of each group. `group` and `time` are (n,), in order of time."""

    def __init__(self, group: Int64s, time: Int64s) -> None:
        order, inside = runs.ordered(group)
        is_first = first_of_each(inside)
        self._places = Places(inside[is_first])
        self._times = np.append(time[order[is_first]], NEVER)

    def at(self, group: Int64s) -> Int64s:
        """The time of each group's first row; NEVER for a group without one."""
        return self._times[self._places.of(group)]


def expand(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """All (i, j) with begin[i] <= j < end[i], by i and then j, as two arrays."""
    count = np.maximum(end - begin, 0)
    owner = np.repeat(np.arange(len(begin)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, begin[owner] + within


def _require_room(groups: int, levels: int) -> None:
    if groups * levels > np.iinfo(np.int64).max:
        raise HistoryError(f"{groups} groups of {levels} levels are more than int64 can number: split the stream")
