"""S19 state-mismatch: the state that a subscriber has built at a watermark equals the source's state there."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, ascending, codes, count_so_far, earliest_of_each, max_so_far
from checkers.columns.runs import distinct, ordered
from checkers.history.names import Names
from checkers.streams.closings import closings
from checkers.streams.examples import Example
from checkers.streams.findings import both, lost, shown
from checkers.streams.rule import Cut, Need, OfKeys, Rule, per_key
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, Bools, Int64s

UNKNOWN = -1  # Below every version.


@per_key("key")
def state_mismatches(view: StreamView) -> Ruling:
    """S19, by fold: at a watermark the newest row of a key shows an older version than the source had closed by then.

    The newest row has the highest position that the watermark closes; of several there, the one that came last for the
    first time. Older and newer are decided by the source's own order of the key's versions (`version`), not by
    positions. Keys of which a closed write was missing or late are left to S09, S05 and S06. Keys of which one
    position's rows first came in two sessions are left out: a replay may have shown them in their order. Each key is
    reported once per session. A witness is a watermark that newly closes a version of a key after another, in one live
    coverage, if the ranks of all are known. O(n log n).
    """
    lanes, w, closed = view.lanes, view.writes, closings(view)
    position = w.position[view.expected]
    candidate, place, arrival = closed.candidate, closed.place, closed.arrival
    group = codes(closed.lane, w.key[view.expected[candidate]])

    is_explained = np.zeros(int(group.max(initial=-1)) + 1, np.bool_)
    is_explained[group[arrival > lanes.rows[place]]] = True
    # Usually all events of a key that a lane closes came in one session, and positions need no check.
    mixed = np.flatnonzero(_are_of_two_sessions(view, group, arrival))
    tie = codes(group[mixed], position[candidate[mixed]])
    is_explained[group[mixed[_are_of_two_sessions(view, tie, arrival[mixed])]]] = True
    kept = np.flatnonzero(~is_explained[group])
    order = kept[_in_order(group[kept], place[kept], position[candidate[kept]], arrival[kept])]
    group, candidate, place, arrival = group[order], candidate[order], place[order], arrival[order]

    version = w.version[view.expected[candidate]]
    rank = np.where(version == NEVER, UNKNOWN, version)
    newest = max_so_far(group, rank)
    is_last = (np.diff(group, append=-1) != 0) | (np.diff(place, append=-1) != 0)
    is_stale = is_last & (rank != UNKNOWN) & (rank < newest)
    is_sure = count_so_far(group, rank == UNKNOWN) == 0
    is_witness = is_last & is_sure & (np.diff(group, prepend=-1) == 0)

    stale = np.flatnonzero(is_stale)
    watermark = lanes.rows[place[stale]]
    stale = stale[earliest_of_each(codes(view.session[watermark], w.key[view.expected[candidate[stale]]]), watermark)]
    witnesses = lanes.rows[distinct(place[is_witness])]
    of_stale = np.flatnonzero(np.isin(group, group[stale])) if len(stale) else stale
    index = GroupIndex(group[of_stale], rank[of_stale], candidate[of_stale])
    missed = index.first(group[stale], newest[stale])
    return Ruling(
        watermark=lanes.rows[place[stale]],
        row=arrival[stale],
        write=view.expected[missed],
        witnesses=len(witnesses),
        witness_rows=witnesses,
    )


def _in_order(group: Int64s, place: Int64s, position: Int64s, arrival: Int64s) -> Int64s:
    """Row numbers sorted by group, then by the other columns. Rows that are already in order are not sorted again."""
    order, inside = ordered(group)
    falls = np.zeros(max(0, len(order) - 1), np.bool_)
    for column in (arrival[order], position[order], place[order]):
        falls &= column[1:] == column[:-1]
        falls |= column[1:] < column[:-1]
    falls &= inside[1:] == inside[:-1]
    return ascending(group, place, position, arrival) if falls.any() else order


def _are_of_two_sessions(view: StreamView, tie: Int64s, arrival: Int64s) -> Bools:
    """True for arrivals with the same `tie` as an arrival in another session. NEVER stands for no arrival."""
    session = np.append(view.session, -1)[np.where(arrival == NEVER, -1, arrival)]
    low = np.full(int(tie.max(initial=-1)) + 1, NEVER, np.int64)
    high = np.full(len(low), -1, np.int64)
    np.minimum.at(low, tie, session)
    np.maximum.at(high, tie, session)
    result: Bools = (low < high)[tie]
    return result


def _sentence(example: Example, name: Names) -> str:
    (mark, event), newest = both(example), lost(example)
    since = name.forms.position(newest.position)
    had = f"value {name(newest.value)} from {since} on (operation {newest.op}), which is newer"
    built = f"{example.subscriber} has built {shown(event, name)} from its stream"
    return f"At {name.forms.watermark(mark.position)} {built}, where the source had {had}."


STATE_MISMATCH: Final = Rule(
    name="state-mismatch",
    id="S19",
    rank=110,
    anomaly=Anomaly(meaning="The state built from the stream is not the source's at that position.", cause=Cause.SUM),
    witness="a watermark that newly closes a version of a key after another",
    needs=frozenset({Need.SOURCE, Need.ALL}),
    cut=Cut.STATE,
    scope=OfKeys(state_mismatches, _sentence),
)
