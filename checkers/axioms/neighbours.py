"""Pairs of transactions by one of their ends."""

import numpy as np

from checkers.columns.index import ascending
from checkers.columns.runs import expand
from harness.core.columns import Int64s


class Neighbours:
    """The other ends of pairs, by the transactions at one end. `count`, shape (size,): the number of each one's."""

    def __init__(self, by: Int64s, other: Int64s, size: int) -> None:
        self._other = other[ascending(by)]
        self.count = np.bincount(by, minlength=size)
        self._start = np.cumsum(self.count) - self.count

    def of(self, nodes: Int64s) -> Int64s:
        """The other ends of the pairs of those transactions, one transaction after the other."""
        return self._other[expand(self._start[nodes], self.count[nodes])]
