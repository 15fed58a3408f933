"""Runs of different lengths in flat arrays: the few steps that all kernels are made of."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.core.columns import Bools, Int64s

Scalar = TypeVar("Scalar", bound=np.generic)

_TABLE_SPARSITY = 8  # A table with that many slots for each value is still faster than to sort.


def expand(start: Int64s, length: Int64s) -> Int64s:
    """The positions start[i] .. start[i] + length[i] - 1 of all runs, one run after the other."""
    ends = np.cumsum(length)
    if ends.size == 0:
        return np.empty(0, np.int64)
    return np.arange(ends[-1]) + np.repeat(start - ends + length, length)


def common_prefix(left: Int64s, right: Int64s, *, left_start: Int64s, right_start: Int64s, length: Int64s) -> Int64s:
    """How many of the first length[i] elements of run i are the same on both sides.

    Runs begin at left_start[i] of `left` and right_start[i] of `right`. Cost: one pass over all elements compared.
    """
    differs = np.flatnonzero(left[expand(left_start, length)] != right[expand(right_start, length)])
    result = length.copy()
    if differs.size:
        ends = np.cumsum(length)
        run = np.searchsorted(ends, differs, side="right")
        np.minimum.at(result, run, differs - (ends - length)[run])
    return result


def codes(values: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct values, ascending, and for each value its place among them.

    O(n) where the values lie close together, O(n log n) where they do not.
    """
    if values.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > _TABLE_SPARSITY * values.size + 1024:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places.astype(np.int64, copy=False)
    is_present = np.zeros(high - low + 1, np.bool_)
    is_present[values - low] = True
    rank = np.cumsum(is_present) - 1
    return np.flatnonzero(is_present) + low, rank[values - low]


def first_of_each(group: NDArray[Scalar]) -> Bools:
    """True where a run of equal neighbours begins."""
    is_first = np.ones(group.size, np.bool_)
    is_first[1:] = group[1:] != group[:-1]
    return is_first


def spans(sorted_group: Int64s, groups: Int64s) -> tuple[Int64s, Int64s]:
    """Where the rows of each of `groups` begin and end in an ascending column."""
    return np.searchsorted(sorted_group, groups, side="left"), np.searchsorted(sorted_group, groups, side="right")


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
    """Which of the half-open intervals start:stop have a point in common with the merged ones of_start:of_stop."""
    nearest = np.searchsorted(of_stop, start, side="right")
    exists = nearest < of_stop.size
    result = np.zeros(start.size, np.bool_)
    result[exists] = of_start[nearest[exists]] < stop[exists]
    return result
