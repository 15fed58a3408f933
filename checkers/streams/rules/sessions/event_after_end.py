"""S28 event-after-end: nothing follows the marker that ends a stream."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, is_kind
from checkers.history.names import Names, capital
from checkers.streams.examples import Example
from checkers.streams.findings import after, arrived, both
from checkers.streams.rule import OfLog, Rule
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
    """The last of those markers before each row that names its session, partition or key; -1 if there is none."""
    d = view.deliveries
    has_key, has_span = d.key != NEVER, d.span >= 0
    whole = _last(view, rows, np.flatnonzero(is_marker & ~has_key & ~has_span), np.zeros(len(d.kind), np.int64))
    of_span = _last(view, rows, np.flatnonzero(is_marker & ~has_key & has_span), d.span)
    of_key = _last(view, rows, np.flatnonzero(is_marker & has_key), d.key)
    return np.maximum(np.maximum(whole, of_span), of_key)


def _last(view: StreamView, rows: Int64s, marks: Int64s, name: Int64s) -> Int64s:
    group = codes(np.append(view.session[rows], view.session[marks]), np.append(name[rows], name[marks]))
    return GroupIndex(group[len(rows) :], marks, marks).last_before(group[: len(rows)], rows)


def _sentence(example: Example, name: Names) -> str:
    mark, end = both(example)
    what = arrived(example, name)
    if mark.kind == WATERMARK:
        what = f"{capital(name.forms.watermark(mark.position))} reached {example.subscriber}"
    return f"{what} {after(end, mark)} after the end of what it belongs to."


EVENT_AFTER_END: Final = Rule(
    name="event-after-end",
    id="S28",
    rank=220,
    meaning="An event, or a watermark, came after the marker that ended its stream.",
    witness="a marker that ends something",
    scope=OfLog(events_after_end, _sentence),
)
