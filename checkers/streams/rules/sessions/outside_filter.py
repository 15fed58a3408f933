"""S01 outside-filter: a session receives only what it requested.

This is judged by the stream alone, because a session's `open` markers declare its request: everything, a partition, or
a key, each from a position on, or from wherever it begins.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.facts import fact
from checkers.columns.index import Places, first_places, first_rows, joint_codes
from checkers.columns.parts import constant
from checkers.columns.runs import distinct
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import arrived
from checkers.streams.rule import Need, OfKeys, Rule, per_key
from checkers.streams.view import Log, Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OPEN, ROW, Bools, Int64s


class Extent(Struct, frozen=True, kw_only=True):
    """The keys and positions that exist, in a log and at its source."""

    key_count: int  # 0 if no session requests a part
    is_known: Bools  # (opens,) True if the key that each `open` of the log names exists
    lowest: int  # the lowest position; NEVER if there is none


@fact
def extent(log: Log) -> Extent:
    """The keys and positions that exist in a log and its source.

    O(n log n); O(n) if every session requests everything.
    """
    d, is_row = log.deliveries, log.deliveries.kind == ROW
    opens = np.flatnonzero(d.kind == OPEN)
    opened, is_narrow = d.key[opens], (d.key[opens] != NEVER) | (d.span[opens] >= 0)
    keys = distinct(np.append(d.key[is_row], log.writes.key)) if is_narrow.any() else opened[:0]
    lowest = min(int(d.position.min(initial=NEVER, where=is_row)), int(log.writes.position.min(initial=NEVER)))
    return Extent(key_count=len(keys), is_known=Places(keys).of(opened) >= 0, lowest=lowest)


@per_key("row")
def outside_events(view: StreamView) -> Ruling:
    """S01: rows that their session never requested, by partition and key, or at or below its start.

    `resume` says whether the start itself is requested; a marker that opens a session anew cancels nothing that it had
    requested. Rows that the subscriber had received before are repetitions, and left to S03. A session that opened by
    partition says nothing about rows without one. A witness is a row of a session that does not cover everything: it
    never requested some key of the source or the log, or there is a position below its start; or a row that came before
    it was requested. O(n log n).
    """
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom)
    opens = _Opens(view, rows)
    is_unrequested = opens.any_before(rows) & ~opens.has_requested(rows)
    covered = view.coverage.at(view.session[rows], d.key[rows], d.span[rows], rows)
    marker = np.where(covered.since == NEVER, 0, covered.since)
    is_declared = (covered.since != NEVER) & (d.kind[marker] == OPEN) & ~opens.has_requested(marker)
    is_below = is_declared & ~covered.reaches(d.position[rows])
    if is_below.any():
        is_first = np.zeros(len(d.kind), np.bool_)
        is_first[view.firsts(d.subscriber)] = True
        is_below &= is_first[rows]
    is_broken = is_unrequested | is_below
    broken = np.flatnonzero(is_broken)
    return Ruling.of_events(
        rows[broken],
        np.where(is_unrequested[broken], -1, marker[broken]),
        witnesses=int(np.count_nonzero(is_broken | _has_outside(view, rows, covered.start, is_declared))),
    )


class _Opens:
    """For each of `rows` the first markers with which its session requested something. Requests are never cancelled."""

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

    def has_requested(self, time: Int64s) -> Bools:
        """True for rows whose session had requested everything, or the row's partition or key, before that time."""
        result: Bools = (self._whole < time) | (self._of_key < time)
        result |= self._of_span < time
        result |= self._is_spanless & (self._spans < time)
        return result


def _first(view: StreamView, rows: Int64s, marks: Int64s, *names: Int64s) -> Int64s:
    """For each row the first marker of its session that has the same values in `names`; NEVER if there is none."""
    if len(marks) == 0:
        return constant(NEVER, len(rows))
    group, of_mark = view.session[rows], view.session[marks]
    if names:
        columns = (view.session, *names)
        group, of_mark = joint_codes([column[rows] for column in columns], [column[marks] for column in columns])
    first = first_places(of_mark, int(max(group.max(initial=-1), of_mark.max())) + 1)
    return np.append(marks, NEVER)[first][group]


def _has_outside(view: StreamView, rows: Int64s, start: Int64s, is_declared: Bools) -> Bools:
    """True for rows of sessions that do not cover everything."""
    d, whole = view.deliveries, extent(view.log)
    opens = np.flatnonzero(d.kind == OPEN)
    is_whole = (d.key[opens] == NEVER) & (d.span[opens] < 0)
    sessions = int(view.session.max(initial=-1)) + 1
    opened = np.bincount(view.session[opens], minlength=sessions)
    unbound = np.bincount(view.session[opens[is_whole]], minlength=sessions)
    by_span = np.bincount(view.session[opens[d.span[opens] >= 0]], minlength=sessions)
    of_known = opens[whole.is_known]
    first = first_rows(view.session[of_known], d.key[of_known])
    of_key = np.bincount(view.session[of_known[first]], minlength=sessions)
    is_bound = (opened > 0) & (unbound == 0) & (np.where(by_span > 0, 0, of_key) < whole.key_count)
    result: Bools = is_bound[view.session[rows]] | (is_declared & (whole.lowest <= start))
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, start = example.watermark, example.event
    session = f"session {mark.session}"
    request = f"{session} never requested that"
    if start is not None:
        request = f"{session} had requested to begin at {name.forms.position(start.position)}"
    return f"{arrived(example, name)}, but {request}."


OUTSIDE_FILTER: Final = Rule(
    name="outside-filter",
    id="S01",
    rank=140,
    anomaly=Anomaly(
        meaning="An event that its session never requested: by key, by partition, or from before its start.",
        cause=Cause.SESSION,
    ),
    witness="a row of a session that does not cover everything",
    needs=frozenset({Need.OPENS}),
    scope=OfKeys(outside_events, _sentence),
)
