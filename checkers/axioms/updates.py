"""Missed writes under update atomic: a transaction sees another, and reads a key as it was before that one's write.

A transaction sees those that it reads from, and those that wrote a key before it did. Unlike causal consistency and
parallel snapshot isolation, update atomic does not pass that on: who sees a transaction need not see what that one saw.
So with a total order of versions the model holds iff reads and ww have no cycle, and no transaction misses a write of
one that it sees.

Source: Cerone, Bernardi and Gotsman, A Framework for Transactional Consistency Models with Atomic Visibility, CONCUR
2015: the axioms Ext, Int and NoConflict.
"""

import numpy as np
from msgspec import Struct

from checkers.axioms import implied
from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.columns.index import GroupIndex, ascending, joint_codes, max_so_far
from checkers.columns.runs import expand, spans
from checkers.columns.table import concat
from harness.core.columns import Int64s


class Missed(Struct, frozen=True):
    """Missed writes. Each `reader` sees `writer`, as that one wrote before it; if `own` is a row, then that key.

    All other columns are rows of installs: what was `read` (-1 for the initial version), and what the writer `left` of
    the key that was read; what it left of the key by which it is seen (`seen`), and what the reader left of it (`own`),
    both -1 if the reader read from the writer.
    """

    reader: Int64s
    writer: Int64s
    read: Int64s
    left: Int64s
    seen: Int64s
    own: Int64s


def missed(execution: Execution, place: Int64s) -> Missed:
    """The missed writes, if the versions of each key are in the order of their places (installs,), which are distinct.

    Of several writers that a transaction sees by one key, and of which it misses a write of one other key, only the
    last one counts.
    """
    return concat([_of_reads(execution, place), _of_updates(execution, place)])


def _of_reads(execution: Execution, place: Int64s) -> Missed:
    views = execution.views
    is_written = views.writer != INITIAL
    pairs = implied.by_pairs(execution, Pairs(views.writer[is_written], views.reader[is_written]))
    read, left = (execution.row_of(writer, pairs.key) for writer in (pairs.target, pairs.source))
    rows = np.flatnonzero((read < 0) | (np.append(place, -1)[read] < place[left]))
    none = np.full(len(rows), -1)
    return Missed(pairs.reader[rows], pairs.source[rows], read[rows], left[rows], none, none)


def _of_updates(execution: Execution, place: Int64s) -> Missed:
    """Those of writers that are seen because they wrote a key before the reader did."""
    installs, views, size = execution.installs, execution.views, max(1, len(execution.keys))
    start, stop = spans(installs.writer, installs.writer)
    seen = np.repeat(np.arange(len(start)), stop - start)
    left = expand(start, stop - start)  # All pairs of writes of one transaction, in two keys or one.
    start, stop = spans(installs.writer, views.reader)
    view = np.repeat(np.arange(len(start)), stop - start)
    own = expand(start, stop - start)  # All pairs of a read and a write of one transaction.
    group, wanted = joint_codes(
        (installs.key[seen] * size + installs.key[left],), (installs.key[own] * size + views.key[view],)
    )
    order = ascending(group, place[seen])
    seen, left, group = seen[order], left[order], group[order]
    before = GroupIndex(group, place[seen]).last_before(wanted, place[own])
    last = max_so_far(group, place[left])
    read = views.install[view]
    is_missed = (before >= 0) & (np.append(last, -1)[before] > np.append(place, -1)[read])
    rows = np.flatnonzero(is_missed)
    by_place = np.empty(len(place), np.int64)
    by_place[place] = np.arange(len(place))
    left = by_place[last[before[rows]]]
    writer = installs.writer[left]
    seen = execution.row_of(writer, installs.key[own[rows]])
    return Missed(views.reader[view[rows]], writer, read[rows], left, seen, own[rows])
