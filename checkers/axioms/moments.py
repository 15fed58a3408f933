"""Moments at which transactions can have committed, from their begins, their ends and what they read.

A moment is an index << _SHIFT, plus the number of steps taken since.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.columns.index import ascending
from checkers.columns.runs import first_of_each
from checkers.columns.table import concat, take
from checkers.graph.edges import OPEN_END
from harness.core.columns import Int64s

_SHIFT: Final = 20
_PASSES: Final = 64  # The number of times that earliest moments go along reads and known versions.
# The rounds that narrow the moments. In each, two versions count as ordered if their order is certain, or if their
# moments are this far apart. With certain orders alone a million registers had 2.3 times as many steps on cycles.
_MARGINS: Final = (None, 2 << _SHIFT, 1 << _SHIFT, 1 << _SHIFT - 1)
_BITS: Final = 63  # An int64 has one more, for its sign.


class Moments(Struct, frozen=True):
    """Guessed moments: when each transaction committed (n,), and when each version was installed (installs,)."""

    commit: Int64s
    install: Int64s


def of_commits(execution: Execution, commit: Int64s) -> Moments:
    """The moments if each version was installed when its writer committed."""
    return Moments(commit, commit[execution.installs.writer])


def guesses(execution: Execution) -> Iterator[Moments]:
    """Guesses of moments, the best one first. The others are the begins and the ends of the transactions."""
    yield _narrowed(execution)
    yield of_commits(execution, execution.op)
    yield of_commits(execution, execution.end)


def has_moments(execution: Execution) -> bool:
    """True if each transaction can commit between its begin and its end, and after what it reads and overwrites.

    Then reads, known versions and real time have no cycle. False says nothing: longer chains of steps are not followed.
    """
    views, versions = execution.views, execution.versions
    is_known = views.writer != INITIAL
    steps = concat([Pairs(views.writer[is_known], views.reader[is_known]), versions])
    low, left = execution.op << _SHIFT, steps
    for _ in range(_PASSES):
        early = take(left, low[left.target] <= low[left.source])
        if not len(early.target):
            return not np.any(low >= np.minimum(execution.end, OPEN_END) << _SHIFT)
        np.maximum.at(low, early.target, low[early.source] + 1)
        # A step that was kept is broken only by a later moment of its source.
        is_later = np.zeros(len(low), np.bool_)
        is_later[early.target] = True
        left = take(steps, is_later[steps.source])
    return False


def _narrowed(execution: Execution) -> Moments:
    """A good guess: the middle between the earliest and the latest moment.

    Each version is *met* by its writer and its readers. Each of these commits between an earliest and a latest moment.
    `met` is the last of the earliest moments, and `left` the first of the latest. So v comes before w if left[v] <=
    met[w]. If that orders neither v and w nor w and v, then met[v] < left[w] and met[w] < left[v]: any order is
    possible, and that of met + left is a good one.
    """
    bounds = _Bounds(execution)
    for margin in _MARGINS:
        if bounds.are_narrowed(margin):
            break
    installed = np.add(*bounds.spans())
    return Moments(bounds.low + bounds.high, installed)


class _Bounds:
    """The earliest and the latest moment at which each transaction can commit (`low`, `high`), narrowed step by step.

    Each transaction commits between its begin and its end, after what it reads from, after those that met a version
    before its own, and before those that wrote a version after one that it met.
    """

    def __init__(self, execution: Execution) -> None:
        views, installs = execution.views, execution.installs
        self.low = execution.op << _SHIFT
        self.high = np.minimum(execution.end, 2 * int(execution.op.max(initial=0)) + 2) << _SHIFT
        known = np.flatnonzero(views.install >= 0)  # The reads from transactions.
        self._row, self._reader, self._source = views.install[known], views.reader[known], views.writer[known]
        self._writer = installs.writer
        self._order = ascending(installs.key, installs.rank)  # The versions of each key, in the best order so far.
        is_first = first_of_each(installs.key[self._order])
        self._is_next = ~is_first[1:]
        self._known_order = np.cumsum(is_first | first_of_each(installs.rank[self._order]), dtype=np.int64)

    def spans(self) -> tuple[Int64s, Int64s]:
        """When each version was last met and first left, as far as that is known."""
        low, high = self.low, self.high
        np.maximum.at(low, self._reader, low[self._source] + 1)
        np.minimum.at(high, self._source, high[self._reader] - 1)
        met, left = low[self._writer], high[self._writer]
        np.maximum.at(met, self._row, low[self._reader])
        np.minimum.at(left, self._row, high[self._reader])
        return met, left

    def are_narrowed(self, margin: int | None) -> bool:
        """Narrow the bounds by the order of neighbouring versions; True if each such order is certain.

        Versions that are at least `margin` apart count as ordered. Bounds that contradict each other then are undone.
        """
        low, high = self.low.copy(), self.high.copy()
        met, left = self.spans()
        order = self._reordered(met + left)
        met, left, writer = met[order], left[order], self._writer[order]
        is_sure = (left[:-1] <= met[1:]) & (left[1:] > met[:-1])
        is_certain = bool(np.all(is_sure >= self._is_next))
        if margin is not None:
            is_sure |= np.diff(met) + np.diff(left) >= 2 * margin
        one = np.flatnonzero(is_sure & self._is_next)
        # For each row of installs, where the next version is sure: its writer, and when all that met the row's version
        # must have committed.
        next_writer = np.full(len(order), -1)
        latest = np.full(len(order), np.iinfo(np.int64).max)
        next_writer[order[one]] = writer[one + 1]
        np.maximum.at(self.low, writer[one + 1], met[one] + 1)
        latest[order[one]] = self.high[writer[one + 1]] - 1
        np.minimum.at(self.high, self._writer, latest)
        is_other = next_writer[self._row] != self._reader
        np.minimum.at(self.high, self._reader[is_other], latest[self._row[is_other]])
        is_undone = self.low > self.high
        self.low[is_undone], self.high[is_undone] = low[is_undone], high[is_undone]
        return is_certain

    def _reordered(self, moment: Int64s) -> Int64s:
        """The versions of each key in their known order; where that is unknown, in the order of those moments."""
        moment = moment[self._order] - int(moment.min(initial=0))
        bits = int(moment.max(initial=0)).bit_length()
        if bits + int(self._known_order.max(initial=0)).bit_length() > _BITS:
            self._order = self._order[ascending(self._known_order, moment)]
        else:  # The last order is nearly right, so a stable sort takes a fifth of the time.
            self._order = self._order[np.argsort(self._known_order << bits | moment, kind="stable")]
        return self._order
