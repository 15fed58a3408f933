"""S08 watermark-from-future: a watermark speaks of what there is, and of nothing that has yet to begin."""

import numpy as np

from checkers.ragged import ordered
from checkers.stream_around import Issued, issues_by_writes
from checkers.stream_index import is_kind, max_so_far
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import BACKFILL, INFO, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s

COUNTED = ("offset", "revision", "epoch")  # Positions that count by one.


def watermarks_from_future(view: StreamView, readers: Issued) -> Ruling:
    """S08: watermarks above all that can have been there when they were received.

    Where positions follow a clock that compares with the harness's (`clock_error_ns`), a watermark may be ahead of this
    by the error, and no more. Where they follow the writes, and watermarks rest without any (`wm_idle`), one may not
    pass all positions of operations invoked before it was received; an exclusive one may be just above the last, if
    positions count by one. What a session began with, and what had been delivered, was there as well. Nothing is said
    before the first operation with a position has ended, for nobody knows where the source began; nor while one without
    a position may have taken any: until an operation with one has begun behind its end, where positions obey real time.
    A witness is a watermark that was compared. O(n log n).
    """
    if view.contract.follows_clock:
        return _ahead_of_clock(view)
    is_exclusive = view.contract.closed == "<"
    if not issues_by_writes(view.contract) or (is_exclusive and view.contract.position not in COUNTED):
        return Ruling.nothing()
    return _ahead_of_writes(view, readers, int(is_exclusive))


def _ahead_of_clock(view: StreamView) -> Ruling:
    error_ns = view.contract.clock_error_ns
    if error_ns is None:
        return Ruling.nothing()
    d, marks = view.deliveries, _marks(view)
    return Ruling.of_events(marks[d.position[marks] > d.ns[marks] + error_ns], witnesses=len(marks))


def _ahead_of_writes(view: StreamView, readers: Issued, step: int) -> Ruling:
    d, marks = view.deliveries, _marks(view)
    issued = _all_issued(view, readers)
    placed = np.flatnonzero(issued.position != NEVER)
    placed = placed[ordered(issued.invoke_seq[placed])[0]]
    before = np.searchsorted(issued.invoke_seq[placed], d.seq[marks])
    top = np.maximum(np.append(-1, np.maximum.accumulate(issued.position[placed]))[before], _received(view)[marks])
    is_known = d.seq[marks] > issued.complete_seq[placed].min(initial=NEVER)
    is_known &= ~_may_be_more(view, issued, placed, d.seq[marks])
    broken = np.flatnonzero(is_known & (d.position[marks] > top + step))
    return Ruling(
        watermark=marks[broken],
        row=np.full(len(broken), -1, np.int64),
        write=_highest(issued, placed, before[broken], len(view.writes.op)),
        witnesses=int(is_known.sum()),
    )


def _marks(view: StreamView) -> Int64s:
    return np.flatnonzero((view.deliveries.kind == WATERMARK) & ~view.is_regress)


def _all_issued(view: StreamView, readers: Issued) -> Issued:
    """The operations of all writes, a row for each write, and behind them those that wrote nothing."""
    w = view.writes
    return Issued(
        invoke_seq=np.append(w.invoke_seq, readers.invoke_seq),
        complete_seq=np.append(np.where(w.outcome == INFO, NEVER, w.complete_seq), readers.complete_seq),
        position=np.append(w.position, readers.position),
    )


def _received(view: StreamView) -> Int64s:
    """For each row of the log the highest position of a row, or of a start, up to it; -1 if there was none."""
    d = view.deliveries
    is_told = is_kind(d.kind, (ROW, BACKFILL, OPEN)) & (d.position != NEVER)
    return max_so_far(np.zeros(len(d.kind), np.int64), np.where(is_told, d.position, -1))


def _may_be_more(view: StreamView, issued: Issued, placed: Int64s, seq: Int64s) -> Bools:
    """At each of those places: may an operation of unknown position have one above all that are known?"""
    unplaced = np.flatnonzero(issued.position == NEVER)
    begun = np.sort(issued.invoke_seq[unplaced])
    bounded = np.zeros(0, np.int64)
    if view.contract.realtime != "none":
        starts = issued.invoke_seq[placed]
        bounded = np.sort(np.append(starts, NEVER)[np.searchsorted(starts, issued.complete_seq[unplaced], "right")])
    result: Bools = np.searchsorted(begun, seq) > np.searchsorted(bounded, seq)
    return result


def _highest(issued: Issued, placed: Int64s, before: Int64s, writes: int) -> Int64s:
    """Of the first `before` (m,) of the placed ones the highest, as a row of the source; -1 if that wrote nothing."""
    height = issued.position[placed]
    reached = np.maximum.accumulate(height)
    last = np.maximum.accumulate(np.where(height == reached, np.arange(len(placed)), 0))
    chosen = placed[last[before - 1]]
    return np.where(chosen < writes, chosen, -1)
