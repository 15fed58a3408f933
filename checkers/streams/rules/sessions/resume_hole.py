"""Writes that a session owes after its start: S13 resume-hole, and the holes of S25 hand-over-hole.

A session that was opened again at a position, and one whose rows began with a snapshot, both owe all later writes. A
write was left out if a watermark of the session closes it, or if a newer event of the key came and a key's events come
in order. Writes that the rules for watermarks report already are left to them.
"""

from dataclasses import dataclass

import numpy as np

from checkers.columns import runs
from checkers.columns.index import FirstTimes, GroupIndex, Places, codes, expand
from checkers.columns.runs import distinct
from checkers.streams.rules.watermarks.missing_event import ALL_CLOSED, Closings, first_of_each
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import BACKFILL, GAP, NEVER, OPEN, Bools, Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Holes:
    """S13, and the holes after snapshots. A ruling's row is the session's start."""

    resumes: Ruling
    backfills: Ruling


def holes(view: StreamView, missing: Ruling, closings: Closings | None = None) -> Holes:
    """S13 and a part of S25: expected writes after a session's start that it left out; `missing` are those of S09.

    A start is an `open` with a position, of a subscriber that had been open before; or the snapshot's row of the key.
    If a watermark binds several subscribers, what another one received is not owed again. Not promised if events come
    at most once. Each write is reported once per session. Witnesses: of S13, starts before and after which the source
    wrote one key, if it is known whether the later write was sent; of S25, snapshots of a key for which that is known.
    O(n log n), and the writes left out times the newer events of their key.
    """
    if view.contract.delivery == "at-most-once" or len(view.expected) == 0:
        return Holes(resumes=Ruling.nothing(), backfills=Ruling.nothing())
    own = _Own.of(view)
    by_mark, by_row = _by_watermarks(view, closings or Closings.of(view)), _by_order(view, missing, own)
    found = _Passed.joined([by_mark.chosen(_left_out(view, missing, by_mark, own)), by_row.left_out])
    first = first_of_each(codes(view.session[found.mark], found.candidate), found.mark)
    found = found.chosen(first)
    resumed = _is_resume(view, found.since)
    witnesses = np.append(by_mark.chosen(_has_earlier(view, by_mark)).since, by_row.witnesses)
    told = distinct(np.append(witnesses, found.since))
    resumes, backfills = (
        Ruling(
            watermark=part.mark,
            row=part.since,
            write=view.expected[part.candidate],
            witnesses=len(starts),
            told=starts,
        )
        for part, starts in (
            (found.chosen(resumed), told[_is_resume(view, told)]),
            (found.chosen(~resumed), told[~_is_resume(view, told)]),
        )
    )
    return Holes(resumes=resumes, backfills=backfills)


@dataclass(frozen=True, slots=True)
class _Passed:
    """Writes that were passed: the row of the log that shows it, and the row with which coverage had begun. (m,)"""

    mark: Int64s
    candidate: Int64s  # A place in `expected`.
    since: Int64s
    height: Int64s  # A newer version below this height can replace it.

    @classmethod
    def joined(cls, parts: list["_Passed"]) -> "_Passed":
        names = ("mark", "candidate", "since", "height")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def chosen(self, which: Int64s | Bools) -> "_Passed":
        return _Passed(self.mark[which], self.candidate[which], self.since[which], self.height[which])


@dataclass(frozen=True, slots=True)
class _Ordered:
    left_out: _Passed
    witnesses: Int64s  # Starts for which a newer event shows something.


def _is_resume(view: StreamView, since: Int64s) -> Bools:
    result: Bools = view.deliveries.kind[since] == OPEN
    return result


def _starts(view: StreamView) -> Bools:
    """(n,) True for events that are starts by this rule."""
    d = view.deliveries
    opens = np.flatnonzero(d.kind == OPEN)
    who, subscriber = runs.codes(d.subscriber[opens])
    first = np.empty(len(who), np.int64)
    first[subscriber[::-1]] = opens[::-1]
    result: Bools = d.kind == BACKFILL
    # The openings of its first session are no resumes.
    result[opens] = d.session[opens] != d.session[first][subscriber]
    return result


@dataclass(frozen=True, slots=True)
class _Own:
    """The group within which each row (n,) need not come again, and the first arrival of each write there."""

    group: Int64s
    times: FirstTimes

    @classmethod
    def of(cls, view: StreamView) -> "_Own":
        group = view.session if view.contract.wm_scope in ("session", "subscriber") else view.scope
        return cls(group, view.first_times(group))


def _by_watermarks(view: StreamView, closed: Closings) -> _Passed:
    """Writes that watermarks close, since such a start."""
    w, lanes = view.writes, view.lanes
    write, mark = view.expected[closed.candidate], lanes.rows[closed.place]
    since = view.coverage.at(lanes.session[closed.lane], w.key[write], w.span[write], mark).since
    judged = np.flatnonzero(_starts(view)[since])
    return _Passed(mark[judged], closed.candidate[judged], since[judged], lanes.height[closed.place[judged]])


def _by_order(view: StreamView, missing: Ruling, own: _Own) -> _Ordered:
    """Writes that newer events of the key passed, since such a start. A later gap may still name those left out."""
    d, contract = view.deliveries, view.contract
    none = np.zeros(0, np.int64)
    is_silent = contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session")
    if is_silent or contract.versions == "latest":
        return _Ordered(_Passed(none, none, none, none), none)
    rows = view.new_rows()
    covered = view.coverage.at(view.session[rows], d.key[rows], d.span[rows], rows)
    judged = (covered.since != NEVER) & (covered.start != NEVER)
    judged[judged] = _starts(view)[covered.since[judged]]
    rows, since = rows[judged], covered.since[judged]
    low = covered.start[judged] + ~covered.is_inclusive[judged]
    source = _Source(view)
    group = source.group(d.key[rows], d.span[rows])
    # Of the rows of a key after one start, the highest is enough.
    pair = codes(group, runs.codes(since)[1])
    one = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
    one[pair] = np.arange(len(rows))
    top = np.full(len(one), -1, np.int64)
    np.maximum.at(top, pair, d.position[rows])
    begin, end = source.index.place(group[one], low[one]), source.index.place(group[one], top)
    is_told = begin < end
    is_told &= (d.kind[since[one]] == BACKFILL) | (source.index.place(group[one], np.full(len(one), -1)) < begin)
    told = since[one[is_told]]

    line = codes(view.session[rows[one]], group[one])
    first = np.full(int(line.max(initial=-1)) + 1, NEVER, np.int64)
    last, shown = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    np.minimum.at(first, line, begin)
    np.maximum.at(last, line, end)
    shown[line] = one
    owner, place = expand(first, last)
    candidate = source.index.rows[place]
    few = _Passed(rows[shown[owner]], candidate, since[shown[owner]], np.full(len(owner), ALL_CLOSED))
    kept = _left_out(view, missing, few, own)
    if len(kept) == 0:
        return _Ordered(few.chosen(kept), told)
    owner, candidate = owner[kept], candidate[kept]

    by_height = GroupIndex(line[pair], d.position[rows])
    position = view.writes.position[view.expected[candidate]]
    ends = by_height.place(owner, np.full(len(owner), NEVER))
    again, behind = expand(by_height.place(owner, position, above=True), ends)
    newer = by_height.rows[behind]
    shows = (low[newer] <= position[again]) & ~_has_later_gap(view)[rows[newer]]
    again, newer = again[shows], newer[shows]
    height = np.full(len(again), ALL_CLOSED)
    return _Ordered(_Passed(rows[newer], candidate[again], since[newer], height), told)


class _Source:
    """The expected writes by key; and by partition, if partitions are separate."""

    def __init__(self, view: StreamView) -> None:
        w, e = view.writes, view.expected
        contract = view.contract
        self._is_apart = contract.order_key == "partition" or contract.wm_scope == "partition"
        self._is_apart |= not contract.is_position_global
        known = codes(w.key[e], w.span[e]) if self._is_apart else codes(w.key[e])
        self._names = np.full((2, int(known.max(initial=-1)) + 1), NEVER, np.int64)
        self._names[0, known] = w.key[e]
        if self._is_apart:
            self._names[1, known] = w.span[e]
        self.index = GroupIndex(known, w.position[e])

    def group(self, key: Int64s, span: Int64s) -> Int64s:
        """The group in `index` of each key's writes; -1 for a key without any."""
        keys, spans = self._names
        if not self._is_apart:
            return Places(keys).of(key)
        what = codes(np.append(keys, key), np.append(spans, span))
        number = np.full(int(what.max(initial=-1)) + 1, -1, np.int64)
        number[what[: len(keys)]] = np.arange(len(keys))
        return number[what[len(keys) :]]


def _left_out(view: StreamView, missing: Ruling, passed: _Passed, own: _Own) -> Int64s:
    """The writes that never came, were not replaced, and are not reported as missing already."""
    blamed = view.of_write(view.scope[missing.watermark], np.searchsorted(view.expected, missing.write))
    absent = own.times.at(view.of_write(own.group[passed.mark], passed.candidate)) == NEVER
    absent &= ~np.isin(view.of_write(view.scope[passed.mark], passed.candidate), blamed)
    left = np.flatnonzero(absent)
    left = left[~_is_in_snapshot(view, own.group, passed.chosen(left))]
    is_replaced = superseded(
        view,
        Versions.of_expected(view, passed.candidate[left]),
        group=own.group,
        watermark=passed.mark[left],
        height=passed.height[left],
        before=np.full(len(left), NEVER),
    )
    return left[~is_replaced]


def _is_in_snapshot(view: StreamView, own: Int64s, passed: _Passed) -> Bools:
    """True if a snapshot of the key came that was taken at or after the write, and so shows its effect."""
    d, write = view.deliveries, view.expected[passed.candidate]
    rows = np.flatnonzero((d.kind == BACKFILL) & (d.position != NEVER))
    line = codes(np.append(own[rows], own[passed.mark]), np.append(d.key[rows], view.writes.key[write]))
    index = GroupIndex(line[: len(rows)], d.position[rows])
    result: Bools = index.first(line[len(rows) :], view.writes.position[write]) >= 0
    return result


def _has_earlier(view: StreamView, passed: _Passed) -> Bools:
    """True if the source wrote the key before the start, or the start is no resume."""
    d, w = view.deliveries, view.writes
    key, lowest = runs.codes(w.key[view.expected])
    least = np.full(len(key), NEVER, np.int64)
    np.minimum.at(least, lowest, w.position[view.expected])
    start = d.position[passed.since] + (view.contract.resume == "after")
    result: Bools = (d.kind[passed.since] == BACKFILL) | (least[lowest[passed.candidate]] < start)
    return result


def _has_later_gap(view: StreamView) -> Bools:
    """(n,) True for rows that a gap of their session follows."""
    gaps = np.flatnonzero(view.deliveries.kind == GAP)
    last = np.full(int(view.session.max(initial=-1)) + 1, -1, np.int64)
    last[view.session[gaps]] = gaps
    result: Bools = np.arange(len(view.session)) < last[view.session]
    return result
