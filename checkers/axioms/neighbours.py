"""The partners of transactions in pairs: from the transaction at one end to those at the other."""

import numpy as np

from checkers.columns.index import ascending
from checkers.columns.runs import expand
from harness.core.columns import Int64s


class Neighbours:
    """For each transaction its partners in pairs. `count`, shape (size,), is their number."""

    def __init__(self, by: Int64s, other: Int64s, size: int) -> None:
        self._other = other[ascending(by)]
        self.count = np.bincount(by, minlength=size)
        self._start = np.cumsum(self.count) - self.count

    def of(self, nodes: Int64s) -> Int64s:
        """The partners of those transactions, one transaction after the other."""
        return self._other[expand(self._start[nodes], self.count[nodes])]
