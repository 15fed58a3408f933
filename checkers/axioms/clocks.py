"""The order that causal consistency implies, by one clock for each transaction: how far it sees each session.

Theory of operation.
1. A transaction sees what it reads from, what its session did before, and what these see. So of each session it sees
   all before some transaction, the first one that it does not see: its *clock*, one number for each session.
2. Transactions are taken level by level, each after all that it sees, and many at once. A clock is dropped when no
   later transaction needs it, so memory follows those in use, not the history.
3. What the clock of a version's own writer contains comes before it anyway. All transactions below the least number of
   a clock are in it: its *horizon*. So a read needs the writers of its key between that and the last one that its
   reader sees.
4. Where these are more than the sessions that wrote the key, the last visible writer of each session comes from a
   binary search instead.

Time: n transactions times s sessions, plus the reads times the writers between. Source: AWDIT, PLDI 2025; for the
clocks Mattern 1989.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.axioms.implied import Implied, union, unordered
from checkers.axioms.neighbours import Neighbours
from checkers.columns.index import GroupIndex, ascending, codes, first_places
from checkers.columns.parts import constant
from checkers.columns.runs import bounds, distinct, expand, first_of_each
from checkers.columns.table import empty, take
from checkers.graph.edges import Int32s
from harness.core.columns import Int64s

_HIGH: Final = 32
_LOW: Final = (1 << _HIGH) - 1
_BLOCK: Final = 2_000_000  # Numbers of clocks, or candidates, that are handled at once.
_ROUNDS: Final = 8  # Clocks are merged in so many rounds at most: NumPy's `reduceat` takes ten times as long for a few.


class _Clocks:
    """A table with the clocks of those transactions that later ones still need, one in each row.

    Row 0 is the clock that sees nothing. For each transaction: `horizon`, known once its clock was kept, and `reach`,
    the last transaction that it sees, or -1.
    """

    def __init__(self, before: Pairs, execution: Execution) -> None:
        size = len(execution.op)
        self._before = Neighbours(before.target, before.source, size)
        self._uses = np.bincount(before.source, minlength=size)
        in_turn = ascending(execution.session, execution.turn)
        is_first = first_of_each(execution.session[in_turn])
        self._next = np.full(size, size, np.int32)  # Of its session; `size` for the last one.
        self._next[in_turn[:-1]] = np.where(is_first[1:], size, in_turn[1:])
        self._table = in_turn[is_first].astype(np.int32)[np.newaxis]
        self._row = np.zeros(size + 1, np.int64)  # The last one is for INITIAL.
        self._free = np.empty(0, np.int64)
        self.horizon, self.reach = np.zeros(size, np.int64), np.full(size, -1)

    def seen(self, nodes: Int64s) -> Int32s:
        """The first transaction of each session that those transactions do not see, shape (m, sessions)."""
        count = self._before.count[nodes]
        before = self._before.of(nodes)
        row, starts = self._row[before], np.cumsum(count) - count
        result = self._table[np.where(count, np.append(row, 0)[starts], 0)]
        for place in range(1, min(int(count.max()), _ROUNDS)):
            more = np.flatnonzero(count > place)
            result[more] = np.maximum(result[more], self._table[row[starts[more] + place]])
        many = np.flatnonzero(count > _ROUNDS)
        if len(many):
            rest = row[expand(starts[many], count[many])]
            ends = np.cumsum(count[many]) - count[many]
            result[many] = np.maximum.reduceat(self._table[rest], ends, axis=0)
        follows = np.flatnonzero(count)
        if len(follows):
            self.reach[nodes[follows]] = np.maximum.reduceat(np.maximum(before, self.reach[before]), starts[follows])
        return result

    def of(self, node: Int64s, session: Int64s | Int32s) -> Int32s:
        """The first transaction of that session that each one does not see. Each is INITIAL, or has a clock."""
        return self._table[self._row[node], session]

    def keep(self, nodes: Int64s, sessions: Int64s, clocks: Int32s) -> None:
        """Store the clocks of `nodes` that later ones need, and drop those of which `nodes` were the last users.

        `clocks` is what they see; a clock that is kept has the transaction itself as well.
        """
        clocks[np.arange(len(nodes)), sessions] = self._next[nodes]
        sources = self._before.of(nodes)
        np.subtract.at(self._uses, sources, 1)
        used = distinct(sources)
        self._free = np.append(self._free, self._row[used[self._uses[used] == 0]])
        needed = np.flatnonzero(self._uses[nodes])
        missing = len(needed) - len(self._free)
        if missing > 0:
            size = len(self._table)
            more = max(missing, size)
            self._table = np.concatenate((self._table, np.empty((more, self._table.shape[1]), np.int32)))
            self._free = np.append(self._free, np.arange(size, size + more))
        # The rows that were freed last are taken first: they are still in the cache.
        self._free, rows = np.split(self._free, [len(self._free) - len(needed)])
        self._row[nodes[needed]] = rows
        self._table[rows] = clocks[needed]
        self.horizon[nodes[needed]] = clocks[needed].min(axis=1)


class _Writers:
    """The writers of each key, and of each group: one of key and session.

    `rows` are those of installs, sorted by key and transaction. `packed` has that order, so that neighbours are read
    without a jump for each: the session of each writer << 32, plus the writer.
    """

    def __init__(self, execution: Execution) -> None:
        key, writer = execution.installs.key, execution.installs.writer
        session = execution.session[writer]
        self.rows = ascending(key, writer)
        self.packed = (session << _HIGH | writer)[self.rows]
        # Of each key the place of its first writer in each stretch of transactions: about as many numbers as installs.
        keys, size = max(1, len(execution.keys)), max(1, len(execution.op))
        self._width = -(-size * keys // max(1, len(key)))
        stretch_count = -(-size // self._width)
        counts = np.bincount(writer // self._width * keys + key, minlength=stretch_count * keys)
        first = bounds(key[self.rows], keys)[:-1]
        later = first + np.cumsum(counts.reshape(stretch_count, keys), axis=0)
        self._places = np.vstack((first, later)).astype(np.int32)
        group = codes(key, session)
        of_group = first_places(group, int(group.max(initial=-1)) + 1)
        self.by_group = GroupIndex(group, writer)
        self.session = session[of_group].astype(np.int32)  # Of each group.
        self.first = bounds(key[of_group], len(execution.keys))  # The first group of each key, and their number.

    def near(self, key: Int64s, start: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
        """The places of a few more writers of each key than those from transaction `start` to before `stop`."""
        low, high = self._places[start // self._width, key], self._places[-(-stop // self._width), key]
        return low.astype(np.int64), np.maximum(low, high).astype(np.int64)


def levels(before: Pairs, size: int) -> Iterator[Int64s]:
    """The transactions in groups: all before each of a group are in earlier groups.

    Those on a cycle, or after one, are left out.
    """
    after = Neighbours(before.source, before.target, size)
    waits = np.bincount(before.target, minlength=size)
    ready = np.flatnonzero(waits == 0)
    while len(ready):
        yield ready
        targets = after.of(ready)
        np.subtract.at(waits, targets, 1)
        ready = distinct(targets[waits[targets] == 0])


def by_causes(execution: Execution, before: Pairs) -> Implied:
    """The pairs that causal consistency implies, sorted, each once, without their reasons (`with_reasons`).

    `before` holds the pairs of reads and sessions, once each, without a cycle.
    """
    parts, pending = [np.empty(0, np.int64)], 0
    for new in _parts(execution, before):
        parts.append(_packed(execution, new))
        pending += len(parts[-1])
        if pending > max(_BLOCK, len(parts[0])):  # Readers of one version imply the same: keep it once.
            parts, pending = [distinct(np.concatenate(parts))], 0
    source, target = np.divmod(distinct(np.concatenate(parts)), len(execution.op) + 1)
    return Implied(source, target + INITIAL, constant(-1, len(source)), constant(-1, len(source)))


def with_reasons(execution: Execution, before: Pairs, found: Implied, rows: Int64s) -> Implied:
    """The same pairs; those in `rows`, which ascend, get their reason: the least reader that implies them, and its key.

    `found` is the result of `by_causes` for the same execution and the same `before`.
    """
    wanted = _packed(execution, take(found, rows))
    parts = (take(part, np.isin(_packed(execution, part), wanted)) for part in _parts(execution, before))
    known = union([empty(Implied), *parts])
    reader, key = (np.full(len(found.source), -1, np.int64) for _ in range(2))
    reader[rows], key[rows] = known.reader, known.key
    return Implied(found.source, found.target, reader, key)


def _packed(execution: Execution, pairs: Implied) -> Int64s:
    """One number for each pair, in the order of source and target."""
    return pairs.source * (len(execution.op) + 1) + (pairs.target - INITIAL)


def _parts(execution: Execution, before: Pairs) -> Iterator[Implied]:
    """Yield what the reads of all transactions imply, in the order of levels; a pair may come several times."""
    clocks, writers = _Clocks(before, execution), _Writers(execution)
    starts = bounds(execution.views.reader, len(execution.op))
    block = max(1, _BLOCK // max(1, int(execution.session.max(initial=-1)) + 1))
    for level in levels(before, len(execution.op)):
        for low in range(0, len(level), block):
            nodes = level[low : low + block]
            seen = clocks.seen(nodes)
            reads = starts[nodes], starts[nodes + 1]
            yield from _of_reads(execution, writers, clocks, nodes, reads, seen)
            clocks.keep(nodes, execution.session[nodes], seen)


def _of_reads(
    execution: Execution,
    writers: _Writers,
    clocks: _Clocks,
    nodes: Int64s,
    reads: tuple[Int64s, Int64s],
    seen: Int32s,
) -> Iterator[Implied]:
    """Yield the pairs that the reads of those transactions imply, in parts of about _BLOCK candidates at most.

    `reads` are the start and the stop of the rows of views of each.
    """
    views, (start, stop) = execution.views, reads
    view, at = expand(start, stop - start), np.repeat(np.arange(len(nodes)), stop - start)
    key, source = views.key[view], views.writer[view]
    horizon = np.where(source == INITIAL, 0, clocks.horizon[source])
    low, high = writers.near(key, horizon, clocks.reach[nodes[at]] + 1)
    between = high - low
    first, last = writers.first[key], writers.first[key + 1]
    is_near, flat = between <= last - first, seen.ravel()
    cost = np.cumsum(np.minimum(between, last - first))
    cuts = np.searchsorted(cost, np.arange(_BLOCK, int(cost[-1]) if len(cost) else 0, _BLOCK))
    for rows in np.split(np.arange(len(view)), distinct(cuts)):
        near, far = rows[is_near[rows]], rows[~is_near[rows]]
        place, row = expand(low[near], between[near]), np.repeat(near, between[near])
        packed = writers.packed[place]
        session, node = packed >> _HIGH, packed & _LOW
        is_seen = np.flatnonzero(flat[at[row] * seen.shape[1] + session] > node)
        place, row, session, node = place[is_seen], row[is_seen], session[is_seen], node[is_seen]
        is_new = node >= clocks.of(source[row], session)
        yield unordered(execution, writers.rows[place[is_new]], view[row[is_new]])
        if len(far):
            yield _of_sessions(execution, writers, clocks, (view[far], first[far], last[far]), seen[at[far]])


def _of_sessions(
    execution: Execution, writers: _Writers, clocks: _Clocks, reads: tuple[Int64s, Int64s, Int64s], seen: Int32s
) -> Implied:
    """The pairs implied by reads whose last visible writer is searched by session (theory of operation 4).

    `reads` are rows of views, and for each the range of groups of its key; `seen` is what their readers see.
    """
    view, first, last = reads
    group, row = expand(first, last - first), np.repeat(np.arange(len(view)), last - first)
    session = writers.session[group]
    unseen, unknown = seen[row, session], clocks.of(execution.views.writer[view[row]], session)
    # If the reader sees no more of a session than the writer did, nothing follows from that session.
    more = np.flatnonzero(unseen > unknown)
    group, row, unknown = group[more], row[more], unknown[more]
    install = writers.by_group.last_before(group, unseen[more].astype(np.int64))
    is_new = (install >= 0) & (execution.installs.writer[install] >= unknown)
    return unordered(execution, install[is_new], view[row[is_new]])
