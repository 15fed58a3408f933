"""Rules that join the stream with its source: what a watermark closes has arrived, and arrived whole.

S09 missing-event, S10 torn-unit. A rule that looks at the stream only cannot see a key all of whose events were lost.
"""

from dataclasses import dataclass, replace

import numpy as np

from checkers.stream_index import GroupIndex, codes, max_so_far
from checkers.stream_view import Lanes, Pairs, Ruling, StreamView, lanes_of, pairs_of
from harness.core.columns import BACKFILL, COMMIT, NEVER, ROW, Bools, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: it speaks of all that came before it.


def missing_events(view: StreamView) -> Ruling:
    """S09: expected writes that a watermark closes, of live coverage, never delivered in its scope nor superseded.

    A write that came later is S05 or S06. A witness is a watermark that newly closes an expected write in live
    coverage. Each write is reported once a scope, under the first watermark that closes it. O(n log n).
    """
    lanes, position = view.lanes, view.writes.position[view.expected]
    pairs = _expected_pairs(view, lanes, np.arange(len(view.expected)), lanes.top())
    place = np.maximum(pairs.opens, _closing(view, lanes, pairs.lane, position[pairs.candidate]))
    is_closed = place < pairs.end
    lane, candidate, place = pairs.lane[is_closed], pairs.candidate[is_closed], place[is_closed]

    scope = lanes.scope[lane]
    is_missing = view.first_times(view.scope).at(view.of_write(scope, candidate)) == NEVER
    is_missing &= ~_superseded(view, candidate, scope, lanes.height[place])
    watermark, write = lanes.rows[place[is_missing]], candidate[is_missing]
    chosen = _first_of_each(view.of_write(scope[is_missing], write), watermark)
    return Ruling(
        watermark=watermark[chosen],
        row=np.full(len(chosen), -1, np.int64),
        write=view.expected[write[chosen]],
        witnesses=len(np.unique(place)),
    )


def torn_units(view: StreamView) -> Ruling:
    """S10: watermarks at which some events of a unit had arrived, and others, in live coverage, had not.

    The watermark must close the unit; where the state at a watermark is all that was delivered before it (`cut:
    delivery`), any watermark tears, and for batches and responses so does the end of one, which a commit event marks.
    There a repeated unit is looked at again in each session, since a session takes up its state at its start. A unit
    is an operation, or an epoch. A witness is a watermark that newly closes a unit of two events or more in live
    coverage. Each unit is reported once a scope, at the first watermark that tears it. O(n log n).
    """
    units = _Units.of(view)
    lanes = view.lanes
    closing = _torn(view, units, lanes, is_closing=True)
    torn = [closing]
    if view.contract.cut == "delivery":
        torn.append(_torn(view, units, lanes, is_closing=False))
    if view.contract.atomic_unit in ("batch", "response"):
        ends = np.flatnonzero(view.deliveries.kind == COMMIT)
        height = np.full(len(view.scope), ALL_CLOSED)
        boundaries = lanes_of(view.deliveries, view.session, view.scope, ends, height)
        torn.append(_torn(view, units, boundaries, is_closing=False))
    scope, unit, watermark, row, write = (
        np.concatenate(parts) for parts in zip(*(t.columns() for t in torn), strict=True)
    )
    chosen = _first_of_each(codes(scope, unit), watermark)
    return Ruling(watermark=watermark[chosen], row=row[chosen], write=write[chosen], witnesses=closing.witnesses)


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
        if view.contract.atomic_unit != "epoch":
            unit = w.op[e]
        elif view.contract.position == "epoch":
            unit = w.position[e]
        else:
            unit = w.epoch[e]
        if view.contract.unit_scope == "partition":
            unit = codes(unit, w.span[e])
        if view.contract.atomic_unit == "none":
            unit = np.arange(len(e))  # Each write by itself.
        unit = codes(unit)
        top = np.full(int(unit.max(initial=-1)) + 1, np.iinfo(np.int64).min)
        np.maximum.at(top, unit, w.position[e])
        return cls(np.flatnonzero(np.bincount(unit)[unit] > 1), unit, top)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Torn:
    """One row for each lane and unit that is torn in it."""

    scope: Int64s
    unit: Int64s
    watermark: Int64s
    row: Int64s
    write: Int64s
    witnesses: int

    def columns(self) -> tuple[Int64s, ...]:
        return self.scope, self.unit, self.watermark, self.row, self.write


def _torn(view: StreamView, units: _Units, lanes: Lanes, *, is_closing: bool) -> _Torn:
    """Where a place of a lane lies behind one event of a unit and before another.

    An event in a pair is *present* from the place `arrival` on, *missing* between `opens` and `arrival`. The earliest
    place at which one of the unit is present is `begun`; it is torn at the first place from there on at which another
    is missing. Later places need no look: what is superseded stays superseded, what has arrived stays.
    """
    high = lanes.top() if is_closing else _highest_delivered(view, lanes)
    pairs = _expected_pairs(view, lanes, units.place, high)
    closing = _closing(view, lanes, pairs.lane, units.top[units.unit[pairs.candidate]])
    opens = np.maximum(pairs.opens, closing) if is_closing else pairs.opens
    in_scope = view.first_times(view.scope).at(view.of_write(lanes.scope[pairs.lane], pairs.candidate))
    in_session = view.first_times(view.session).at(view.of_write(lanes.session[pairs.lane], pairs.candidate))
    arrival = lanes.by_time.place(pairs.lane, in_scope)
    own_arrival = arrival if is_closing else lanes.by_time.place(pairs.lane, in_session)

    group = codes(pairs.lane, units.unit[pairs.candidate])
    present = np.maximum(opens, own_arrival)
    begun = np.full(len(group), NEVER, np.int64)
    np.minimum.at(begun, group, present)
    place = np.maximum(begun[group], opens)
    torn = np.flatnonzero(place < np.minimum(arrival, pairs.end))
    scope = lanes.scope[pairs.lane[torn]]
    torn = torn[~_superseded(view, pairs.candidate[torn], scope, lanes.height[place[torn]])]
    chosen = torn[_first_of_each(group[torn], place[torn])]

    begins = np.flatnonzero(present == begun[group])[::-1]  # The first of each group is written last, and stays.
    shown = np.full(len(group), -1, np.int64)
    shown[group[begins]] = (in_scope if is_closing else in_session)[begins]
    return _Torn(
        scope=lanes.scope[pairs.lane[chosen]],
        unit=units.unit[pairs.candidate[chosen]],
        watermark=lanes.rows[place[chosen]],
        row=shown[group[chosen]],
        write=view.expected[pairs.candidate[chosen]],
        witnesses=_closed_units(pairs, group, np.maximum(pairs.opens, closing)),
    )


def _closed_units(pairs: Pairs, group: Int64s, place: Int64s) -> int:
    """How many watermarks newly close a unit of which they cover two events or more."""
    is_counted = (np.bincount(group)[group] > 1) & (place < pairs.end)
    return len(np.unique(place[is_counted]))


def _expected_pairs(view: StreamView, lanes: Lanes, places: Int64s, high: Int64s) -> Pairs:
    """The lanes' pairs with the expected writes at `places`; candidates are places in `expected`."""
    write = view.expected[places]
    w = view.writes
    pairs = pairs_of(
        view, lanes, key=w.key[write], span=w.span[write], position=w.position[write], scope=None, high=high
    )
    return replace(pairs, candidate=places[pairs.candidate])


def _closing(view: StreamView, lanes: Lanes, lane: Int64s, position: Int64s) -> Int64s:
    """The first place of each lane whose watermark closes the position, by `closed`."""
    return lanes.by_height.place(lane, position, above=view.contract.closed == "<")


def _highest_delivered(view: StreamView, lanes: Lanes) -> Int64s:
    """The highest position that each lane's session had delivered at the lane's last watermark."""
    if view.contract.atomic_unit == "epoch" and view.contract.position != "epoch":
        return np.full(len(lanes.last), NEVER)  # A unit of many positions may be torn far above what was delivered.
    is_event = np.isin(view.deliveries.kind, (ROW, BACKFILL))
    height = np.where(is_event, view.deliveries.position, np.iinfo(np.int64).min)
    return max_so_far(view.session, height)[lanes.last]


def _superseded(view: StreamView, candidate: Int64s, scope: Int64s, height: Int64s) -> Bools:
    """Was a newer version of the key, which a watermark of that height closes, delivered instead, as is permitted?"""
    if view.contract.versions == "every":
        return np.zeros(len(candidate), np.bool_)
    d, w, write = view.deliveries, view.writes, view.expected[candidate]
    rows = np.flatnonzero(np.isin(d.kind, (ROW, BACKFILL)) & ~view.is_phantom)
    rows = rows[np.argsort(d.ordinal[rows], kind="stable")]  # So that of one position the newest stands last.
    parts = [np.append(view.scope[rows], scope), np.append(d.key[rows], w.key[write])]
    if view.contract.versions == "latest-per-epoch":
        is_position = view.contract.position == "epoch"
        parts.append(
            np.append((d.position if is_position else d.epoch)[rows], (w.position if is_position else w.epoch)[write])
        )
    group = codes(*parts)
    index = GroupIndex(group[: len(rows)], d.position[rows], rows)
    newest = index.last_before(group[len(rows) :], height, or_equal=view.contract.closed == "<=")
    is_later_in_unit = (d.position[newest] == w.position[write]) & (d.ordinal[newest] > w.ordinal[write])
    is_later_in_unit &= d.ordinal[newest] != NEVER
    is_newer: Bools = (d.position[newest] > w.position[write]) | is_later_in_unit
    return is_newer & (newest >= 0)


def _first_of_each(group: Int64s, time: Int64s) -> Int64s:
    """For each group the index of its earliest row, these by time."""
    order = np.lexsort((group, time))
    _, first = np.unique(group[order], return_index=True)
    return order[np.sort(first)]
