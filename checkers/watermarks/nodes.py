"""Watermarks as nodes of the dependency graph, and the chains that order them.

A chain is the watermarks of one partition (or of the whole stream) that reached one session, in order of receipt; it
continues across sessions if watermarks are promised to subscribers or wider. A watermark that goes back begins a new
chain: watermark-regress reports that. A *line* is all chains of one partition together.
"""

import numpy as np
from msgspec import Struct

from checkers.columns.index import GroupIndex, codes
from checkers.columns.runs import first_of_each, ordered
from harness.core.columns import NEVER, WATERMARK, Deliveries, Int64s
from harness.core.promises import StreamContract

WHOLE = -1  # The span of a watermark of the whole stream.


class Marks(Struct, frozen=True, kw_only=True):
    """The w watermarks of a log, in order of receipt: number i is at rows[i] of the log.

    `chain` are dense ids, `place` counts inside each chain, from 0, and `order` (w,) has the numbers by chain and
    place: those of chain c are order[begin[c]:begin[c + 1]]. Positions never fall inside a chain.
    """

    rows: Int64s
    line: Int64s  # (w,)
    chain: Int64s
    place: Int64s
    position: Int64s
    order: Int64s
    begin: Int64s  # (chains + 1,)
    unit_of_line: Int64s  # (lines,) the session or subscriber that each line is of
    span_of_line: Int64s
    by_receipt: GroupIndex  # (w,) finds numbers by line and row

    def line_of(self, unit: Int64s, span: Int64s) -> Int64s:
        """The line of each pair of unit and partition; -1 if it has no watermark."""
        high = int(max(self.span_of_line.max(initial=0), span.max(initial=0))) + 2
        known = self.unit_of_line * high + self.span_of_line + 1  # Lines are numbered in this order.
        wanted = unit * high + span + 1
        if not len(known):
            return np.full(len(unit), -1, np.int64)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where((span >= WHOLE) & (known[at] == wanted), at, -1)

    def length(self) -> Int64s:
        """The number of watermarks of each chain, shape (chains,)."""
        return np.diff(self.begin)

    def number(self, chain: Int64s, place: Int64s) -> Int64s:
        """The numbers of the watermarks at those places of those chains."""
        result: Int64s = self.order[self.begin[chain] + place]
        return result

    def first_after(self, line: Int64s, row: Int64s) -> tuple[Int64s, Int64s]:
        """Chain and place of the first watermark of each line after `row`.

        If none follows, the line's last chain and the place after its end; chain -1 for a line of -1.
        """
        number = self.by_receipt.first(line, row, above=True)
        chain, place = self.chain[number], self.place[number]
        none = np.flatnonzero(number < 0)
        lines = np.arange(len(self.unit_of_line))
        last = np.append(self.by_receipt.last_before(lines, np.full(len(lines), NEVER, np.int64)), -1)[line[none]]
        chain[none] = np.where(last >= 0, self.chain[last], -1)
        place[none] = np.where(last >= 0, self.place[last] + 1, -1)
        return chain, place

    def pairs(self) -> tuple[Int64s, Int64s]:
        """The chain edges, from each watermark to the next one of its chain."""
        is_next = ~first_of_each(self.chain[self.order])[1:]
        return self.order[:-1][is_next], self.order[1:][is_next]


def units_of(deliveries: Deliveries, contract: StreamContract) -> Int64s:
    """The unit of each event (n,), its session or its subscriber: a chain stays inside one unit."""
    if contract.wm_scope == "session":
        return codes(deliveries.subscriber, deliveries.session)
    return codes(deliveries.subscriber)


def marks_of(deliveries: Deliveries, unit: Int64s, *, is_cut_known: bool) -> Marks:
    """The watermarks of a log whose events belong to those units; none if their cut is not known. O(n log n)."""
    rows = np.flatnonzero(deliveries.kind == WATERMARK) if is_cut_known else np.empty(0, np.int64)
    line = codes(unit[rows], deliveries.span[rows])
    position = deliveries.position[rows]
    by_line, _ = ordered(line)
    is_cut = first_of_each(line[by_line])
    is_cut[1:] |= position[by_line][1:] < position[by_line][:-1]
    chain = np.empty(len(rows), np.int64)
    chain[by_line] = np.cumsum(is_cut) - 1
    begin = np.append(np.flatnonzero(is_cut), len(rows))
    place = np.empty(len(rows), np.int64)
    place[by_line] = np.arange(len(rows)) - np.repeat(begin[:-1], np.diff(begin))
    is_first = by_line[first_of_each(line[by_line])]
    return Marks(
        rows=rows,
        line=line,
        chain=chain,
        place=place,
        position=position,
        order=by_line,
        begin=begin,
        unit_of_line=unit[rows[is_first]],
        span_of_line=deliveries.span[rows[is_first]],
        by_receipt=GroupIndex(line, rows, np.arange(len(rows))),
    )
