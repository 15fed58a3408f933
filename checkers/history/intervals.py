"""Intervals of time: those that faults disturb, and those that remain. Pairs of begin and end, in ns."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

Interval = tuple[int, int]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Intervals that cover the same time, neither touch nor overlap, and ascend."""
    result: list[Interval] = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


def outside(begin: int, end: int, disturbed: Sequence[Interval]) -> list[Interval]:
    """The pieces of (begin, end) that lie outside the merged intervals `disturbed`, ascending."""
    pieces = []
    first = bisect_right(disturbed, begin, key=lambda interval: interval[1])
    for start, stop in islice(disturbed, first, None):
        if start >= end:
            break
        if start > begin:
            pieces.append((begin, start))
        begin = stop
    if begin < end:
        pieces.append((begin, end))
    return pieces


def is_met(begin: int, end: int, disturbed: Sequence[Interval]) -> bool:
    """True if one of the merged intervals `disturbed` has a moment from `begin` to `end`, both included."""
    first = bisect_left(disturbed, begin, key=lambda interval: interval[1])
    return first < len(disturbed) and disturbed[first][0] <= end


def longest(pieces: Iterable[Interval]) -> int:
    """The length of the longest piece; 0 if there is none."""
    return max((end - begin for begin, end in pieces), default=0)


def total(pieces: Iterable[Interval]) -> int:
    """The length of all pieces together, if they do not overlap."""
    return sum(end - begin for begin, end in pieces)
