"""The witnesses of the watermark graph in all generations of a history of stretches (checkers/history/stretches.py).

Every generation has all watermarks, as the same nodes and chains. They differ in what each watermark newly contains: a
write counts in the generations of its key's stretch. So a watermark is a witness in a union of spans of generations.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns import runs
from checkers.columns.index import ascending, codes
from checkers.history.stretches import Stretches
from checkers.watermarks.numbering import Watermarks
from harness.core.columns import Bools, Int64s

KINDS: Final = ("ww", "wr", "rw")  # Kinds of edges that a class must have for a witness.


class Entered(Struct, frozen=True, kw_only=True):
    """Operations that watermarks newly contain, by key, which is a stretch. Columns: shape (n,)."""

    mark: Int64s
    op: Int64s
    stretch: Int64s


class Spells(Struct, frozen=True):
    """Spans of generations, from `first` to before `stop`, in which a group has members: by group, disjoint."""

    group: Int64s
    first: Int64s
    stop: Int64s

    def length(self) -> Int64s:
        """The number of generations of each span."""
        return self.stop - self.first

    def in_each(self, count: int) -> Int64s:
        """For each generation the number of groups that have members in it, shape (count,)."""
        change = np.bincount(self.first, minlength=count + 1) - np.bincount(self.stop, minlength=count + 1)
        result: Int64s = np.cumsum(change)[:count]
        return result


class Chances(Struct, frozen=True, kw_only=True):
    """The number of chances to see each kind of class, over all generations.

    `shared` counts those of watermarks that are one node with others of another chain; `of_many` those in generations
    in which several chains have chances; `in_each` (generations,) all of each generation.
    """

    shared: int
    passing: int
    torn: int
    of_many: int
    in_each: Int64s


def chances_of_one(marks: Watermarks, is_shared: Bools) -> Chances:
    """The chances in a history that is one generation."""
    new = marks.is_witness
    every = int(np.count_nonzero(new))
    return Chances(
        shared=int(np.count_nonzero(new & is_shared)),
        passing=int(np.count_nonzero(marks.is_passing_witness)),
        torn=int(np.count_nonzero(marks.is_torn_witness)),
        of_many=every if len(np.unique(marks.chain[new])) > 1 else 0,
        in_each=np.array([every]),
    )


def chances(
    marks: Watermarks,
    is_shared: Bools,
    stretches: Stretches,
    *,
    entered: Entered,
    passing: Entered,
) -> Chances:
    """The chances over all generations. `is_shared` (w,) flags watermarks of shared nodes.

    O(n log n) for n rows of `entered`.
    """
    count = stretches.generations
    every = _spells(entered.mark, entered, stretches)
    chain = _of_spans(marks.chain[every.group], every.first, every.stop - 1)
    several = chain.in_each(count) > 1
    unit = codes(entered.mark, entered.op)
    mark_of = np.empty(int(unit.max(initial=-1)) + 1, np.int64)
    mark_of[unit] = entered.mark
    twice = _spells(unit, entered, stretches, least=2)
    torn = _of_spans(mark_of[twice.group], twice.first, twice.stop - 1)
    each = every.in_each(count)
    return Chances(
        shared=int(every.length()[is_shared[every.group]].sum()),
        passing=int(_spells(passing.mark, passing, stretches).length().sum()),
        torn=int(torn.length().sum()),
        of_many=int(each[several].sum()),
        in_each=each,
    )


def _spells(group: Int64s, entered: Entered, stretches: Stretches, *, least: int = 1) -> Spells:
    """The spans of generations in which each group has at least `least` rows."""
    return _of_spans(group, stretches.first[entered.stretch], stretches.last[entered.stretch], least=least)


def _of_spans(group: Int64s, first: Int64s, last: Int64s, *, least: int = 1) -> Spells:
    step = int(last.max(initial=0)) + 2
    at = np.concatenate((group * step + first, group * step + last + 1))
    order = ascending(at)
    at = at[order]
    depth = np.cumsum(np.where(order < len(group), 1, -1))
    rows = np.flatnonzero((depth[:-1] >= least) & (at[1:] > at[:-1]))
    start, stop = runs.merged(at[rows], at[rows + 1])
    return Spells(start // step, start % step, stop - start // step * step)
