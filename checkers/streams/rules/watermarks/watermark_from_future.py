"""S08 watermark-from-future: a watermark is not above every position that can have existed when it came."""

from collections.abc import Callable
from typing import Final

import numpy as np

from checkers.columns.blocks import pieces
from checkers.columns.index import is_kind
from checkers.columns.runs import is_ascending, ordered
from checkers.columns.table import concat, take
from checkers.history.around import Issued, issues_by_writes
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import announced
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, INFO, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s

COUNTED = ("offset", "revision", "epoch")  # Positions that increase by one.


def watermarks_from_future(view: StreamView) -> Ruling:
    """S08: watermarks above every position that can have existed when they were received.

    If positions follow a clock that is comparable to the harness's (`clock_error_ns`), a watermark may be ahead of it
    by the error, and no more. If they follow the writes, and watermarks rest without any (`wm_idle`), a watermark may
    not pass all positions of operations invoked before it was received; an exclusive one may be just above the last, if
    positions count by one. Positions with which a session began, and those already delivered, existed as well.

    Before the first operation with a position has ended the start of the source is unknown. Then a watermark is only
    compared with the operation whose position it has, which must not be invoked later, if positions are unique. Nothing
    is judged while an operation without a position may have taken any: until an operation with one has
    begun after its end, if positions obey real time. A witness is a watermark that was compared. O(n log n).
    """
    if view.contract.follows_clock:
        return _ahead_of_clock(view)
    is_exclusive = view.contract.closed == "<"
    if not issues_by_writes(view.contract) or (is_exclusive and view.contract.position not in COUNTED):
        return Ruling.nothing()
    return _ahead_of_writes(view, int(is_exclusive))


def _ahead_of_clock(view: StreamView) -> Ruling:
    error_ns = view.contract.clock_error_ns
    if error_ns is None:
        return Ruling.nothing()
    d, marks = view.deliveries, _marks(view)
    return Ruling.of_events(marks[d.position[marks] > d.ns[marks] + error_ns], witnesses=len(marks))


def _ahead_of_writes(view: StreamView, step: int) -> Ruling:
    d, marks = view.deliveries, _marks(view)
    issued, order = _by_start(_all_issued(view))
    before = np.searchsorted(issued.invoke_seq, d.seq[marks])

    def received(piece: slice) -> Int64s:
        is_known = is_kind(d.kind[piece], (ROW, BACKFILL, OPEN)) & (d.position[piece] != NEVER)
        return np.where(is_known, d.position[piece], -1)

    top = _highest_of_first(lambda piece: _heights(issued.position[piece]), before)
    top = np.maximum(top, _highest_of_first(received, marks + 1))
    first_end = issued.complete_seq.min(initial=NEVER, where=issued.position != NEVER)
    is_known = (d.seq[marks] > first_end) & ~_may_be_more(view, issued, d.seq[marks])
    if not step and view.contract.is_position_unique:
        early = np.flatnonzero(d.seq[marks] <= first_end)
        is_known[early] = _invoked_later(issued, d.position[marks[early]], d.seq[marks[early]])
    broken = np.flatnonzero(is_known & (d.position[marks] > top + step))
    highest = _highest(issued, order, before[broken], len(view.writes.op))
    return Ruling.of_writes(marks[broken], highest, witnesses=int(is_known.sum()))


def _invoked_later(issued: Issued, position: Int64s, seq: Int64s) -> Bools:
    """True for each (m,) position that some operation has, if all that have it were invoked after `seq` (m,)."""
    places = np.flatnonzero(np.isin(issued.position, position))
    positions, of = np.unique(issued.position[places], return_inverse=True)
    first = np.full(len(positions) + 1, -1, np.int64)
    first[:-1] = NEVER
    np.minimum.at(first, of, issued.invoke_seq[places])
    at = np.searchsorted(positions, position)
    result: Bools = (np.append(positions, NEVER)[at] == position) & (first[at] > seq)
    return result


def _marks(view: StreamView) -> Int64s:
    return np.flatnonzero((view.deliveries.kind == WATERMARK) & ~view.is_regress)


def _all_issued(view: StreamView) -> Issued:
    """The operations of all writes, a row for each write, followed by those that wrote nothing."""
    w, readers = view.writes, view.log.around.readers
    ended = np.where(w.outcome == INFO, NEVER, w.complete_seq) if np.any(w.outcome == INFO) else w.complete_seq
    return concat([Issued(invoke_seq=w.invoke_seq, complete_seq=ended, position=w.position), readers])


def _by_start(issued: Issued) -> tuple[Issued, Int64s | None]:
    """The operations by invocation, and their rows; None if they are already in order, which takes no memory."""
    if is_ascending(issued.invoke_seq):
        return issued, None
    order, _ = ordered(issued.invoke_seq)
    return take(issued, order), order


def _heights(position: Int64s) -> Int64s:
    """Positions, with -1 for missing ones."""
    return np.where(position == NEVER, -1, position)


def _highest_of_first(heights: Callable[[slice], Int64s], counts: Int64s) -> Int64s:
    """The highest of the first `count` heights for each count in `counts`, which ascend; -1 for a count of 0."""
    result = np.full(len(counts), -1, np.int64)
    reached = -1
    for piece in pieces(int(counts.max(initial=0))):
        height = heights(piece)
        height[0] = max(reached, int(height[0]))
        np.maximum.accumulate(height, out=height)
        wanted = slice(*np.searchsorted(counts, (piece.start, piece.stop), "right"))
        result[wanted] = height[counts[wanted] - piece.start - 1]
        reached = int(height[-1])
    return result


def _may_be_more(view: StreamView, issued: Issued, seq: Int64s) -> Bools:
    """True for each `seq` at which an operation of unknown position may have one above all known positions."""
    is_placed = issued.position != NEVER
    unplaced = np.flatnonzero(~is_placed)
    if not len(unplaced):
        return np.zeros(len(seq), np.bool_)
    begun = issued.invoke_seq[unplaced]
    bounded = np.zeros(0, np.int64)
    if view.contract.realtime != "none":
        starts = issued.invoke_seq[is_placed]
        bounded = np.sort(np.append(starts, NEVER)[np.searchsorted(starts, issued.complete_seq[unplaced], "right")])
    result: Bools = np.searchsorted(begun, seq) > np.searchsorted(bounded, seq)
    return result


def _highest(issued: Issued, order: Int64s | None, before: Int64s, writes: int) -> Int64s:
    """For each `before` (m,) the highest of that many first operations, as a row of the source; -1 for none."""
    if not before.any():
        return np.full(len(before), -1)
    height = _heights(issued.position[: before.max()])
    reached = np.maximum.accumulate(height)
    chosen = np.maximum.accumulate(np.where(height == reached, np.arange(len(height)), 0))[before - 1]
    row = chosen if order is None else order[chosen]
    return np.where((before > 0) & (row < writes), row, -1)


def _sentence(example: Example, name: Names) -> str:
    highest = example.missed
    if highest is None:
        return f"{announced(example, name)}, beyond every commit of that time."
    reached = f"{name.forms.position(highest.position)}, of operation {highest.op}, was the highest that had begun"
    return f"{announced(example, name)}, when {reached}."


WATERMARK_FROM_FUTURE: Final = Rule(
    name="watermark-from-future",
    id="S08",
    rank=190,
    anomaly=Anomaly(meaning="A watermark passed positions that the source had not yet reached.", cause=Cause.WATERMARK),
    witness="a watermark compared with the operations begun so far",
    needs=frozenset({Need.SOURCE}),
    scope=OfLog(watermarks_from_future, _sentence),
)
