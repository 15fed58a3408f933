"""Nodes of watermarks among transactions, and the place of each in the order of real time.

Theory of operation. An operation u has an index, and an end: u precedes v in real time iff end(u) <= index(v).
1. What a watermark contains had begun before it, so its index is the greatest of those of the operations that lead into
   it or into an earlier one of its chain: an operation that had ended before that precedes the watermark.
2. If a subscriber's later operations see what it has seen (`realtime: reads`), a watermark ends where the first
   operation is invoked after its receipt. Else it has no end of its own, and ends by what it leads to.
3. Several watermarks may have one index. In one ascending column of numbers each gets a place of its own, after the
   operation of its index and before the next one: that keeps every order, and every end.
Numbers by rank of receipt would claim that a stream which lags contradicts real time.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import ascending, codes, count_so_far, is_kind, max_so_far
from checkers.columns.runs import first_of_each, ordered
from checkers.columns.table import concat
from checkers.graph.edges import OPEN_END, Int32s
from checkers.watermarks.edges import Quiet, WatermarkEdges
from checkers.watermarks.nodes import WHOLE, Marks
from harness.core.columns import BACKFILL, NEVER, OPEN, ROW, Bools, Deliveries, Int64s
from harness.core.promises import StreamContract

NOBODY = -1  # The index of a watermark that contains nothing of the source.


class Watermarks(Struct, frozen=True, kw_only=True):
    """The w watermarks of some logs, by log and receipt, with all facts that the driver needs."""

    log: Int64s
    chain: Int64s  # one number for each chain of each log
    place: Int64s
    seq: Int64s  # position in the journal
    ns: Int64s
    subscriber: Int64s
    session: Int64s
    span: Int64s
    position: Int64s
    least: Int64s  # the greatest index of the operations that lead into it; NOBODY if none does
    is_mergeable: Bools  # True if it may share a node with others of its position
    is_witness: Bools  # True if it newly contains a committed write,
    is_torn_witness: Bools  # two keys of one operation,
    is_passing_witness: Bools  # or two versions of one key by one operation.


class Contents(Struct, frozen=True, kw_only=True):
    """The effect of some keys' edges on the w watermarks of a log, in columns of `Watermarks`."""

    least: Int64s
    is_witness: Bools
    is_passing_witness: Bools

    @classmethod
    def of(cls, edges: WatermarkEdges, quiet: Quiet) -> "Contents":
        """The contents that follow from those edges; `quiet` has those of quiet keys by operation."""
        count = len(edges.marks.rows)
        least = np.full(count, NOBODY, np.int64)
        np.maximum.at(least, edges.into.mark, edges.into.op)
        least[quiet.first] = quiet.into.highest(quiet.into.number, least[quiet.first])
        numbers = np.arange(count)
        is_witness, is_passing = (np.isin(numbers, marks) for marks in (edges.witnesses, edges.passing.mark))
        return cls(least=least, is_witness=is_witness, is_passing_witness=is_passing)

    def beside(self, other: "Contents") -> "Contents":
        """The contents that follow from both sets of edges together."""
        return Contents(
            least=np.maximum(self.least, other.least),
            is_witness=self.is_witness | other.is_witness,
            is_passing_witness=self.is_passing_witness | other.is_passing_witness,
        )


def watermarks(
    log: int, deliveries: Deliveries, marks: Marks, contents: Contents, torn: Int64s, contract: StreamContract
) -> Watermarks:
    """The watermarks of log number `log`; those in `torn` newly contain two keys of one operation."""
    d, count = deliveries, len(marks.rows)
    return Watermarks(
        log=np.full(count, log, np.int64),
        chain=marks.chain,
        place=marks.place,
        seq=d.seq[marks.rows],
        ns=d.ns[marks.rows],
        subscriber=d.subscriber[marks.rows],
        session=d.session[marks.rows],
        span=d.span[marks.rows],
        position=marks.position,
        least=contents.least,
        is_mergeable=_is_mergeable(deliveries, marks, contract),
        is_witness=contents.is_witness,
        is_torn_witness=np.isin(np.arange(count), torn),
        is_passing_witness=contents.is_passing_witness,
    )


def joined(parts: Sequence[Watermarks]) -> Watermarks:
    """The watermarks of all logs."""
    base = 0
    shifted = []
    for part in parts:
        shifted.append(replace(part, chain=part.chain + base))
        base += int(part.chain.max(initial=-1)) + 1
    return concat(shifted)


def nodes_of(marks: Watermarks, contract: StreamContract) -> Int64s:
    """The node of each watermark, shape (w,): those of equal position are one if that means an equal state."""
    count = len(marks.seq)
    is_one = marks.is_mergeable & (marks.position != NEVER)
    if not contract.is_position_global:
        is_one &= False
    span = np.zeros(count, np.int64) if contract.position == "epoch" else marks.span
    return codes(np.where(is_one, -1, np.arange(count)), np.where(is_one, span, 0), np.where(is_one, marks.position, 0))


class Numbering(Struct, frozen=True, dict=True):
    """Operations and nodes in one ascending column of numbers (theory of operation, 3).

    `index` (n,) ascends, and node order[i] has index[i]. `number` (n,) and `end` (n,) are those of each node.
    """

    index: Int64s
    order: Int64s  # (n,) the node at each place
    number: Int64s  # (n,) by node
    end: Int64s  # (n,) by node, as a number; OPEN_END for none of its own

    def of_op(self, op: Int64s) -> Int64s:
        """The numbers of operations; for an end, the number of the operation that was invoked next."""
        return op + self._below[np.minimum(op, len(self._below) - 1)]

    @cached_property
    def _below(self) -> Int32s:
        """For each operation the number of nodes before it; the last entry is that of all later operations.

        It is as long as the history: each task computes its own, and the driver sends none.
        """
        return np.cumsum(np.bincount(self.index + 1, minlength=1), dtype=np.int32)

    def of_end(self, end: Int64s) -> Int64s:
        """The numbers of ends; OPEN_END stays."""
        return np.where(end >= OPEN_END, OPEN_END, self.of_op(np.minimum(end, OPEN_END)))

    def known(self, number: Int64s) -> tuple[Bools, Int64s]:
        """True for numbers of nodes; and for each number the node, or the operation."""
        ascending = self.index + 1 + np.arange(len(self.index))
        at = np.searchsorted(ascending, number)
        inside = np.minimum(at, max(0, len(ascending) - 1))
        is_node = ascending[inside] == number if len(ascending) else np.zeros(len(number), np.bool_)
        node = self.order[inside] if len(ascending) else inside
        return is_node, np.where(is_node, node, number - at)


def numbering(marks: Watermarks, node: Int64s, first_after: Int64s | None) -> Numbering:
    """The numbers of all nodes and operations.

    `first_after` (w,) is the first operation invoked after each receipt, an index or OPEN_END; None if it does not
    count.
    """
    count = int(node.max(initial=-1)) + 1
    index = _indexes(marks, node, count)
    order, _ = ordered(index)
    number = np.empty(count, np.int64)
    number[order] = index[order] + 1 + np.arange(count)
    plain = Numbering(index[order], order, number, np.full(count, OPEN_END, np.int64))
    if first_after is None:
        return plain
    end = np.full(count, OPEN_END, np.int64)
    np.minimum.at(end, node, plain.of_end(first_after))
    return replace(plain, end=end)


def nodes_at(marks: Watermarks, node: Int64s, position: Int64s, contract: StreamContract) -> Int64s:
    """The node of the whole stream's watermarks at each position; NOBODY if there is none.

    A read as of a position sees the writes at it; if watermarks do not contain these, no read shares a node with them.
    """
    known = np.flatnonzero(marks.is_mergeable & (marks.span == WHOLE) & (marks.position != NEVER))
    if contract.closed == "<" or not contract.is_position_global or not len(known):
        return np.full(len(position), NOBODY, np.int64)
    known = known[ordered(marks.position[known])[0]]
    at = np.minimum(np.searchsorted(marks.position[known], position), len(known) - 1)
    return np.where(marks.position[known][at] == position, node[known[at]], NOBODY)


def chain_pairs(marks: Watermarks) -> tuple[Int64s, Int64s]:
    """Each watermark and the next one of its chain."""
    order = ascending(marks.chain, marks.place)
    is_next = ~first_of_each(marks.chain[order])[1:]
    return order[:-1][is_next], order[1:][is_next]


def _indexes(marks: Watermarks, node: Int64s, count: int) -> Int64s:
    """The index of each node by theory of operation, 1: repeated passes, until nothing changes."""
    index = np.full(count, NOBODY, np.int64)
    np.maximum.at(index, node, marks.least)
    order = ascending(marks.chain, marks.place)
    chain = marks.chain[order]
    while True:
        before = index.copy()
        np.maximum.at(index, node[order], max_so_far(chain, index[node[order]]))
        if np.array_equal(before, index):
            return index


def _is_mergeable(deliveries: Deliveries, marks: Marks, contract: StreamContract) -> Bools:
    """True for watermarks that may share a node with others of their position.

    Not those of a session that was opened for some keys only, unless its positions are epochs of the whole system.
    Under a cut by delivery, none of several with one position in their chain, unless nothing was delivered in between.
    """
    d = deliveries
    result = np.ones(len(marks.rows), np.bool_)
    same = codes(marks.chain, marks.position)
    session = codes(d.subscriber, d.session)
    if contract.position != "epoch":
        opens = np.flatnonzero(d.kind == OPEN)
        is_part = np.zeros(int(session.max(initial=-1)) + 1, np.bool_)
        is_part[session[opens[(d.key[opens] != NEVER)]]] = True
        narrow = opens[d.span[opens] >= 0]
        is_split = np.zeros(len(is_part), np.bool_)
        is_split[session[narrow]] = True
        of = session[marks.rows]
        result &= ~is_part[of] & ~(is_split[of] & (d.span[marks.rows] == WHOLE))
    if contract.cut == "delivery" and len(same) > int(same.max(initial=-1)) + 1:  # Otherwise no two have one position.
        unit = marks.unit_of_line[marks.line]
        received = count_so_far(session, is_kind(d.kind, (ROW, BACKFILL)))[marks.rows]
        low = np.full(int(same.max(initial=-1)) + 1, NEVER, np.int64)
        high = np.full(len(low), -1, np.int64)
        state = codes(unit, session[marks.rows], received)
        np.minimum.at(low, same, state)
        np.maximum.at(high, same, state)
        result &= (low == high)[same]
    # If these were one node, a watermark between them would precede itself.
    has_other = np.zeros(int(same.max(initial=-1)) + 1, np.bool_)
    has_other[same[~result]] = True
    return result & ~has_other[same]
