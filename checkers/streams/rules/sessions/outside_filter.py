"""Requests of a session, and partitions of its keys: S01 outside-filter, S26 moved-key.

Both look at the stream alone, because a session's `open` markers declare its request: everything, a partition, or a
key, each from a position on, or from wherever it begins.
"""

from dataclasses import dataclass

import numpy as np

from checkers.columns.index import GroupIndex, Places, codes, first_rows, is_kind
from checkers.columns.parts import constant
from checkers.columns.runs import distinct
from checkers.streams.coverage import ENDS
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER, OPEN, ROW, Bools, Deliveries, Int64s, SourceWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The keys and positions that exist, in a log and at its source."""

    key_count: int  # 0 if no session requests a part
    is_known: Bools  # (opens,) True if the key that each `open` of the log names exists
    lowest: int  # the lowest position; NEVER if there is none

    @classmethod
    def of(cls, deliveries: Deliveries, writes: SourceWrites) -> "Extent":
        """The extent of a log beside its source. O(n log n); O(n) if every session requests everything."""
        d, is_row = deliveries, deliveries.kind == ROW
        opens = np.flatnonzero(d.kind == OPEN)
        opened, is_narrow = d.key[opens], (d.key[opens] != NEVER) | (d.span[opens] >= 0)
        keys = distinct(np.append(d.key[is_row], writes.key)) if is_narrow.any() else opened[:0]
        lowest = min(int(d.position.min(initial=NEVER, where=is_row)), int(writes.position.min(initial=NEVER)))
        return cls(key_count=len(keys), is_known=Places(keys).of(opened) >= 0, lowest=lowest)


def outside_events(view: StreamView, extent: Extent | None = None) -> Ruling:
    """S01: rows that their session never requested, by partition and key, or at or below its start.

    The start is read by `resume`; a marker that opens a session anew cancels nothing that it had requested. What the
    subscriber had received before is a repetition, and left to S03. A session that opened by partition says nothing
    about rows without one. For a view of some keys, `extent` is that of all. A witness is a row of a session that does
    not cover everything: it never requested some key of the source or the log, or there is a position below its start;
    or a row that came before it was requested. O(n log n).
    """
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom)
    opens = _Opens(view, rows)
    is_unasked = opens.any_before(rows) & ~opens.has_asked(rows)
    covered = view.coverage.at(view.session[rows], d.key[rows], d.span[rows], rows)
    marker = np.where(covered.since == NEVER, 0, covered.since)
    is_declared = (covered.since != NEVER) & (d.kind[marker] == OPEN) & ~opens.has_asked(marker)
    is_below = is_declared & ~covered.reaches(d.position[rows])
    if is_below.any():
        is_first = np.zeros(len(d.kind), np.bool_)
        is_first[view.firsts(d.subscriber)] = True
        is_below &= is_first[rows]
    is_broken = is_unasked | is_below
    extent = extent or Extent.of(d, view.writes)
    broken = np.flatnonzero(is_broken)
    return Ruling(
        watermark=rows[broken],
        row=np.where(is_unasked[broken], -1, marker[broken]),
        write=np.full(len(broken), -1, np.int64),
        witnesses=int(np.count_nonzero(is_broken | _has_outside(view, extent, rows, covered.start, is_declared))),
    )


def moved_keys(view: StreamView) -> Ruling:
    """S26: rows of a key on another partition than the one before in its session, without a declared move.

    A move is declared, between the two rows, by a marker of either partition, or of the whole session, that opens or
    ends it. Rows without a partition are left out. A witness is a row compared with the one before it, in a session
    with several partitions.
    """
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.span >= 0))
    by_key = codes(view.session[rows], d.key[rows])
    earlier = GroupIndex(by_key, rows, rows).last_before(by_key, rows)
    is_compared = (earlier >= 0) & _has_several(view.session[rows], d.span[rows])
    moved = np.flatnonzero(is_compared & (d.span[earlier] != d.span[rows]))
    row, before = rows[moved], earlier[moved]
    marks = np.flatnonzero(is_kind(d.kind, (OPEN, *ENDS)) & (d.key == NEVER))
    spans = int(d.span.max(initial=-1)) + 2
    index = GroupIndex(view.session[marks] * spans + d.span[marks] + 1, marks, marks)
    session = view.session[row] * spans
    declared = np.maximum.reduce(
        [index.last_before(session + span + 1, row) for span in (np.full(len(row), -1), d.span[row], d.span[before])]
    )
    is_silent = declared < before
    none = np.full(int(is_silent.sum()), -1, np.int64)
    return Ruling(watermark=row[is_silent], row=before[is_silent], write=none, witnesses=int(is_compared.sum()))


class _Opens:
    """The first markers with which the sessions of rows requested something. Requests are never cancelled."""

    def __init__(self, view: StreamView, rows: Int64s) -> None:
        d = view.deliveries
        marks = np.flatnonzero(d.kind == OPEN)
        has_key, has_span = d.key[marks] != NEVER, d.span[marks] >= 0
        self._is_spanless = d.span[rows] < 0
        self._all = _first(view, rows, marks)
        self._whole = _first(view, rows, marks[~has_key & ~has_span])
        self._spans = _first(view, rows, marks[~has_key & has_span])
        self._of_span = _first(view, rows, marks[~has_key & has_span], d.span)
        self._of_key = _first(view, rows, marks[has_key], d.key)

    def any_before(self, time: Int64s) -> Bools:
        """True for rows whose session had a marker before that time."""
        result: Bools = self._all < time
        return result

    def has_asked(self, time: Int64s) -> Bools:
        """True for rows whose session had requested everything, or the row's partition or key, before that time."""
        result: Bools = (self._whole < time) | (self._of_key < time)
        result |= self._of_span < time
        result |= self._is_spanless & (self._spans < time)
        return result


def _first(view: StreamView, rows: Int64s, marks: Int64s, *names: Int64s) -> Int64s:
    """For each row the first of some markers of its session that has the same names; NEVER without one."""
    if len(marks) == 0:
        return constant(NEVER, len(rows))
    group, of_mark = view.session[rows], view.session[marks]
    if names:
        both = np.append(rows, marks)
        code = codes(view.session[both], *(column[both] for column in names))
        group, of_mark = code[: len(rows)], code[len(rows) :]
    first = np.full(int(max(group.max(initial=-1), of_mark.max())) + 1, NEVER, np.int64)
    first[of_mark[::-1]] = marks[::-1]  # The last write remains.
    return first[group]


def _has_outside(view: StreamView, extent: Extent, rows: Int64s, start: Int64s, is_declared: Bools) -> Bools:
    """True for rows of sessions that do not cover everything."""
    d = view.deliveries
    opens = np.flatnonzero(d.kind == OPEN)
    is_whole = (d.key[opens] == NEVER) & (d.span[opens] < 0)
    sessions = int(view.session.max(initial=-1)) + 1
    opened = np.bincount(view.session[opens], minlength=sessions)
    unbound = np.bincount(view.session[opens[is_whole]], minlength=sessions)
    by_span = np.bincount(view.session[opens[(d.span[opens] >= 0)]], minlength=sessions)
    of_known = opens[extent.is_known]
    first = first_rows(view.session[of_known], d.key[of_known])
    of_key = np.bincount(view.session[of_known[first]], minlength=sessions)
    is_bound = (opened > 0) & (unbound == 0) & (np.where(by_span > 0, 0, of_key) < extent.key_count)
    result: Bools = is_bound[view.session[rows]] | (is_declared & (extent.lowest <= start))
    return result


def _has_several(group: Int64s, span: Int64s) -> Bools:
    """True for rows whose group has rows of several spans."""
    if len(group) == 0:
        return np.zeros(0, np.bool_)
    first = first_rows(group, span)
    result: Bools = np.bincount(group[first], minlength=int(group.max()) + 1)[group] > 1
    return result
