"""Basic operations on flat arrays: runs of different lengths, distinct values, groups, intervals."""

from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.core.columns import Bools, Int64s

Scalar = TypeVar("Scalar", bound=np.generic)

_BLOCK = 65_536  # The number of elements compared at a time: temporary arrays stay in the cache.
_BYTE = 256  # This many numbers fit into one byte.
_CROWD = 32  # A group of rows gets at most so many pairs for each row.
_TABLE_SPARSITY = 8  # A table with this many slots for each value is still faster than a sort.


def expand(start: Int64s, length: Int64s) -> Int64s:
    """The positions start[i] .. start[i] + length[i] - 1 of all runs, one run after the other."""
    ends = np.cumsum(length)
    if ends.size == 0:
        return np.empty(0, np.int64)
    return np.arange(ends[-1]) + np.repeat(start - ends + length, length)


def common_prefix(left: Int64s, right: Int64s, *, left_start: Int64s, right_start: Int64s, length: Int64s) -> Int64s:
    """The length of the common prefix of run i on both sides, at most length[i].

    The runs begin at left_start[i] of `left` and right_start[i] of `right`. Cost: one pass over all compared elements.
    """
    result = length.copy()
    ends = np.cumsum(length)
    total = int(ends[-1]) if ends.size else 0
    cuts = np.searchsorted(ends, np.arange(0, total, _BLOCK), side="right")
    for low, high in pairwise([*np.unique(cuts).tolist(), length.size]):
        run = slice(low, high)
        at = expand(left_start[run], length[run])
        differs = np.flatnonzero(left[at] != right[at + np.repeat((right_start - left_start)[run], length[run])])
        if differs.size:
            stops = np.cumsum(length[run])
            row = np.searchsorted(stops, differs, side="right")
            np.minimum.at(result, low + row, differs - (stops - length[run])[row])
    return result


def codes(values: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct values, ascending, and for each value its place among them.

    O(n) if the values are close together, else O(n log n).
    """
    if values.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > _TABLE_SPARSITY * values.size + 1024:
        order, values = ordered(values)
        is_first = first_of_each(values)
        places = np.empty(len(values), np.int64)
        places[order] = np.cumsum(is_first) - 1
        return values[is_first], places
    slots = values - low if low else values
    is_present = np.zeros(high - low + 1, np.bool_)
    is_present[slots] = True
    rank = np.cumsum(is_present) - 1
    return np.flatnonzero(is_present) + low, rank[slots]


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """The distinct values, ascending. Sorting is a hundred times as fast as the hash table of NumPy's `unique`."""
    ascending = values if is_ascending(values) else np.sort(values)
    return ascending[first_of_each(ascending)]


def is_ascending(values: NDArray[Scalar]) -> bool:
    """True if no value is below the one before it."""
    return not np.any(np.less(values[1:], values[:-1]))


def ordered(values: Int64s) -> tuple[Int64s, Int64s]:
    """The rows of the values in ascending order, equal ones in their original order; and the sorted values.

    Each value and its row are packed into one int64 and sorted, in a tenth of the time of a stable argsort. Values that
    are already in order are not sorted.
    """
    if is_ascending(values):
        return np.arange(values.size), values
    low, bits = int(values.min()), int(values.size).bit_length()
    if int(values.max()) - low >= 1 << (63 - bits):
        order = np.argsort(values, kind="stable")
        return order, values[order]
    packed = np.sort((values.astype(np.int64) - low) << bits | np.arange(values.size))
    return packed & ((1 << bits) - 1), (packed >> bits) + low


def first_of_each(group: NDArray[Scalar]) -> Bools:
    """True for the first row of each run of equal neighbours."""
    is_first = np.ones(group.size, np.bool_)
    is_first[1:] = group[1:] != group[:-1]
    return is_first


def next_places(group: Int64s, place: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Rows at neighbouring places of one group, as pairs; and the groups without pairs, as they would have too many.

    The rows are sorted by group, then place. Each row is paired with all rows at the next place: few unless many rows
    of a group share their places.
    """
    first = np.flatnonzero(first_of_each(group) | first_of_each(place))
    size = np.diff(np.append(first, len(group)))
    following = np.zeros(len(first), np.int64)
    following[:-1] = np.where(group[first[:-1]] == group[first[1:]], size[1:], 0)
    count, begin = np.repeat(following, size), np.repeat(first + size, size)
    names, code = codes(group)
    is_crowded = np.bincount(code, count) > _CROWD * np.bincount(code)
    count[is_crowded[code]] = 0
    return np.repeat(np.arange(len(group)), count), expand(begin, count), names[is_crowded]


def groups(place: NDArray[np.integer[Any]], count: int) -> list[Int64s]:
    """For each place from 0 to `count` - 1, its rows, ascending. O(n), whatever the number of places."""
    # Numbers of one byte are sorted in one pass.
    order = (
        np.argsort(place.astype(np.uint8), kind="stable")
        if count <= _BYTE
        else ordered(place.astype(np.int64, copy=False))[0]
    )
    return np.split(order, np.cumsum(np.bincount(place, minlength=count))[:-1])


def spans(sorted_group: Int64s, groups: Int64s) -> tuple[Int64s, Int64s]:
    """The start and end of the rows of each of `groups` in an ascending column."""
    return np.searchsorted(sorted_group, groups, side="left"), np.searchsorted(sorted_group, groups, side="right")


def bounds(sorted_group: Int64s, count: int) -> Int64s:
    """The first row of each group from 0 to `count` in an ascending column. Group i ends where group i + 1 begins."""
    return np.cumsum(np.bincount(sorted_group + 1, minlength=count + 1))


def merged(start: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """The union of half-open intervals, as intervals that neither touch nor overlap, ascending."""
    if start.size == 0:
        return start, stop
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(stop[order])
    is_new = np.ones(start.size, np.bool_)
    is_new[1:] = start[1:] > reach[:-1]
    return start[is_new], reach[np.append(np.flatnonzero(is_new)[1:] - 1, start.size - 1)]


def meets(start: Int64s, stop: Int64s, *, of_start: Int64s, of_stop: Int64s) -> Bools:
    """True for half-open intervals start:stop that share a point with one of the intervals of_start:of_stop.

    The latter ascend and do not overlap, as `merged` returns them.
    """
    nearest = np.searchsorted(of_stop, start, side="right")
    exists = nearest < of_stop.size
    result = np.zeros(start.size, np.bool_)
    result[exists] = of_start[nearest[exists]] < stop[exists]
    return result
