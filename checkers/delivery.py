"""Rules that join the stream with its source: what a watermark closes has arrived, and arrived whole.

S09 missing-event, S10 torn-unit. A rule that looks at the stream only cannot see a key all of whose events were lost.
"""

from dataclasses import dataclass, replace

import numpy as np

from checkers.ragged import distinct
from checkers.stream_index import GroupIndex, ascending, codes, first_rows, max_so_far
from checkers.stream_versions import Versions, superseded
from checkers.stream_view import Lanes, Pairs, Ruling, StreamView, lanes_of, pairs_of, unit_of
from harness.core.columns import BACKFILL, COMMIT, NEVER, ROW, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: it speaks of all that came before it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """All expected writes beside the lanes of a view that speak of them: what several rules begin with.

    `pairs` go up to what a lane's session had been delivered, `closed` only to what its watermarks close: places in
    `closed.place` of the lanes, and when each write arrived in its lane's scope, NEVER if it did not.
    """

    pairs: Pairs
    lane: Int64s
    candidate: Int64s
    place: Int64s
    arrival: Int64s

    @classmethod
    def of(cls, view: StreamView) -> "Closings":
        """Those of a view. O(n log n)."""
        lanes, position = view.lanes, view.writes.position[view.expected]
        high = np.maximum(lanes.top(), _highest_delivered(view, lanes))
        pairs = expected_pairs(view, lanes, np.arange(len(view.expected)), high)
        place = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, position[pairs.candidate]))
        is_closed = place < pairs.end
        lane, candidate = pairs.lane[is_closed], pairs.candidate[is_closed]
        arrival = view.first_times(view.scope).at(view.of_write(lanes.scope[lane], candidate))
        return cls(pairs=pairs, lane=lane, candidate=candidate, place=place[is_closed], arrival=arrival)


def missing_events(view: StreamView, closings: Closings | None = None) -> Ruling:
    """S09: expected writes that a watermark closes, of live coverage, never delivered in its scope nor superseded.

    A write that came later is S05 or S06. A witness is a watermark that newly closes an expected write in live
    coverage. Each write is reported once a scope, under the first watermark that closes it. O(n log n).
    """
    lanes, closed = view.lanes, closings or Closings.of(view)
    candidate, place = closed.candidate, closed.place
    scope, watermark = lanes.scope[closed.lane], lanes.rows[place]
    never = np.flatnonzero(closed.arrival == NEVER)
    versions, height = Versions.of_expected(view, candidate[never]), lanes.height[place[never]]
    is_replaced = superseded(
        view, versions, group=view.scope, watermark=watermark[never], height=height, before=np.full(len(never), NEVER)
    )
    missing = never[~is_replaced]
    chosen = missing[first_of_each(view.of_write(scope[missing], candidate[missing]), watermark[missing])]
    return Ruling(
        watermark=watermark[chosen],
        row=np.full(len(chosen), -1, np.int64),
        write=view.expected[candidate[chosen]],
        witnesses=len(distinct(place)),
    )


def torn_units(view: StreamView, closings: Closings | None = None) -> Ruling:
    """S10: watermarks at which some events of a unit had arrived, and others, in live coverage, had not.

    The watermark must close the unit. Where the state at a watermark is all that was delivered before it (`cut:
    delivery`), any watermark tears a unit that its own session has begun; for batches and responses so does, in its
    session, the end of one, which a commit event marks. A unit is an operation, or an epoch. A witness is a watermark
    that newly closes a unit of two events or more in live coverage. Each unit is reported once a scope, at the first
    watermark that tears it. O(n log n).
    """
    units, lanes = _Units.of(view), view.lanes
    of_lanes = _of_units(view, units, (closings or Closings.of(view)).pairs)
    torn = [_torn(view, units, lanes, of_lanes, begun_in=view.scope, whole_in=view.scope, is_closing=True)]
    if view.contract.cut == "delivery":
        torn.append(_torn(view, units, lanes, of_lanes, begun_in=view.session, whole_in=view.scope, is_closing=False))
    if view.contract.atomic_unit in ("batch", "response"):
        ends = np.flatnonzero(view.deliveries.kind == COMMIT)
        height = np.full(len(view.scope), ALL_CLOSED)
        ends_of_units = lanes_of(view.deliveries, view.session, view.scope, ends, height)
        high = _highest_delivered(view, ends_of_units)
        pairs = expected_pairs(view, ends_of_units, units.place, high)
        own = view.session
        torn.append(_torn(view, units, ends_of_units, pairs, begun_in=own, whole_in=own, is_closing=False))
    watermark, row, candidate = (
        np.concatenate([getattr(t, name) for t in torn]) for name in ("watermark", "row", "candidate")
    )
    chosen = first_of_each(codes(view.scope[watermark], units.unit[candidate]), watermark)
    return Ruling(
        watermark=watermark[chosen],
        row=row[chosen],
        write=view.expected[candidate[chosen]],
        witnesses=torn[0].witnesses,
    )


@dataclass(frozen=True, slots=True)
class _Units:
    """The units of a view, numbered from 0: e expected writes, u units."""

    place: Int64s  # Places in `expected` of the writes whose unit has two or more.
    unit: Int64s  # (e,) of which unit each expected write is
    top: Int64s  # (u,) the highest position of each unit, with which it is closed

    @classmethod
    def of(cls, view: StreamView) -> "_Units":
        """The units by the contract; none if nothing is atomic."""
        w, e = view.writes, view.expected
        unit = unit_of(w, view.contract)[e]
        if view.contract.unit_scope == "partition":
            unit = codes(unit, w.span[e])
        if view.contract.atomic_unit == "none":
            unit = np.arange(len(e))  # Each write by itself.
        unit = codes(unit)
        top = np.full(int(unit.max(initial=-1)) + 1, np.iinfo(np.int64).min)
        np.maximum.at(top, unit, w.position[e])
        return cls(np.flatnonzero(np.bincount(unit)[unit] > 1), unit, top)


@dataclass(frozen=True, slots=True)
class _Torn:
    """One row for each lane and unit that is torn in it."""

    watermark: Int64s
    row: Int64s  # An event of the unit that had arrived.
    candidate: Int64s  # The place in `expected` of one that had not.
    witnesses: int


def _torn(
    view: StreamView, units: _Units, lanes: Lanes, pairs: Pairs, *, begun_in: Int64s, whole_in: Int64s, is_closing: bool
) -> _Torn:
    """Where a place of a lane lies behind one event of a unit and before another.

    An event in a pair is *missing* from `opens` until it arrives in the lane's group of `whole_in` (n,), and *present*
    once it arrived in that of `begun_in` (n,). The earliest place at which one of the unit is present is `begun`; the
    unit is torn at the first place from there on at which another is missing. Later places need no look: what is
    superseded stays superseded, and what has arrived stays.
    """
    position = view.writes.position[view.expected]
    high = lanes.top() if is_closing else _highest_delivered(view, lanes)
    pairs = pairs.only(position[pairs.candidate] <= high[pairs.lane])
    closing = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, units.top[units.unit[pairs.candidate]]))
    opens = closing if is_closing else pairs.opens
    arrival = _arrival(view, lanes, pairs, whole_in)
    beginning = _arrival(view, lanes, pairs, begun_in)

    group = codes(pairs.lane, units.unit[pairs.candidate])
    present = np.maximum(opens, lanes.by_time.place(pairs.lane, beginning))
    begun = np.full(len(group), NEVER, np.int64)
    np.minimum.at(begun, group, present)
    place = np.maximum(begun[group], opens)
    torn = np.flatnonzero(place < np.minimum(lanes.by_time.place(pairs.lane, arrival), pairs.end))
    watermark, height = lanes.rows[place[torn]], lanes.height[place[torn]]
    versions = Versions.of_expected(view, pairs.candidate[torn])
    torn = torn[~superseded(view, versions, group=whole_in, watermark=watermark, height=height, before=watermark)]
    chosen = torn[first_of_each(group[torn], place[torn])]

    first = np.flatnonzero(present == begun[group])[::-1]  # The first of each group is written last, and stays.
    shown = np.full(len(group), -1, np.int64)
    shown[group[first]] = beginning[first]
    is_witness = (np.bincount(group)[group] > 1) & (closing < pairs.end)
    return _Torn(
        watermark=lanes.rows[place[chosen]],
        row=shown[group[chosen]],
        candidate=pairs.candidate[chosen],
        witnesses=len(distinct(closing[is_witness])),
    )


def _of_units(view: StreamView, units: _Units, pairs: Pairs) -> Pairs:
    """The pairs of writes whose unit has two or more."""
    is_one = np.zeros(len(view.expected), np.bool_)
    is_one[units.place] = True
    return pairs.only(is_one[pairs.candidate])


def _arrival(view: StreamView, lanes: Lanes, pairs: Pairs, group: Int64s) -> Int64s:
    """When each pair's write first arrived in its lane's group; NEVER."""
    return view.first_times(group).at(view.of_write(group[lanes.last[pairs.lane]], pairs.candidate))


def expected_pairs(view: StreamView, lanes: Lanes, places: Int64s, high: Int64s) -> Pairs:
    """The lanes' pairs with the expected writes at `places`; candidates are places in `expected`."""
    write = view.expected[places]
    w = view.writes
    pairs = pairs_of(
        view, lanes, key=w.key[write], span=w.span[write], position=w.position[write], scope=None, high=high
    )
    return replace(pairs, candidate=places[pairs.candidate])


def closing_place(view: StreamView, lanes: Lanes, lane: Int64s, position: Int64s) -> Int64s:
    """The first place of each lane whose watermark closes the position, by `closed`."""
    return lanes.by_height.place(lane, position, above=view.contract.closed == "<")


def _highest_delivered(view: StreamView, lanes: Lanes) -> Int64s:
    """The highest position that each lane's session had delivered at the lane's last watermark."""
    if view.contract.atomic_unit == "epoch" and view.contract.position != "epoch":
        return np.full(len(lanes.last), NEVER)  # A unit of many positions may be torn far above what was delivered.
    is_event = np.isin(view.deliveries.kind, (ROW, BACKFILL))
    rows = np.flatnonzero(is_event)
    index = GroupIndex(view.session[rows], rows)
    reached = max_so_far(view.session[rows], view.deliveries.position[rows])
    last = index.last_before(lanes.session, lanes.last)
    return np.where(last >= 0, np.append(reached, 0)[last], np.iinfo(np.int64).min)


def first_of_each(group: Int64s, time: Int64s) -> Int64s:
    """For each group the index of its earliest row, these by time."""
    order = ascending(time, group)
    return order[first_rows(group[order])]
