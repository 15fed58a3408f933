"""S28 event-after-end: nothing follows the marker that ends a stream."""

import numpy as np

from checkers.columns.index import GroupIndex, codes, is_kind
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import BACKFILL, END, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s


def events_after_end(view: StreamView) -> Ruling:
    """S28: rows and watermarks after the end of their session, partition or key, unless that was opened anew.

    A watermark of the whole stream may follow the end of a partition. A witness is a marker that ends something.
    O(n log n).
    """
    d = view.deliveries
    if not np.any(d.kind == END):
        return Ruling.nothing()
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL, WATERMARK)) & ~view.is_phantom)
    rows = rows[np.isin(view.session[rows], view.session[d.kind == END])]
    ended = _latest(view, rows, d.kind == END)
    broken = np.flatnonzero((ended >= 0) & (ended > _latest(view, rows, d.kind == OPEN)))
    return Ruling.of_events(rows[broken], ended[broken], witnesses=int(np.count_nonzero(d.kind == END)))


def _latest(view: StreamView, rows: Int64s, is_marker: Bools) -> Int64s:
    """The last of those markers before each row that names its session, its partition or its key; -1 without one."""
    d = view.deliveries
    has_key, has_span = d.key != NEVER, d.span >= 0
    whole = _last(view, rows, np.flatnonzero(is_marker & ~has_key & ~has_span), np.zeros(len(d.kind), np.int64))
    of_span = _last(view, rows, np.flatnonzero(is_marker & ~has_key & has_span), d.span)
    of_key = _last(view, rows, np.flatnonzero(is_marker & has_key), d.key)
    return np.maximum(np.maximum(whole, of_span), of_key)


def _last(view: StreamView, rows: Int64s, marks: Int64s, name: Int64s) -> Int64s:
    group = codes(np.append(view.session[rows], view.session[marks]), np.append(name[rows], name[marks]))
    return GroupIndex(group[len(rows) :], marks, marks).last_before(group[: len(rows)], rows)
