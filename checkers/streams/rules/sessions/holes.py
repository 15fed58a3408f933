"""Writes that a session must deliver after its start: an input of S13 resume-hole, S25 hand-over-hole and S09.

A session that was opened at a position, and one whose rows began with a snapshot, must both deliver all later writes.
A write was left out if a watermark of the session closes it, or if a newer event of the key came and a key's events
come in order. Writes that the rules for watermarks report already are left to them.
"""

import numpy as np
from msgspec import Struct

from checkers.columns import runs
from checkers.columns.facts import fact
from checkers.columns.index import (
    FirstTimes,
    GroupIndex,
    codes,
    earliest_of_each,
    expand,
    first_places,
    is_kind,
    joint_codes,
)
from checkers.columns.runs import distinct
from checkers.columns.table import concat, take
from checkers.history.names import Names
from checkers.streams.closings import ALL_CLOSED, closings, missing_events
from checkers.streams.examples import Example
from checkers.streams.findings import lost, place, shown, written
from checkers.streams.rule import per_key
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import BACKFILL, GAP, NEVER, OPEN, WATERMARK, Bools, Int64s


class Holes(Struct, frozen=True, kw_only=True):
    """S13, and the holes after snapshots. The row of a violation is the session's start."""

    resumes: Ruling  # After an `open` of a subscriber that had been open before.
    openings: Ruling  # After a subscriber's first `open`.
    backfills: Ruling  # After a snapshot.


@fact
def holes(view: StreamView) -> Holes:
    """S13 and a part of S25: expected writes after a session's start that it left out.

    A start is an `open` with a position, or the snapshot's row of the key. A key whose snapshot came after the first
    `open` of its subscriber began with that snapshot. After a first `open` only newer events count: what watermarks
    close is left to S09. If a watermark binds several subscribers, a write that another one received is not required
    again. Nothing is judged if events come at most once. Each write is reported once per session. Witnesses: of S13,
    starts before and after which the source wrote one key, if it is known whether the later write was sent; of S25,
    snapshots of a key for which that is known. O(n log n), and the writes left out times the newer events of their key.
    """
    if view.contract.delivery == "at-most-once" or len(view.expected) == 0:
        return Holes(resumes=Ruling.nothing(), openings=Ruling.nothing(), backfills=Ruling.nothing())
    own = _Own.of(view)
    by_mark, by_row = _by_watermarks(view), _by_order(view, own)
    found = concat([take(by_mark, _left_out(view, by_mark, own)), by_row.left_out])
    found = take(found, earliest_of_each(codes(view.session[found.mark], found.candidate), found.mark))
    starts = distinct(np.concatenate((by_mark.since[_has_earlier(view, by_mark)], by_row.witnesses, found.since)))
    is_open, is_first = view.deliveries.kind == OPEN, _are_first_opens(view)
    has_snapshot = is_first[found.since] & _has_snapshot(view, found)
    after_open = is_open[found.since] & ~has_snapshot

    def ruling(is_found: Bools, is_start: Bools) -> Ruling:
        return _ruling(view, take(found, is_found), starts[is_start])

    return Holes(
        resumes=ruling(after_open & ~is_first[found.since], is_open[starts] & ~is_first[starts]),
        openings=ruling(after_open & is_first[found.since], is_first[starts]),
        backfills=ruling(~after_open, ~is_open[starts]),
    )


@per_key("write")
def resume_holes(view: StreamView) -> Ruling:
    """The holes after the start of sessions that resume."""
    return holes(view).resumes


@per_key("write")
def opening_holes(view: StreamView) -> Ruling:
    """The holes after the start of a subscriber's first session."""
    return holes(view).openings


@per_key("write")
def snapshot_holes(view: StreamView) -> Ruling:
    """The holes after snapshots."""
    return holes(view).backfills


class _Passed(Struct, frozen=True):
    """Writes that the stream has passed: the row that shows this, and the row with which coverage began; (m,)."""

    mark: Int64s
    candidate: Int64s  # A place in `expected`.
    since: Int64s
    height: Int64s  # Only a newer version below this height can replace the write.


class _Ordered(Struct, frozen=True):
    left_out: _Passed
    witnesses: Int64s  # Starts that a newer event tests.


def _ruling(view: StreamView, found: _Passed, starts: Int64s) -> Ruling:
    return Ruling(
        watermark=found.mark,
        row=found.since,
        write=view.expected[found.candidate],
        witnesses=len(starts),
        witness_rows=starts,
    )


def _are_first_opens(view: StreamView) -> Bools:
    """True for the openings of a subscriber's first session, shape (n,)."""
    d = view.deliveries
    opens = np.flatnonzero(d.kind == OPEN)
    who, subscriber = runs.codes(d.subscriber[opens])
    first = opens[first_places(subscriber, len(who))]
    result = np.zeros(len(d.kind), np.bool_)
    result[opens] = d.session[opens] == d.session[first][subscriber]
    return result


def _has_snapshot(view: StreamView, passed: "_Passed") -> Bools:
    """True for writes whose key came in a snapshot of the session, below the write, before something passed it."""
    d, key = view.deliveries, view.writes.key[view.expected[passed.candidate]]
    rows = np.flatnonzero(d.kind == BACKFILL)
    line, wanted = joint_codes([view.session[rows], d.key[rows]], [view.session[passed.mark], key])
    last = GroupIndex(line, rows, rows).last_before(wanted, passed.mark)
    position = view.writes.position[view.expected[passed.candidate]]
    result: Bools = (last > passed.since) & (np.append(d.position, NEVER)[last] < position)
    return result


class _Own(Struct, frozen=True):
    """For each row (n,) the group that needs a write only once, and the first arrival of each write in its group."""

    group: Int64s
    times: FirstTimes

    @classmethod
    def of(cls, view: StreamView) -> "_Own":
        group = view.session if view.contract.wm_scope in ("session", "subscriber") else view.scope
        return cls(group, view.first_times(group))


def _by_watermarks(view: StreamView) -> _Passed:
    """Writes that watermarks close, in coverage that began with such a start."""
    w, lanes, closed = view.writes, view.lanes, closings(view)
    write, mark = view.expected[closed.candidate], lanes.rows[closed.place]
    since = view.coverage.at(lanes.session[closed.lane], w.key[write], w.span[write], mark).since
    is_start = is_kind(view.deliveries.kind[since], (OPEN, BACKFILL))
    judged = np.flatnonzero(is_start & ~_are_first_opens(view)[since])
    return _Passed(mark[judged], closed.candidate[judged], since[judged], lanes.height[closed.place[judged]])


def _by_order(view: StreamView, own: _Own) -> _Ordered:
    """Writes that newer events of the key passed after such a start, and that no later gap of the session can name."""
    d, contract = view.deliveries, view.contract
    none = np.zeros(0, np.int64)
    is_silent = contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session")
    if is_silent or contract.versions == "latest":
        return _Ordered(_Passed(none, none, none, none), none)
    rows = view.new_rows()
    covered = view.coverage.at(view.session[rows], d.key[rows], d.span[rows], rows)
    judged = (covered.since != NEVER) & (covered.start != NEVER)
    judged[judged] = is_kind(d.kind[covered.since[judged]], (OPEN, BACKFILL))
    rows, since = rows[judged], covered.since[judged]
    low = covered.start[judged] + ~covered.is_inclusive[judged]
    is_apart = contract.order_key == "partition" or contract.wm_scope == "partition" or not contract.is_position_global
    index, group = expected_by_key(view, d.key[rows], d.span[rows] if is_apart else None)
    # Of a key's rows after one start, the highest is enough.
    pair = codes(group, runs.codes(since)[1])
    one = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
    one[pair] = np.arange(len(rows))
    top = np.full(len(one), -1, np.int64)
    np.maximum.at(top, pair, d.position[rows])
    begin, end = index.place(group[one], low[one]), index.place(group[one], top)
    is_witness = begin < end
    is_witness &= (d.kind[since[one]] == BACKFILL) | (index.place(group[one], np.full(len(one), -1)) < begin)
    witnesses = since[one[is_witness]]

    line = codes(view.session[rows[one]], group[one])
    first = np.full(int(line.max(initial=-1)) + 1, NEVER, np.int64)
    last, shown = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    np.minimum.at(first, line, begin)
    np.maximum.at(last, line, end)
    shown[line] = one
    owner, place = expand(first, last)
    candidate = index.rows[place]
    few = _Passed(rows[shown[owner]], candidate, since[shown[owner]], np.full(len(owner), ALL_CLOSED))
    kept = _left_out(view, few, own)
    if len(kept) == 0:
        return _Ordered(take(few, kept), witnesses)
    owner, candidate = owner[kept], candidate[kept]

    by_height = GroupIndex(line[pair], d.position[rows])
    position = view.writes.position[view.expected[candidate]]
    ends = by_height.place(owner, np.full(len(owner), NEVER))
    again, place = expand(by_height.place(owner, position, above=True), ends)
    newer = by_height.rows[place]
    shows = (low[newer] <= position[again]) & ~_has_later_gap(view)[rows[newer]]
    again, newer = again[shows], newer[shows]
    height = np.full(len(again), ALL_CLOSED)
    return _Ordered(_Passed(rows[newer], candidate[again], since[newer], height), witnesses)


def expected_by_key(view: StreamView, key: Int64s, span: Int64s | None = None) -> tuple[GroupIndex, Int64s]:
    """The expected writes by key, and by partition if `span` is given, in order of position; and each key's group."""
    w, e = view.writes, view.expected
    known, wanted = ([w.key[e]], [key]) if span is None else ([w.key[e], w.span[e]], [key, span])
    of_write, group = joint_codes(known, wanted)
    return GroupIndex(of_write, w.position[e]), group


def _left_out(view: StreamView, passed: _Passed, own: _Own) -> Int64s:
    """The writes, as rows of `passed`, that never came, were not replaced, and are not reported as missing already."""
    missing = missing_events(view)
    blamed = view.of_write(view.scope[missing.watermark], np.searchsorted(view.expected, missing.write))
    absent = own.times.at(view.of_write(own.group[passed.mark], passed.candidate)) == NEVER
    absent &= ~np.isin(view.of_write(view.scope[passed.mark], passed.candidate), blamed)
    left = np.flatnonzero(absent)
    left = left[~_is_in_snapshot(view, own.group, take(passed, left))]
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
    """True for writes whose key came in a snapshot at or after their position, which shows their effect."""
    d, write = view.deliveries, view.expected[passed.candidate]
    rows = np.flatnonzero((d.kind == BACKFILL) & (d.position != NEVER))
    line, wanted = joint_codes([own[rows], d.key[rows]], [own[passed.mark], view.writes.key[write]])
    result: Bools = GroupIndex(line, d.position[rows]).first(wanted, view.writes.position[write]) >= 0
    return result


def _has_earlier(view: StreamView, passed: _Passed) -> Bools:
    """True for writes whose key the source had also written before the start, or whose start is a snapshot."""
    d, w = view.deliveries, view.writes
    key, lowest = runs.codes(w.key[view.expected])
    least = np.full(len(key), NEVER, np.int64)
    np.minimum.at(least, lowest, w.position[view.expected])
    start = d.position[passed.since] + (view.contract.resume == "after")
    result: Bools = (d.kind[passed.since] == BACKFILL) | (least[lowest[passed.candidate]] < start)
    return result


def _has_later_gap(view: StreamView) -> Bools:
    """True for rows that a gap of their session follows, shape (n,)."""
    gaps = np.flatnonzero(view.deliveries.kind == GAP)
    last = np.full(int(view.session.max(initial=-1)) + 1, -1, np.int64)
    last[view.session[gaps]] = gaps
    result: Bools = np.arange(len(view.session)) < last[view.session]
    return result


def left_out_sentence(example: Example, name: Names) -> str:
    """The sentence about a write that a session left out after its start."""
    mark, start = example.watermark, example.event
    if start is None:
        raise AssertionError(f"{example} began nowhere")
    if mark.kind == OPEN:
        opened = f"{example.subscriber} opened session {mark.session}{place(mark, name)}"
        return f"{opened}, above {written(lost(example), name)}, which session {start.session} had not received."
    began = "began" if start.kind == OPEN else "began with a snapshot"
    is_mark = mark.kind == WATERMARK
    passed = name.forms.watermark(mark.position) if is_mark else shown(mark, name) + place(mark, name)
    session = f"{example.subscriber} {began}{place(start, name)} in session {mark.session}"
    return f"{session}, but {written(lost(example), name)} was left out: {passed} came."
