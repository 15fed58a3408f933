"""S05 late-event, S06 late-event-boundary: nothing new arrives after a watermark that covers it.

The contract declares what a position is compared with; nothing is assumed. An event is judged by one of S05, S06 and
S09 (missing-event), never by two.
"""

from typing import Final

import numpy as np

from checkers.columns.facts import fact
from checkers.columns.index import GroupIndex, max_so_far
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import announced, both, later, place, shown
from checkers.streams.rule import Cut, OfKeys, Rule, per_key
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Pairs, Ruling, StreamView, pairs_of
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, ROW, Bools, Int64s

_SPARSITY = 64  # A table with this many slots for each row is still faster than a sort.


@fact
def late_events(view: StreamView) -> tuple[Ruling, Ruling]:
    """S05 and S06: first deliveries in their scope, below or exactly at a watermark that came before them.

    The watermark must cover the event's key, and the event must be above the session's start: events at or below the
    start existed before, and may be repeated. Backfill rows are never late. If watermarks are exclusive (`<`), an event
    at the watermark is legal, and counted as such. A witness of S05 is a first delivery after a watermark that covers
    its key (of its own session, or of one of its scope that reached its position); of S06 one of these whose position
    is that of a watermark of its scope. O(n log n).
    """
    rows = view.first[view.deliveries.kind[view.first] == ROW]
    follows = _follows_watermark(view, rows)
    # Most rows are above all watermarks before them, and need no more checks.
    checked = np.flatnonzero(~follows | _are_reached(view, rows))
    witnesses = int(np.count_nonzero(follows))
    rows, follows = rows[checked], follows[checked]
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
    meets = view.lanes.height[reaching] == height  # The position of a pair is never above its lane.
    is_met = np.zeros(len(rows), np.bool_)
    is_met[pairs.candidate[meets]] = True

    late = Ruling.by_time(passed[is_late], rows[is_late], witnesses=witnesses)
    if view.contract.closed == "<":
        return late, Ruling.by_time(rows[:0], rows[:0], witnesses=0, legal=int(is_boundary.sum()))
    return late, Ruling.by_time(reached[is_boundary], rows[is_boundary], witnesses=int((is_witness & is_met).sum()))


def _earliest(view: StreamView, pairs: Pairs, place: Int64s, count: int) -> Int64s:
    """For each of `count` candidates the first watermark, as a row, among the places of its pairs; NEVER if none."""
    result = np.full(count, NEVER, np.int64)
    inside = place < pairs.end
    np.minimum.at(result, pairs.candidate[inside], view.lanes.rows[place[inside]])
    return result


def _unless_replayed(view: StreamView, pairs: Pairs, rows: Int64s, place: Int64s) -> Int64s:
    """`place`, set to the lane's end for versions that the stream had legally skipped and now shows in a replay.

    Execution: x's versions at 1 and 3 are sent as that at 3 alone; watermark 4; the subscriber resumes at 0, and is now
    sent both. The version at 1 comes for the first time, but the watermark was as true without it.
    """
    if view.contract.versions == "every":
        return place
    checked = np.flatnonzero(place < pairs.end)
    checked = checked[view.lanes.rows[place[checked]] < rows[pairs.candidate[checked]]]
    watermark = view.lanes.rows[place[checked]]
    is_replayed = superseded(
        view,
        Versions.of_events(view, rows[pairs.candidate[checked]]),
        group=view.scope,
        watermark=watermark,
        height=view.lanes.height[place[checked]],
        before=watermark,
    )
    result = place.copy()
    result[checked[is_replayed]] = pairs.end[checked[is_replayed]]
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
    """True for rows before which their own session received a watermark that covers their key."""
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


@per_key("row")
def _below(view: StreamView) -> Ruling:
    return late_events(view)[0]


@per_key("row")
def _at(view: StreamView) -> Ruling:
    return late_events(view)[1]


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    is_boundary = event.position == mark.position
    where = " at that very position, which it includes," if is_boundary else place(event, name)
    return f"{announced(example, name)}, but {shown(event, name)}{where} first arrived {later(mark, event)}."


LATE_EVENT: Final = Rule(
    name="late-event",
    id="S05",
    rank=10,
    anomaly=Anomaly(meaning="An event below a watermark arrived for the first time after it.", cause=Cause.LATE),
    witness="a first delivery after a watermark that covers its key",
    is_online=True,
    cut=Cut.ROW,
    scope=OfKeys(_below, _sentence),
)
LATE_EVENT_BOUNDARY: Final = Rule(
    name="late-event-boundary",
    id="S06",
    rank=20,
    anomaly=Anomaly(
        meaning="An event exactly at a watermark that includes its position arrived after it.",
        title="Late event at a watermark",
        cause=Cause.LATE,
    ),
    witness="a first delivery after a watermark that covers its key, at the position of a watermark",
    is_online=True,
    legal="events-at-exclusive-watermarks",
    cut=Cut.ROW,
    scope=OfKeys(_at, _sentence),
)
