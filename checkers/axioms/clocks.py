"""The order that causal consistency implies, by one clock for each transaction: how far it sees each session.

Theory of operation.
1. A transaction sees what it reads from, what its session did before, and what these see. So of each session it sees
   all up to some turn: its *clock*, one number for each session.
2. Transactions are taken level by level, each after all that it sees, and many at once. A clock is dropped when no
   later transaction needs it, so memory follows those in use, not the history.
3. For each read, and each session that wrote its key, the last visible writer comes from a binary search. What the
   clock of the version's own writer contains comes before it anyway.

Time: n transactions times s sessions, plus the reads times the sessions that wrote the key. Source: AWDIT, PLDI 2025;
for the clocks Mattern 1989.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.axioms.implied import Implied, nothing, union, unordered
from checkers.axioms.neighbours import Neighbours
from checkers.columns.index import ascending
from checkers.columns.runs import distinct, expand, first_of_each, spans
from checkers.graph.edges import Int32s
from harness.core.columns import Int64s

_BLOCK: Final = 2_000_000  # Numbers of clocks, or candidates, that are handled at once.


class _Clocks:
    """The clocks of transactions that others still need, in rows of one table."""

    def __init__(self, before: Pairs, size: int, sessions: int) -> None:
        self._before = Neighbours(before.target, before.source, size)
        self._uses = np.bincount(before.source, minlength=size)
        self._table = np.full((1, sessions), -1, np.int32)
        self._row = np.zeros(size, np.int64)
        self._free = np.empty(0, np.int64)

    def seen(self, nodes: Int64s) -> Int32s:
        """(m, sessions) The last turn of each session that those transactions see, -1 for none."""
        result = np.full((len(nodes), self._table.shape[1]), -1, np.int32)
        count = self._before.count[nodes]
        follows = np.flatnonzero(count)
        if len(follows):
            rows = self._row[self._before.of(nodes)]
            starts = (np.cumsum(count) - count)[follows]
            result[follows] = np.maximum.reduceat(self._table[rows], starts, axis=0)
        return result

    def of(self, node: Int64s, session: Int64s) -> Int64s:
        """The last turn of that session that the transaction, which is still in use, sees."""
        result: Int64s = self._table[self._row[node], session].astype(np.int64)
        return result

    def keep(self, nodes: Int64s, clocks: Int32s) -> None:
        """Keep the clocks of those that a later one needs, and drop those that were needed for the last time."""
        sources = np.sort(self._before.of(nodes))
        is_first = first_of_each(sources)
        used = sources[is_first]
        self._uses[used] -= np.diff(np.append(np.flatnonzero(is_first), len(sources)))
        self._free = np.append(self._free, self._row[used[self._uses[used] == 0]])
        needed = np.flatnonzero(self._uses[nodes])
        missing = len(needed) - len(self._free)
        if missing > 0:
            size = len(self._table)
            more = max(missing, size)
            self._table = np.concatenate((self._table, np.empty((more, self._table.shape[1]), np.int32)))
            self._free = np.append(self._free, np.arange(size, size + more))
        rows, self._free = self._free[: len(needed)], self._free[len(needed) :]
        self._row[nodes[needed]] = rows
        self._table[rows] = clocks[needed]


@dataclass(frozen=True, slots=True)
class _Writers:
    """The writes of each key by session and turn: group g is rows start[g]:stop[g] of `turn` and `install`."""

    install: Int64s
    turn: Int64s
    start: Int64s
    stop: Int64s
    session: Int64s  # Of each group.
    key: Int64s  # Of each group, ascending.

    @staticmethod
    def of(execution: Execution) -> "_Writers":
        installs = execution.installs
        session, turn = execution.session[installs.writer], execution.turn[installs.writer]
        order = ascending(installs.key, session, turn)
        is_first = first_of_each(installs.key[order]) | first_of_each(session[order])
        start = np.flatnonzero(is_first)
        stop, first = np.append(start[1:], len(order))[: len(start)], order[start]
        return _Writers(order, turn[order], start, stop, session[first], installs.key[first])

    def last(self, group: Int64s, turn: Int64s) -> Int64s:
        """The row of each group's last write up to that turn; the one before its first if there is none."""
        low, stop = self.start[group] - 1, self.stop[group]
        step = 1 << int((self.stop - self.start).max(initial=0)).bit_length()
        while step := step >> 1:
            there = low + step
            is_seen = there < stop
            is_seen &= self.turn[np.where(is_seen, there, 0)] <= turn
            low = np.where(is_seen, there, low)
        return low


def levels(before: Pairs, size: int) -> Iterator[Int64s]:
    """The transactions, each after those that come before it, many at a time. Those on a cycle never come."""
    after = Neighbours(before.source, before.target, size)
    waits = np.bincount(before.target, minlength=size)
    ready = np.flatnonzero(waits == 0)
    while len(ready):
        yield ready
        targets = np.sort(after.of(ready))
        is_first = first_of_each(targets)
        reached = targets[is_first]
        waits[reached] -= np.diff(np.append(np.flatnonzero(is_first), len(targets)))
        ready = reached[waits[reached] == 0]


def by_causes(execution: Execution, before: Pairs) -> Implied:
    """The order that causal consistency implies; `before`: the pairs of reads and sessions, once each, acyclic."""
    size = len(execution.op)
    session_count = int(execution.session.max(initial=-1)) + 1
    clocks, writers = _Clocks(before, size, session_count), _Writers.of(execution)
    block = max(1, _BLOCK // max(1, session_count))
    parts = [nothing()]
    for level in levels(before, size):
        for low in range(0, len(level), block):
            nodes = level[low : low + block]
            seen = clocks.seen(nodes)
            parts += _of_reads(execution, writers, clocks, nodes, seen)
            seen[np.arange(len(nodes)), execution.session[nodes]] = execution.turn[nodes]
            clocks.keep(nodes, seen)
    return union(parts)


def _of_reads(
    execution: Execution,
    writers: _Writers,
    clocks: _Clocks,
    nodes: Int64s,
    seen: Int32s,
) -> Iterator[Implied]:
    """The order that the reads of those transactions imply, part by part."""
    views = execution.views
    start, stop = spans(views.reader, nodes)
    view, at = expand(start, stop - start), np.repeat(np.arange(len(nodes)), stop - start)
    first, last = spans(writers.key, views.key[view])
    cost = np.cumsum(last - first)
    cuts = np.searchsorted(cost, np.arange(_BLOCK, int(cost[-1]) if len(cost) else 0, _BLOCK))
    for rows in np.split(np.arange(len(view)), distinct(cuts)):
        count = (last - first)[rows]
        group, row = expand(first[rows], count), np.repeat(rows, count)
        session = writers.session[group]
        turn = seen[at[row], session].astype(np.int64)
        source = views.writer[view[row]]
        known = np.where(source == INITIAL, -1, clocks.of(np.maximum(source, 0), session))
        # Of a session of which the reader sees no more than the writer did, nothing follows.
        more = np.flatnonzero(turn > known)
        group, row, turn, known = group[more], row[more], turn[more], known[more]
        place = writers.last(group, turn)
        is_new = place >= writers.start[group]
        is_new &= writers.turn[np.maximum(place, 0)] > known
        yield unordered(execution, writers.install[place[is_new]], view[row[is_new]])
