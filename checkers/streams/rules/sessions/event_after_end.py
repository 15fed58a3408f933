"""S28 event-after-end: nothing follows the marker that ends a stream."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, is_kind, joint_codes
from checkers.history.names import Names, capital
from checkers.streams.examples import Example
from checkers.streams.findings import after, arrived, both
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, END, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s


def events_after_end(view: StreamView) -> Ruling:
    """S28: rows and watermarks after the end of their session, partition or key, unless that was opened anew.

    A watermark of the whole stream may follow the end of a partition. What names no partition may be of any that was
    opened anew. A witness is a marker that ends something. O(n log n).
    """
    d = view.deliveries
    if not np.any(d.kind == END):
        return Ruling.nothing()
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL, WATERMARK)) & ~view.is_phantom)
    rows = rows[np.isin(view.session[rows], view.session[d.kind == END])]
    ended, opened = _latest(view, rows, d.kind == END), _latest(view, rows, d.kind == OPEN)
    any_part = _last(view, rows, np.flatnonzero((d.kind == OPEN) & (d.key == NEVER)))
    opened = np.where(d.span[rows] < 0, np.maximum(opened, any_part), opened)
    broken = np.flatnonzero(ended > opened)
    return Ruling.of_events(rows[broken], ended[broken], witnesses=int(np.count_nonzero(d.kind == END)))


def _latest(view: StreamView, rows: Int64s, is_marker: Bools) -> Int64s:
    """The last of those markers before each row that names its session, partition or key; -1 if there is none."""
    d = view.deliveries
    has_key, has_span = d.key != NEVER, d.span >= 0
    whole = _last(view, rows, np.flatnonzero(is_marker & ~has_key & ~has_span))
    of_span = _last(view, rows, np.flatnonzero(is_marker & ~has_key & has_span), d.span)
    of_key = _last(view, rows, np.flatnonzero(is_marker & has_key), d.key)
    return np.maximum(np.maximum(whole, of_span), of_key)


def _last(view: StreamView, rows: Int64s, marks: Int64s, *names: Int64s) -> Int64s:
    """The last of those markers before each row, in its session and with the same values in `names`; -1 for none."""
    columns = (view.session, *names)
    of_row, of_mark = joint_codes([column[rows] for column in columns], [column[marks] for column in columns])
    return GroupIndex(of_mark, marks, marks).last_before(of_row, rows)


def _sentence(example: Example, name: Names) -> str:
    mark, end = both(example)
    what = arrived(example, name)
    if mark.kind == WATERMARK:
        what = f"{capital(name.forms.watermark(mark.position))} reached {example.subscriber}"
    return f"{what} {after(end, mark)} after the end of its unit."


EVENT_AFTER_END: Final = Rule(
    name="event-after-end",
    id="S28",
    rank=220,
    anomaly=Anomaly(
        meaning="An event, or a watermark, came after the marker that ended its stream.", cause=Cause.SESSION
    ),
    witness="a marker that ends something",
    scope=OfLog(events_after_end, _sentence),
)
