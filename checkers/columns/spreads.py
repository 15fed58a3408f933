"""Ranges of places as one row each: pairs of a number and a place, of which neighbours have the same number.

Pairs that would be n times m, such as keys and the sessions that begin with their states, stay as few rows as there are
changes. Places count from 0.
"""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from checkers.columns import runs
from checkers.columns.index import expand
from checkers.columns.runs import Scalar
from harness.core.columns import Bools, Int64s

Ints = NDArray[np.integer[Any]]


class Spread(Struct, frozen=True):
    """n ranges: row i pairs `number[i]` with each place from begin[i] to end[i] - 1; no range is empty."""

    number: Int64s
    begin: Int64s
    end: Int64s

    def size(self) -> int:
        """The number of pairs."""
        return int((self.end - self.begin).sum())

    def pairs(self) -> tuple[Int64s, Int64s]:
        """The row and the place of each pair."""
        return expand(self.begin, self.end)

    def among(self, is_meant: Bools) -> tuple[Int64s, Int64s]:
        """The row and the place of each pair whose place is flagged. O(n + places + pairs found)."""
        places, rank = np.flatnonzero(is_meant), np.append(0, np.cumsum(is_meant))
        row, at = expand(rank[self.begin], rank[self.end])
        return row, places[at]

    def below(self, height: Ints, limit: Ints) -> tuple[Int64s, Int64s]:
        """The row and the place of each pair whose place has a height below the `limit` (n,) of its row.

        Heights that nearly ascend cost the least: all places are tried before the last that is low enough.
        """
        least_to_come = np.minimum.accumulate(height[::-1])[::-1]
        row, place = expand(self.begin, np.minimum(self.end, np.searchsorted(least_to_come, limit)))
        is_below = height[place] < limit[row]
        return row[is_below], place[is_below]

    def above(self, height: Ints, limit: Ints) -> tuple[Int64s, Int64s]:
        """The row and the place of each pair whose place has a height above the `limit` (n,) of its row, as `below`."""
        greatest = np.maximum.accumulate(height)
        row, place = expand(np.maximum(self.begin, np.searchsorted(greatest, limit, side="right")), self.end)
        is_above = height[place] > limit[row]
        return row[is_above], place[is_above]

    def highest(self, value: NDArray[Scalar], nothing: NDArray[Scalar]) -> NDArray[Scalar]:
        """For each place the greatest `value` (n,) of the rows that reach it, and at least that of `nothing`.

        O((n + places) log places): each range is the union of two whose length is a power of 2.
        """
        count = len(nothing)
        level = np.frexp(self.end - self.begin)[1] - 1
        table = np.full((int(level.max(initial=0)) + 1, count), nothing.min() if count else 0, nothing.dtype)
        flat = table.reshape(-1)
        for first in (self.begin, self.end - (1 << level)):
            np.maximum.at(flat, level * count + first, value)
        for upper in range(len(table) - 1, 0, -1):
            half = 1 << (upper - 1)
            np.maximum(table[upper - 1], table[upper], out=table[upper - 1])
            np.maximum(table[upper - 1][half:], table[upper][:-half], out=table[upper - 1][half:])
        result: NDArray[Scalar] = np.maximum(table[0], nothing)
        return result

    def united(self, count: int) -> "Spread":
        """The same pairs, each once, by number and place; `count` is the number of places."""
        step = count + 1  # Ranges of different numbers do not touch.
        start, stop = runs.merged(self.number * step + self.begin, self.number * step + self.end)
        return Spread(start // step, start % step, stop % step)

    def has(self, number: Int64s, place: Int64s, count: int) -> Bools:
        """True for pairs that a united spread has; a place of -1 is in none."""
        step = count + 1
        at = np.searchsorted(self.number * step + self.begin, number * step + place, side="right") - 1
        found = (at >= 0) & (place >= 0)
        found[found] = (self.number[at[found]] == number[found]) & (place[found] < self.end[at[found]])
        return found

    def without(self, number: Int64s, place: Int64s, count: int) -> tuple[Int64s, Int64s, Int64s]:
        """The ranges that are left without those pairs, by the row of which each was a part, and their bounds.

        The rows are of a spread that is sorted by number and place, and has each pair once.
        """
        step = count + 1
        begin, end = self.number * step + self.begin, self.number * step + self.end
        packed = runs.distinct(number * step + place)
        low, high = np.searchsorted(packed, begin), np.searchsorted(packed, end)
        _, at = expand(low, high)
        # Each pair ends a range and begins the next: both columns ascend, one row after the other.
        start, stop = np.sort(np.append(begin, packed[at] + 1)), np.sort(np.append(end, packed[at]))
        row = np.repeat(np.arange(len(low)), high - low + 1)
        left = np.flatnonzero(start < stop)
        row = row[left]
        return row, start[left] - self.number[row] * step, stop[left] - self.number[row] * step
