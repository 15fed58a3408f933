"""S25 hand-over-hole: errors of a snapshot. Holes after the snapshot are found together with those of S13."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, count_so_far, first_rows, is_kind, joint_codes
from checkers.columns.runs import groups
from checkers.columns.table import Join
from checkers.history.names import Names
from checkers.streams.coverage import is_session_marker
from checkers.streams.examples import Example
from checkers.streams.findings import after, lost, place, shown
from checkers.streams.rule import Cut, Need, OfLog, Rule
from checkers.streams.rules.sessions.holes import expected_by_key, left_out_sentence, snapshot_holes
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, FAIL, GAP, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s


def hand_over_holes(view: StreamView) -> Ruling:
    """S25: errors of a snapshot at p (the position of its rows), and of the stream after it.

    1. A write after p that never came (`snapshot_holes`).
    2. A row that shows an older version than the newest at or below p; if watermarks are exclusive, below p.
    3. A key that was there at p, and is not in a snapshot that holds every key (`backfill`), once a watermark closes p.
       A key whose newest value is null is deleted. Keys with a write of unknown position are not judged.
    4. A row that comes for the first time after a newer event of its key, and shows another value, in a stream in which
       a key's events are in order: it overwrites newer data.

    Each key is reported once per session. A witness is a key in a snapshot that the source wrote after it, and each key
    that was checked in (3).
    """
    d, w = view.deliveries, view.writes
    rows = np.flatnonzero((d.kind == BACKFILL) & (d.position != NEVER) & ~view.is_phantom)
    left_out = snapshot_holes(view)
    if len(rows) == 0 and len(left_out.watermark) == 0:
        return Ruling.nothing()
    stale, newest = _stale(view, rows)
    lacking_mark, lacking_write, checked = _lacking(view, rows)
    overwriting, newer = _overwriting(view, rows)
    mark = np.concatenate((left_out.watermark, stale, lacking_mark, overwriting))
    row = np.concatenate((left_out.row, stale, np.full(len(lacking_mark), -1), newer))
    write = np.concatenate((left_out.write, newest, lacking_write, np.full(len(overwriting), -1)))
    key = np.where(write >= 0, np.append(w.key, 0)[write], d.key[mark])
    order = np.lexsort((row, mark))
    chosen = order[first_rows(view.session[mark[order]], key[order])]
    written = rows[_are_written_again(view, rows)]
    return Ruling(
        watermark=mark[chosen],
        row=row[chosen],
        write=write[chosen],
        witnesses=len(first_rows(view.session[written], d.key[written])) + checked,
    )


def _stale(view: StreamView, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Rows with an older version than the newest at their position, and that newest write."""
    d, w, e = view.deliveries, view.writes, view.expected
    possible = np.flatnonzero(w.outcome != FAIL)
    sole = Join([d.key[rows], d.value[rows]], [w.key[possible], w.value[possible]]).only
    write = np.append(possible, -1)[sole]
    is_known = (write >= 0) & (d.value[rows] != NEVER)
    is_known &= np.append(w.position, NEVER)[write] != NEVER
    rows, write = rows[is_known], write[is_known]
    newest = _newest(view, d.key[rows], d.position[rows])
    is_stale = (newest >= 0) & (np.append(w.position[e], -1)[newest] > w.position[write])
    return rows[is_stale], e[newest[is_stale]]


def _newest(view: StreamView, key: Int64s, position: Int64s) -> Int64s:
    """The place in `expected` of each key's newest write that a snapshot at that position has; -1 if there is none."""
    index, line = expected_by_key(view, key)
    return index.last_before(line, position, or_equal=view.contract.closed == "<=")


def _lacking(view: StreamView, rows: Int64s) -> tuple[Int64s, Int64s, int]:
    """Watermarks that close whole snapshots, the newest write of each missing key, and the number of keys checked.

    Each part of a session between two of its markers is judged if it began with an `open` of everything.
    """
    d, w, e = view.deliveries, view.writes, view.expected
    none = np.zeros(0, np.int64)
    if view.contract.backfill != "whole" or len(e) == 0 or len(rows) == 0:
        return none, none, 0
    part = codes(view.session, count_so_far(view.session, is_session_marker(d)))
    begins = np.zeros(int(part.max()) + 1, np.bool_)
    begins[part[(d.kind == OPEN) & is_session_marker(d)]] = True
    keys = np.setdiff1d(w.key[e], w.key[(w.outcome != FAIL) & (w.position == NEVER)])
    index, line = expected_by_key(view, keys)
    is_value = np.append(w.value[e] != NEVER, False)
    is_meant = np.zeros(len(part), np.bool_)
    is_meant[rows] = True
    by_part = groups(part, len(begins))
    found: list[tuple[int, int]] = []
    checked = 0
    for each in np.unique(part[rows]).tolist():
        inside = by_part[each]
        own = inside[is_meant[inside]]
        position = int(d.position[own[0]])
        mark = _closing(view, inside, position)
        if not begins[each] or np.any(d.position[own] != position) or mark < own[-1]:
            continue
        newest = index.last_before(line, np.full(len(keys), position), or_equal=view.contract.closed == "<=")
        was_there = newest[is_value[newest]]
        came = inside[is_kind(d.kind[inside], (ROW, BACKFILL)) & (inside < mark)]
        lacks = was_there[~np.isin(w.key[e[was_there]], d.key[came])]
        checked += len(was_there)
        found += [(mark, write) for write in e[lacks].tolist()]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], checked


def _closing(view: StreamView, rows: Int64s, position: int) -> int:
    """Among those rows the first watermark of the whole stream that closes the position; -1 if there is none."""
    d = view.deliveries
    is_mark = (d.kind[rows] == WATERMARK) & (d.span[rows] < 0) & ~view.is_regress[rows]
    is_mark &= (d.position[rows] > position) | ((d.position[rows] == position) & (view.contract.closed == "<="))
    marks = rows[is_mark]
    return int(marks[0]) if len(marks) else -1


def _overwriting(view: StreamView, rows: Int64s) -> tuple[Int64s, Int64s]:
    """First deliveries that follow a newer event of their key since the session's last marker; and that event."""
    d = view.deliveries
    if view.contract.order_key == "none":
        return rows[:0], rows[:0]
    part = count_so_far(view.session, is_kind(d.kind, (OPEN, GAP)))
    rows = rows[first_rows(view.session[rows], view.identity[rows], d.value[rows])]
    events = np.flatnonzero((d.kind == ROW) & ~view.is_phantom)
    columns = (view.session, part, d.key)
    line, of_event = joint_codes([column[rows] for column in columns], [column[events] for column in columns])
    last = GroupIndex(of_event, events, events).last_before(line, rows)
    is_older = (last >= 0) & (d.position[last] > d.position[rows]) & (d.value[last] != d.value[rows])
    return rows[is_older], last[is_older]


def _are_written_again(view: StreamView, rows: Int64s) -> Bools:
    """True for rows after whose position the source wrote their key again."""
    index, line = expected_by_key(view, view.deliveries.key[rows])
    result: Bools = index.first(line, view.deliveries.position[rows], above=True) >= 0
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, event, missed = example.watermark, example.event, example.missed
    if mark.kind == BACKFILL and missed is not None:
        older = f"A snapshot{place(mark, name)} showed {example.subscriber} {shown(mark, name)}"
        newer = f"operation {missed.op} had written value {name(missed.value)}{place(missed, name)}"
        return f"{older}, where the source had something newer: {newer}."
    if mark.kind == BACKFILL and event is not None:
        late = f"A snapshot's row, {shown(mark, name)}{place(mark, name)}, reached {example.subscriber}"
        return f"{late} {after(event, mark)} after {shown(event, name)}{place(event, name)}, which it overwrites."
    if event is None:
        write = lost(example)
        what = f"{shown(write, name)} from {name.forms.position(write.position)} on (operation {write.op})"
        then = name.forms.watermark(mark.position)
        got = f"{example.subscriber} got a whole snapshot in session {mark.session}, and then {then}"
        return f"{got}, but the snapshot lacks {what}."
    return left_out_sentence(example, name)


HAND_OVER_HOLE: Final = Rule(
    name="hand-over-hole",
    id="S25",
    rank=180,
    anomaly=Anomaly(
        meaning="An event is missing between a backfill and the stream that continues it.", cause=Cause.SESSION
    ),
    witness="a key of a snapshot that was written after it",
    needs=frozenset({Need.POSITIONS, Need.ALL}),
    cut=Cut.STATE,
    scope=OfLog(hand_over_holes, _sentence, after=(snapshot_holes,)),
)
