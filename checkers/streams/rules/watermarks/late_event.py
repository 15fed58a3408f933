"""Rules about the stream alone: nothing new arrives after a watermark, and watermarks do not go back.

S05 late-event, S06 late-event-boundary, S07 watermark-regress. The contract declares what a position is compared with;
nothing is assumed. An event is judged by one of S05, S06 and (in
`checkers.streams.rules.watermarks.missing_event`) S09, never by two.
"""

import numpy as np

from checkers.columns.index import GroupIndex, codes, max_so_far
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Pairs, Ruling, StreamView, pairs_of
from harness.core.columns import NEVER, ROW, WATERMARK, Bools, Int64s

_SPARSITY = 64  # A table with this many slots for each row is still faster than a sort.


def late_events(view: StreamView) -> tuple[Ruling, Ruling]:
    """S05 and S06: first deliveries in their scope, below or exactly at a watermark that came before them.

    The watermark must cover the event's key, and the event must be above the session's start: what lies at or below the
    start was there before, and may be repeated. Backfill rows are never late. If watermarks are exclusive (`<`), an
    event at the watermark is legal, and counted as such. A witness of S05 is a first delivery after a watermark that
    covers its key (of its own session, or of one of its scope that reached its position); of S06 one of these whose
    position is that of a watermark of its scope. O(n log n).
    """
    rows = view.first[view.deliveries.kind[view.first] == ROW]
    follows = _follows_watermark(view, rows)
    # Most rows follow a watermark, and are above all before them: these need no more checks.
    asked = np.flatnonzero(~follows | _are_reached(view, rows))
    witnesses = int(np.count_nonzero(follows))
    rows, follows = rows[asked], follows[asked]
    position = view.deliveries.position[rows]
    pairs = pairs_of(
        view,
        view.lanes,
        key=view.deliveries.key[rows],
        span=view.deliveries.span[rows],
        position=position,
        scope=view.scope[rows],
        high=view.lanes.top(),
    )
    height = position[pairs.candidate]
    above = np.maximum(pairs.opens, view.lanes.by_height.place(pairs.lane, height, above=True))
    reaching = np.maximum(pairs.opens, view.lanes.by_height.place(pairs.lane, height))
    passed = _earliest(view, pairs, _unless_replayed(view, pairs, rows, above), len(rows))
    reached = _earliest(view, pairs, _unless_replayed(view, pairs, rows, reaching), len(rows))
    is_late = passed < rows
    is_boundary = (reached < rows) & ~is_late

    is_witness = follows | (_earliest(view, pairs, pairs.opens, len(rows)) < rows)
    witnesses += int(np.count_nonzero(is_witness & ~follows))
    meets = view.lanes.height[reaching] == height  # No position of a pair is above its lane.
    is_met = np.zeros(len(rows), np.bool_)
    is_met[pairs.candidate[meets]] = True

    late = _ruling(rows[is_late], passed[is_late], witnesses=witnesses)
    if view.contract.closed == "<":
        return late, _ruling(rows[:0], rows[:0], witnesses=0, legal=int(is_boundary.sum()))
    return late, _ruling(rows[is_boundary], reached[is_boundary], witnesses=int((is_witness & is_met).sum()))


def regressions(view: StreamView) -> Ruling:
    """S07: watermarks below an earlier one of their scope and partition. Equal is legal. Witnesses are the pairs."""
    rows = np.flatnonzero(view.deliveries.kind == WATERMARK)
    group = codes(view.scope[rows], view.deliveries.span[rows])
    height = view.deliveries.position[rows]
    is_regress = view.is_regress[rows]
    reached = max_so_far(group, height)[is_regress]
    earlier = GroupIndex(group, height, rows).first(group[is_regress], reached)
    witnesses = len(rows) - int(group.max(initial=-1)) - 1
    return _ruling(earlier, rows[is_regress], witnesses=witnesses)


def _earliest(view: StreamView, pairs: Pairs, place: Int64s, count: int) -> Int64s:
    """For each of `count` candidates the first watermark, as a row, among its pairs' places; NEVER without one."""
    result = np.full(count, NEVER, np.int64)
    inside = place < pairs.end
    np.minimum.at(result, pairs.candidate[inside], view.lanes.rows[place[inside]])
    return result


def _unless_replayed(view: StreamView, pairs: Pairs, rows: Int64s, place: Int64s) -> Int64s:
    """`place`, but after the lane's end for versions that the stream had legally skipped and shows in a replay.

    Execution: x's versions at 1 and 3 are sent as that at 3 alone; watermark 4; the subscriber resumes at 0, and now is
    sent both. The version at 1 comes for the first time, but the watermark was as true without it.
    """
    if view.contract.versions == "every":
        return place
    asked = np.flatnonzero(place < pairs.end)
    asked = asked[view.lanes.rows[place[asked]] < rows[pairs.candidate[asked]]]
    watermark = view.lanes.rows[place[asked]]
    is_replayed = superseded(
        view,
        Versions.of_events(view, rows[pairs.candidate[asked]]),
        group=view.scope,
        watermark=watermark,
        height=view.lanes.height[place[asked]],
        before=watermark,
    )
    result = place.copy()
    result[asked[is_replayed]] = pairs.end[asked[is_replayed]]
    return result


def _are_reached(view: StreamView, rows: Int64s) -> Bools:
    """True for rows at or below an earlier watermark of their scope, or at the position of any watermark."""
    position, lanes = view.deliveries.position[rows], view.lanes
    height = np.full(len(view.scope), lanes.height.min(initial=0) - 1)
    height[lanes.rows] = lanes.height
    result: Bools = max_so_far(view.scope, height)[rows] >= position
    if view.contract.closed != "<":  # If exclusive, a row at a watermark is legal and no witness.
        span = int(lanes.height.max(initial=0)) - int(lanes.height.min(initial=0))
        result |= np.isin(position, lanes.height, kind="table" if span <= _SPARSITY * len(position) else None)
    return result


def _follows_watermark(view: StreamView, rows: Int64s) -> Bools:
    """True for rows before which their own session announced a watermark that covers their key."""
    d, marks = view.deliveries, view.lanes.rows
    spans = int(d.span.max(initial=-1)) + 2
    index = GroupIndex(view.session[marks] * spans + d.span[marks] + 1, marks, marks)
    covered = view.coverage.at(view.session[rows], d.key[rows], d.span[rows], rows)
    first = index.first(view.session[rows] * spans, covered.since, above=True)
    result = (first >= 0) & (first < rows)
    if np.any(d.span[marks] >= 0):
        first = index.first(view.session[rows] * spans + d.span[rows] + 1, covered.since, above=True)
        result |= (first >= 0) & (first < rows)
    result &= covered.reaches(d.position[rows])
    return result


def _ruling(row: Int64s, watermark: Int64s, *, witnesses: int, legal: int = 0) -> Ruling:
    order = np.lexsort((row, watermark))
    write = np.full(len(row), -1, np.int64)
    return Ruling(watermark=watermark[order], row=row[order], write=write, witnesses=witnesses, legal=legal)
