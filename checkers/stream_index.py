"""Arrays of a stream, grouped and searched without a loop over rows: dense codes, first rows, and one index."""

import numpy as np

from checkers.ragged import distinct
from harness.core.columns import NEVER, Bools, Int64s
from harness.core.errors import HistoryError


def codes(*columns: Int64s) -> Int64s:
    """Dense numbers from 0 for the rows of `columns`, each (n,), in their lexical order. O(n log n)."""
    order = np.lexsort(columns[::-1])
    changed = np.zeros(len(order), np.bool_)
    for column in columns:
        changed[1:] |= column[order][1:] != column[order][:-1]
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(changed)
    return result


def count_so_far(group: Int64s, flag: Bools) -> Int64s:
    """For each row how many flags its group (from 0) has had, its own included; rows stand in order of time."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(flag[order])
    sorted_group = group[order]
    begins = np.flatnonzero(np.diff(sorted_group, prepend=-1))
    before = np.concatenate(([0], total))[begins]
    result = np.empty(len(order), np.int64)
    result[order] = total - np.repeat(before, np.diff(begins, append=len(order)))
    return result


def max_so_far(group: Int64s, height: Int64s) -> Int64s:
    """For each row the greatest height that its group has had, its own included; rows stand in order of time."""
    levels, rank = np.unique(height, return_inverse=True)
    dense = codes(group)
    _require_room(int(dense.max(initial=0)) + 1, len(levels))
    order = np.argsort(dense, kind="stable")
    # One running maximum serves all groups: each group starts above all that the group before can reach.
    reached = np.maximum.accumulate(dense[order] * len(levels) + rank[order])
    result = np.empty(len(order), np.int64)
    result[order] = levels[reached - dense[order] * len(levels)]
    return result


class GroupIndex:
    """Rows by group, and by height inside each group, for binary searches of many (group, height) at once.

    `group` and `height` are (n,); a group is not negative, and a search for a negative one finds nothing. Rows of equal
    height keep their order. `rows[place]` is the row at that place of the order. Building costs O(n log n), a search of
    m queries O(m log n). Raises HistoryError if groups times heights overflow int64.
    """

    def __init__(self, group: Int64s, height: Int64s, rows: Int64s | None = None) -> None:
        order = np.lexsort((height, group))
        self.rows: Int64s = order if rows is None else rows[order]
        self._group = group[order]
        self._levels = distinct(height)
        _require_room(int(group.max(initial=0)) + 2, len(self._levels) + 1)
        self._key = self._group * (len(self._levels) + 1) + np.searchsorted(self._levels, height[order])

    def place(self, group: Int64s, height: Int64s, *, above: bool = False) -> Int64s:
        """The first place of that group with at least that height (`above`: with more); its end if there is none."""
        rank = np.searchsorted(self._levels, height, "right" if above else "left")
        return np.searchsorted(self._key, group * (len(self._levels) + 1) + rank)

    def first(self, group: Int64s, height: Int64s, *, above: bool = False) -> Int64s:
        """The row at that place, -1 if there is none."""
        return self._row(self.place(group, height, above=above), group)

    def last_before(self, group: Int64s, height: Int64s, *, or_equal: bool = False) -> Int64s:
        """The last row of that group with less than that height (or just that), -1 if there is none."""
        return self._row(self.place(group, height, above=or_equal) - 1, group)

    def _row(self, place: Int64s, group: Int64s) -> Int64s:
        result = np.full(len(place), -1, np.int64)
        inside = (place >= 0) & (place < len(self.rows)) & (group >= 0)
        inside[inside] = self._group[place[inside]] == group[inside]
        result[inside] = self.rows[place[inside]]
        return result


class FirstTimes:
    """When each group was first seen. `group` and `time` are (n,), by time."""

    def __init__(self, group: Int64s, time: Int64s) -> None:
        self._groups, first = np.unique(group, return_index=True)
        self._times = time[first]

    def at(self, group: Int64s) -> Int64s:
        """The time of each group's first row; NEVER for a group without one."""
        if len(self._groups) == 0:
            return np.full(len(group), NEVER, np.int64)
        place = np.minimum(np.searchsorted(self._groups, group), len(self._groups) - 1)
        return np.where(self._groups[place] == group, self._times[place], NEVER)


def expand(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """All (i, j) with begin[i] <= j < end[i], by i and then j, as two arrays."""
    count = np.maximum(end - begin, 0)
    owner = np.repeat(np.arange(len(begin)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, begin[owner] + within


def _require_room(groups: int, levels: int) -> None:
    if groups * levels > np.iinfo(np.int64).max:
        raise HistoryError(f"{groups} groups of {levels} levels are more than int64 can number: split the stream")
