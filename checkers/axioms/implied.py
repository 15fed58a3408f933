"""The order of commits that reads imply under a model's axiom, computed by joins of columns.

Theory of operation. t3 reads x from t1, and t2, another transaction, also writes x. If the model makes t2 *visible* to
the read, then t2 must commit before t1: else t3 would have read t2's version, or a later one. Visible is
- for a monotonic view, what t3 has read from before that read,
- for read atomic, what t3 reads from at any place, and with sessions what its own session did before,
- for causal consistency, what leads to t3 over any number of such steps (`clocks`).
The model holds iff the order of reads, sessions, known versions and these implications has no cycle. None may lead to
the initial version, which comes first. If several writers of one session are visible, the last suffices.

Source: Biswas and Enea, On the Complexity of Checking Transactional Consistency, OOPSLA 2019, and for the joins AWDIT,
PLDI 2025. Their read committed is called monotonic atomic view here, as Bailis et al., VLDB 2013, define it.
"""

import numpy as np
from msgspec import Struct

from checkers.axioms.execution import INITIAL, UNRANKED, Execution, Pairs
from checkers.columns.index import GroupIndex, ascending, codes
from checkers.columns.runs import bounds, expand, first_of_each, spans
from checkers.columns.table import concat, empty, ordered_by, take
from harness.core.columns import Int64s


class Implied(Struct, frozen=True):
    """Pairs `source` before `target` (or INITIAL): `reader` sees `source`, but read `key` from `target`."""

    source: Int64s
    target: Int64s
    reader: Int64s
    key: Int64s


def by_view(execution: Execution) -> Implied:
    """The order that a monotonic view implies."""
    return _by_reads(execution, is_ordered=True)


def by_reads(execution: Execution) -> Implied:
    """The order that read atomic implies, without sessions."""
    return _by_reads(execution, is_ordered=False)


def by_session(execution: Execution) -> Implied:
    """The pairs that read atomic implies because each transaction sees what its session did before."""
    views, installs = execution.views, execution.installs
    count = len(installs.writer)
    keys = np.concatenate((installs.key, views.key))
    sessions = execution.session[np.concatenate((installs.writer, views.reader))]
    group = codes(keys, sessions)
    index = GroupIndex(group[:count], execution.turn[installs.writer])
    row = index.last_before(group[count:], execution.turn[views.reader])
    return unordered(execution, row, np.arange(len(views.reader)))


def unordered(execution: Execution, install: Int64s, view: Int64s) -> Implied:
    """The pairs implied if write install[i], a row of installs or -1, is visible to read view[i], a row of views.

    Pairs that follow from the known order of a list's versions are left out.
    """
    views, installs = execution.views, execution.installs
    install, view = install[install >= 0], view[install >= 0]
    is_other = (installs.writer[install] != views.writer[view]) & (installs.writer[install] != views.reader[view])
    install, view = install[is_other], view[is_other]
    rank, read = installs.rank[install], views.rank[view]
    is_open = (rank == UNRANKED) | (read == UNRANKED) | (rank > read) | (views.writer[view] == INITIAL)
    install, view = install[is_open], view[is_open]
    return Implied(installs.writer[install], views.writer[view], views.reader[view], views.key[view])


def union(parts: list[Implied]) -> Implied:
    """The pairs of all parts, sorted, each once; of the reasons for a pair the least reader and key are kept."""
    every = ordered_by(concat(parts), "source", "target", "reader", "key")
    is_first = first_of_each(every.source) | first_of_each(every.target)
    return take(every, is_first)


def _by_reads(execution: Execution, *, is_ordered: bool) -> Implied:
    """The pairs implied if a transaction's reads see all that it reads from; with `is_ordered`, what it read before."""
    views = execution.views
    order = ascending(views.reader, views.writer, views.place)
    order = order[views.writer[order] != INITIAL]
    order = order[first_of_each(views.reader[order]) | first_of_each(views.writer[order])]
    pairs = Pairs(views.writer[order], views.reader[order])
    return by_pairs(execution, pairs, views.place[order] if is_ordered else None)


def by_pairs(execution: Execution, seen: Pairs, place: Int64s | None = None) -> Implied:
    """The pairs implied if each target of `seen` sees its source: in all its reads, or in those at a greater `place`.

    Each pair is joined with the keys that its source writes and its target reads, starting with the fewer of the two.
    """
    views, installs = execution.views, execution.installs
    writer, reader = seen.source, seen.target
    first_read, first_write = (bounds(each, len(execution.op)) for each in (views.reader, installs.writer))
    read_start, read_stop = first_read[reader], first_read[reader + 1]
    write_start, write_stop = first_write[writer], first_write[writer + 1]
    is_short = write_stop - write_start <= read_stop - read_start
    parts = [empty(Implied)]
    for pairs, from_writes in ((np.flatnonzero(is_short), True), (np.flatnonzero(~is_short), False)):
        start, stop = (write_start, write_stop) if from_writes else (read_start, read_stop)
        count = (stop - start)[pairs]
        row, pair = expand(start[pairs], count), np.repeat(pairs, count)
        if from_writes:
            install, (low, high) = row, _view_rows(execution, reader[pair], installs.key[row])
            view = expand(low, high - low)
            install, pair = np.repeat(install, high - low), np.repeat(pair, high - low)
        else:
            view, install = row, execution.row_of(writer[pair], views.key[row])
        if place is not None:
            install = np.where(place[pair] < views.place[view], install, -1)
        parts.append(unordered(execution, install, view))
    return union(parts)


def _view_rows(execution: Execution, reader: Int64s, key: Int64s) -> tuple[Int64s, Int64s]:
    """The starts and the stops of the ranges of views that hold that reader's reads of that key."""
    views, size = execution.views, max(1, len(execution.keys))
    return spans(views.reader * size + views.key, reader * size + key)
