"""S24 rewritten-offset: what was read once at an offset of a log, is there whenever it is read again."""

import numpy as np

from checkers.columns.index import GroupIndex, codes, count_so_far
from checkers.columns.runs import distinct
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import END, NEVER, ROW, Bools, Int64s


def rewritten_offsets(view: StreamView) -> Ruling:
    """S24: rows at a position at which one with another key or value was read before, in whatever session.

    Only where one event stands at a position (`events_at_position`). One key with two values is S04's, where the value
    is no part of the identity. A partition that ended, and is read again, is another one by the same name. That
    something is gone is no fault: what is old may be removed. A witness is a position that was read in two sessions, or
    showed two events. O(n log n).
    """
    if view.contract.events_at_position != "one":
        return Ruling.nothing()
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.value != NEVER))
    log, ended = _log(view)
    offset = codes(log[rows], ended[rows], d.position[rows])
    earliest = GroupIndex(offset, rows, rows).first(offset, np.zeros(len(rows), np.int64))
    differs = (earliest < rows) & ~_is_alike(view, rows, earliest)
    is_witness = differs | (view.session[rows] != view.session[earliest])
    witnesses = len(distinct(offset[is_witness]))
    return Ruling.of_events(rows[differs], earliest[differs], witnesses=witnesses)


def _log(view: StreamView) -> tuple[Int64s, Int64s]:
    """Of which log each row is (n,), its partition if positions are each one's own; and how often that had ended."""
    d = view.deliveries
    log = np.zeros(len(d.kind), np.int64) if view.contract.is_position_global else d.span + 1
    is_end = (d.kind == END) & (d.key == NEVER)
    is_of_all = is_end & (d.span < 0)
    return log, count_so_far(np.zeros_like(log), is_of_all) + count_so_far(log, is_end & ~is_of_all)


def _is_alike(view: StreamView, rows: Int64s, others: Int64s) -> Bools:
    """Is each pair the same, or told apart by another rule?"""
    d = view.deliveries
    result: Bools = d.key[rows] == d.key[others]
    if view.contract.identity == "position+key+value":
        result &= d.value[rows] == d.value[others]
    return result
