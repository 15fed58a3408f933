"""Coverage of keys by sessions: the keys that each session covers, since when, and from which position on.

Markers declare it. `open` with neither span nor key covers everything, with a span that partition, with a key that key
alone; its position is where the session starts. `gap` ends the coverage of what it names until the key's next row, or
backfill row; a row that the session has shown before does not count, because a repetition shows nothing about lost
events. `close`, `error` and `end` end it for good. A session without `open`, or whose `open` has no position, starts
for each key with the key's first row: nothing was promised for earlier events of the key.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct

from checkers.columns.blocks import pieces
from checkers.columns.index import GroupIndex, Places, codes, count_so_far, is_kind, max_so_far, segments
from checkers.columns.runs import distinct
from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, NEVER, OPEN, ROW, Bools, Deliveries, Int64s
from harness.core.promises import StreamContract

MARKERS = (OPEN, GAP, CLOSE, ERROR, END)
ENDS = (CLOSE, ERROR, END)


class Covered(Struct, frozen=True, kw_only=True):
    """Coverage of keys at some time, arrays (m,): since which row (NEVER: not covered), and from which position on."""

    since: Int64s
    start: Int64s
    is_inclusive: Bools  # True if `start` itself is covered.

    def reaches(self, position: Int64s) -> Bools:
        """True if the key is covered, and `position` lies above the session's start (or at it, if that is covered)."""
        result: Bools = (position > self.start) | (self.is_inclusive & (position == self.start))
        result &= self.since != NEVER
        return result


class Coverage:
    """Coverage in all sessions of one log of n deliveries.

    `session` (n,) are dense ids. `begins` (n,) flags the events with which coverage of a key can begin.
    """

    def __init__(self, deliveries: Deliveries, session: Int64s, begins: Bools, contract: StreamContract) -> None:
        self._deliveries, self._session, self.begins = deliveries, session, begins
        self._resumes_at = contract.resume == "at"
        self._span_count = int(deliveries.span.max(initial=0)) + 1
        markers = np.flatnonzero(is_marker(deliveries))
        has_key, has_span = deliveries.key[markers] != NEVER, deliveries.span[markers] >= 0
        whole, of_span, of_key = markers[~has_key & ~has_span], markers[~has_key & has_span], markers[has_key]
        lost = of_span[deliveries.kind[of_span] != OPEN]
        self._whole_markers = _by_time(session[whole], whole)
        self._last_whole = np.full(int(session.max(initial=-1)) + 1, -1, np.int64)
        self._last_whole[session[whole]] = whole  # Rows ascend: the last one is kept.
        self._span_markers = _by_time(self._by_span(session[of_span], deliveries.span[of_span]), of_span)
        self._span_losses = _by_time(session[lost], lost)
        self._of_key = of_key

    def at(self, session: Int64s, key: Int64s, span: Int64s, time: Int64s) -> Covered:
        """The coverage just before `time` of `key`, which belongs to partition `span` (-1: none, or unknown).

        Times are row numbers of the log. All arrays are (m,).
        """
        marker = self._last_whole[session]
        early = np.flatnonzero(marker >= time)  # Usually a session has only the marker with which it began.
        marker[early] = self._whole_markers.last_before(session[early], time[early])
        if len(self._span_markers.rows):
            marker = np.maximum(marker, self._span_markers.last_before(self._by_span(session, span), time))
            # A key of unknown partition may be in any of them.
            marker = np.maximum(marker, np.where(span < 0, self._span_losses.last_before(session, time), -1))
        if len(self._of_key):
            marker = np.maximum(marker, self._key_markers.last_before(self._by_key(session, key), time))
        d = self._deliveries
        since, start = marker, d.position[marker]
        is_declared = (marker >= 0) & (d.kind[marker] == OPEN) & (start != NEVER)
        rest = np.flatnonzero(~is_declared)
        if len(rest):
            since[rest], start[rest] = self._since_rows(session[rest], key[rest], time[rest], marker[rest])
        return Covered(since=since, start=start, is_inclusive=is_declared & self._resumes_at)

    def _since_rows(self, session: Int64s, key: Int64s, time: Int64s, marker: Int64s) -> tuple[Int64s, Int64s]:
        """The first row after each key's last marker, which declares no start; and the position of that row."""
        row = self._rows.first(self._by_key(session, key), marker, above=True)
        row[row >= time] = -1
        is_over = np.isin(self._of(self._deliveries.kind.astype(np.int64), marker), ENDS)
        return np.where((row >= 0) & ~is_over, row, NEVER), self._of(self._deliveries.position, row)

    @cached_property
    def _keys(self) -> Int64s:
        key = self._deliveries.key
        return distinct(key[key != NEVER])

    @cached_property
    def _places(self) -> Places:
        return Places(self._keys)

    @cached_property
    def _key_markers(self) -> GroupIndex:
        return _by_time(self._by_key(self._session[self._of_key], self._deliveries.key[self._of_key]), self._of_key)

    @cached_property
    def _rows(self) -> GroupIndex:
        rows = np.flatnonzero(self.begins)
        return _by_time(self._by_key(self._session[rows], self._deliveries.key[rows]), rows)

    def _by_key(self, session: Int64s, key: Int64s) -> Int64s:
        """A number for each session and key; -1 for a key that no event names."""
        code = self._places.of(key)
        return np.where(code >= 0, session * len(self._keys) + code, -1)

    def _by_span(self, session: Int64s, span: Int64s) -> Int64s:
        is_known = (span >= 0) & (span < self._span_count)
        return np.where(is_known, session * self._span_count + span, -1)

    @staticmethod
    def _of(column: Int64s, row: Int64s) -> Int64s:
        """`column` at those rows; NEVER for row -1."""
        result = np.full(len(row), NEVER, np.int64)
        result[row >= 0] = column[row[row >= 0]]
        return result


def _by_time(group: Int64s, time: Int64s) -> GroupIndex:
    return GroupIndex(group, time, time)


def is_marker(deliveries: Deliveries) -> Bools:
    """True for markers: events, other than a key's first row, at which coverage may change."""
    result: Bools = is_kind(deliveries.kind, MARKERS)
    return result


def is_session_marker(deliveries: Deliveries) -> Bools:
    """True for the markers of a whole session."""
    result = is_marker(deliveries)
    result &= (deliveries.key == NEVER) & (deliveries.span < 0)
    return result


def lowest_starts(deliveries: Deliveries, session: Int64s, rows: Int64s) -> Int64s:
    """For each of `rows` the lowest position from which coverage can begin, among events before it.

    Only events since the last marker of the whole session count.
    """
    flag = is_session_marker(deliveries)
    low = np.full(int(session.max(initial=0)) + 2 + int(np.count_nonzero(flag)), NEVER, np.int64)
    for piece in pieces(len(session)):
        begins = np.flatnonzero(is_kind(deliveries.kind[piece], (OPEN, ROW, BACKFILL))) + piece.start
        np.minimum.at(low, segments(session, flag, begins), deliveries.position[begins])
    return low[segments(session, flag, rows)]


def logs_of(deliveries: Deliveries, session: Int64s, *, is_position_global: bool) -> Int64s:
    """Numbers for the logs of the source, shape (n,): rows with equal ones are certainly of one log.

    A log is a partition, or the whole stream if positions are global. One that ended, and is read again, is another log
    with the same name. Each subscriber learns of an end by its own marker. Execution:
    1. s1 receives the end of a log, then rows of a new log with its name. 2. s2 lags, and receives the old log's rows.
    3. s3 comes late: it never sees an end, and receives rows of the new log.
    So of a subscriber that received rows when another one had seen more ends, only rows of one session and between two
    ends are of one log.
    """
    d = deliveries
    home = np.zeros(len(d.kind), np.int64) if is_position_global else d.span + 1
    is_end = (d.kind == END) & (d.key == NEVER)
    if not is_end.any():
        return home
    is_of_all = is_end & (d.span < 0)
    reader = codes(home, d.subscriber)
    of_all, of_one = count_so_far(d.subscriber, is_of_all), count_so_far(reader, is_end & ~is_of_all)
    most = max_so_far(np.zeros_like(home), of_all) + max_so_far(home, of_one)
    is_behind = (d.kind == ROW) & (of_all + of_one < most)
    is_doubtful = max_so_far(reader, is_behind.astype(np.int64)) > 0
    return codes(home, np.where(is_doubtful, session + 1, 0), of_all + of_one)
