"""The order that reads imply if transactions see all that ended before they began: read atomic and causal consistency.

Theory of operation, for causal consistency. t sees what leads to it over any number of reads and steps of real time.
1. Its *horizon* is the last begin among the transactions from which reads lead to it, itself included. A transaction is
   *known* from the first end among those to which reads lead from it, itself included. What is known at t's horizon is
   seen: reads lead on to something that ended before the begin of something from which reads lead to t. And nothing
   else is seen by real time, if reads and real time have no cycle: over several steps of real time times only grow.
2. All else that t sees leads to it by reads alone. Such a transaction is not yet known at the horizon, though it began
   before: only those that run at one moment are so, and few are followed.
3. For each read: of the key's writers that are known at the horizon, one that was known before another one began comes
   before that one anyway. The others run at one moment, the last begin of all: few again.
For read atomic the horizon is t's begin, a transaction is known from its end, and reads are followed for one step.

Time: n log n transactions and reads, times those that run at a time.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from checkers.axioms.execution import Execution, Pairs
from checkers.axioms.implied import Implied, by_pairs, by_reads, union, unordered
from checkers.axioms.neighbours import Neighbours
from checkers.columns.index import GroupIndex, max_so_far
from checkers.columns.runs import distinct, expand
from harness.core.columns import Int64s

BUDGET: Final = 50_000_000  # The number of pairs that rule 2 may follow.


class Horizons(Struct, frozen=True):
    """For each transaction its horizon, and the moment from which it is known (see the theory of operation)."""

    horizon: Int64s
    known: Int64s


def by_ends(execution: Execution) -> Implied:
    """The pairs that read atomic implies if transactions also see all that ended before they began."""
    return union([by_reads(execution), _by_horizons(execution, Horizons(execution.op, execution.end))])


def by_causes(execution: Execution, reads: Pairs) -> Implied | None:
    """The pairs that causal consistency with real time implies; None if the budget ended."""
    back = Pairs(reads.target, reads.source)
    horizons = Horizons(_spread(reads, execution.op), -_spread(back, -execution.end))
    pairs = _unknown_causes(reads, horizons)
    if pairs is None:
        return None
    return union([_by_horizons(execution, horizons), by_pairs(execution, pairs)])


def _spread(pairs: Pairs, start: Int64s) -> Int64s:
    """For each transaction the greatest value of `start` among itself and all from which the pairs lead to it."""
    value, graph = start.copy(), Neighbours(pairs.source, pairs.target, len(start))
    changed = np.arange(len(start))
    while len(changed):
        reached = graph.of(changed)
        given = np.repeat(value[changed], graph.count[changed])
        is_more = given > value[reached]
        np.maximum.at(value, reached[is_more], given[is_more])
        changed = distinct(reached[is_more])
    return value


def _by_horizons(execution: Execution, horizons: Horizons) -> Implied:
    """The pairs that follow from rule 3, for each read from the writers of its key known at the reader's horizon."""
    views, installs = execution.views, execution.installs
    known = horizons.known[installs.writer]
    by_known = GroupIndex(installs.key, known)
    order = by_known.rows
    # The last begin of a writer among the key's writers up to that place.
    begin = max_so_far(installs.key[order], execution.op[installs.writer[order]])
    stop = by_known.place(views.key, horizons.horizon[views.reader], above=True)
    is_some = np.flatnonzero(stop > by_known.place(views.key, np.full(len(stop), np.iinfo(np.int64).min)))
    stop, view = stop[is_some], is_some
    first = by_known.place(views.key[view], begin[stop - 1], above=True)
    count = stop - first
    return unordered(execution, order[expand(first, count)], np.repeat(view, count))


def _unknown_causes(reads: Pairs, horizons: Horizons) -> Pairs | None:
    """The pairs that rule 2 needs: a reader, and what chains of reads lead from, but its horizon does not show.

    None if there are more than BUDGET.
    """
    size = len(horizons.known)
    before = Neighbours(reads.target, reads.source, size)
    reader, cause = np.arange(size), np.arange(size)
    found = np.empty(0, np.int64)
    while len(reader):
        source = before.of(cause)
        reader = np.repeat(reader, before.count[cause])
        is_unknown = horizons.known[source] > horizons.horizon[reader]
        new = np.setdiff1d(reader[is_unknown] * size + source[is_unknown], found)
        found = np.union1d(found, new)
        if len(found) > BUDGET:
            return None
        reader, cause = new // size, new % size
    return Pairs(found % size, found // size)
