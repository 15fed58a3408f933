"""Rules that join the stream with its source: everything that a watermark closes has arrived, and arrived whole.

S09 missing-event, S10 torn-unit. A rule about the stream alone cannot see a key all of whose events were lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers.columns import runs
from checkers.columns.blocks import BLOCK_ROWS, by_part, pieces
from checkers.columns.index import ascending, codes, first_rows, is_kind, max_so_far
from checkers.columns.runs import distinct, groups, is_ascending, spans
from checkers.history.units import unit_of
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Lanes, Pairs, Ruling, StreamView, lanes_of, pairs_of
from harness.core.columns import BACKFILL, COMMIT, NEVER, ROW, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: it covers all that came before it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """All expected writes beside the lanes of a view that close them: input of several rules. Arrays (m,)."""

    lane: Int64s
    candidate: Int64s  # A place in `expected`.
    place: Int64s  # The first place of the lane that closes it.
    arrival: Int64s  # The time of its arrival in the lane's scope; NEVER if it did not arrive.

    @classmethod
    def of(cls, view: StreamView) -> "Closings":
        """The closings of a view. O(n log n)."""
        lanes, position = view.lanes, view.writes.position[view.expected]
        pairs = expected_pairs(view, lanes, np.arange(len(view.expected)), lanes.top())
        place = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, position[pairs.candidate]))
        is_closed = place < pairs.end
        lane, candidate = pairs.lane[is_closed], pairs.candidate[is_closed]
        arrival = view.first_times(view.scope).at(view.of_write(lanes.scope[lane], candidate))
        return cls(lane=lane, candidate=candidate, place=place[is_closed], arrival=arrival)


def missing_events(view: StreamView, closings: Closings | None = None) -> Ruling:
    """S09: expected writes that a watermark closes in live coverage, never delivered in its scope nor superseded.

    A write that came later is S05 or S06. A witness is a watermark that newly closes an expected write in live
    coverage. Each write is reported once per scope, under the first watermark that closes it. O(n log n).
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
    told = lanes.rows[distinct(place)]
    return Ruling(
        watermark=watermark[chosen],
        row=np.full(len(chosen), -1, np.int64),
        write=view.expected[candidate[chosen]],
        witnesses=len(told),
        told=told,
    )


def torn_units(view: StreamView, *, threads: int = 1, block_rows: int = BLOCK_ROWS) -> Ruling:
    """S10: watermarks at which some events of a unit had arrived, and others, in live coverage, had not.

    The watermark must close the unit. If the state at a watermark is all that was delivered before it (`cut:
    delivery`), any watermark tears a unit that its own session has begun. For batches and responses so does, in its
    session, the end of one, which a commit event marks. A unit is an operation, or an epoch. A witness is a watermark
    that newly closes a unit of two events or more in live coverage. Each unit is reported once per scope, at the first
    watermark that tears it. Each of `threads` threads takes a part of the units. O(n log n).
    """
    if view.contract.atomic_unit == "none":
        return Ruling.nothing()  # Each write is a unit by itself.
    units, ways = _Units.of(view), list(_ways(view, block_rows))
    marks = distinct(np.concatenate([way.lanes.rows for way in ways]))
    look = partial(_torn_by, view, units, ways, marks)
    found = list(by_part(look, units.parts(view, block_rows), threads=threads))
    torn = [each.torn[way] for way in range(len(ways)) for each in found]
    watermark, row, candidate = (
        np.concatenate([getattr(t, name) for t in torn]) for name in ("watermark", "row", "candidate")
    )
    chosen = first_of_each(codes(view.scope[watermark], units.unit[candidate]), watermark)
    return Ruling(
        watermark=watermark[chosen],
        row=row[chosen],
        write=view.expected[candidate[chosen]],
        witnesses=len(distinct(np.concatenate([each.closing for each in found]))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One kind of tearing: the lanes whose places tear, and the groups in which units begin and must be whole, (n,)."""

    lanes: Lanes
    high: Int64s  # (lanes,) the highest position that each lane covers
    begun_in: Int64s
    whole_in: Int64s
    is_closing: bool


def _ways(view: StreamView, block_rows: int) -> Iterator[_Way]:
    """Tearing by watermarks that close a unit; by the contract also by any watermark, and by the end of a batch."""
    d, lanes, session = view.deliveries, view.lanes, view.session
    yield _Way(lanes=lanes, high=lanes.top(), begun_in=view.scope, whole_in=view.scope, is_closing=True)
    if view.contract.cut == "delivery":
        high = _highest_delivered(view, lanes, block_rows)
        yield _Way(lanes=lanes, high=high, begun_in=session, whole_in=view.scope, is_closing=False)
    if view.contract.atomic_unit in ("batch", "response"):
        rows = np.flatnonzero(d.kind == COMMIT)
        ends = lanes_of(d, session, view.scope, rows, np.full(len(view.scope), ALL_CLOSED))
        high = _highest_delivered(view, ends, block_rows)
        yield _Way(lanes=ends, high=high, begun_in=session, whole_in=session, is_closing=False)


@dataclass(frozen=True, slots=True)
class Part:
    """Some expected writes, as places in `expected`, and the rows of the log that show them, both ascending."""

    place: Int64s
    shown: Int64s


@dataclass(frozen=True, slots=True)
class _Units:
    """The units of a view, numbered from 0: e expected writes, u units."""

    unit: Int64s  # (e,) the unit of each expected write
    top: Int64s  # (u,) the highest position of each unit, with which it is closed

    @classmethod
    def of(cls, view: StreamView) -> "_Units":
        """The units by the contract. O(n log n); O(n) if the writes are sorted by unit."""
        w, e = view.writes, view.expected
        unit = unit_of(w, view.contract)[e]
        if view.contract.unit_scope == "partition":
            unit = codes(unit, w.span[e])
        elif is_ascending(unit):
            unit = np.cumsum(runs.first_of_each(unit))
            unit -= 1
        else:
            unit = codes(unit)
        top = np.full(int(unit.max(initial=-1)) + 1, np.iinfo(np.int64).min)
        for piece in pieces(len(e)):
            np.maximum.at(top, unit[piece], w.position[e[piece]])
        return cls(unit, top)

    def parts(self, view: StreamView, block_rows: int) -> list[Part]:
        """The writes of units of two or more beside their rows, about `block_rows` of both in a part. O(n)."""
        count = (len(self.unit) + len(view.match)) // block_rows + 1
        of_unit = np.arange(len(self.top)) * count // max(1, len(self.top))
        of_unit[np.bincount(self.unit, minlength=len(of_unit)) < 2] = count  # These are in no part.
        # Small numbers, for there is one for each row of the log; the last is that of rows that show no write.
        part = np.append(of_unit, count).astype(np.min_scalar_type(count))[np.append(self.unit, len(of_unit))]
        places, shown = (groups(of, count + 1)[:count] for of in (part[:-1], part[view.match]))
        return [Part(*each) for each in zip(places, shown, strict=True)]

    def doubtful(self, view: StreamView, marks: Int64s, part: Part) -> Part:
        """The units of a part that may be torn.

        In all others each event came once, all in one session and scope, and between two of `marks`, the rows of all
        lanes.
        """
        rows, shown = part.shown, view.match[part.shown]
        of_row, of_write = self.unit[shown], self.unit[part.place]
        low = int(of_write.min(initial=NEVER))  # A part's units lie close together.
        is_doubtful = np.zeros(int(of_write.max(initial=low)) - low + 1, np.bool_)
        of_row, of_write = of_row - low, of_write - low
        first = np.zeros(len(is_doubtful), np.int64)
        first[of_row[::-1]] = np.arange(len(rows))[::-1]  # The last write remains.
        first = first[of_row]
        for column in (np.searchsorted(marks, rows), view.session[rows], view.scope[rows]):
            is_doubtful[of_row[column != column[first]]] = True
        shown.sort()
        if not np.array_equal(shown, part.place):
            begin, end = spans(shown, part.place)
            is_doubtful[of_write[end - begin != 1]] = True
        return Part(part.place[is_doubtful[of_write]], rows[is_doubtful[of_row]])


@dataclass(frozen=True, slots=True)
class _Torn:
    """One row for each lane and unit that is torn in it."""

    watermark: Int64s
    row: Int64s  # An event of the unit that had arrived.
    candidate: Int64s  # The place in `expected` of one that had not.


@dataclass(frozen=True, slots=True)
class _Found:
    """The torn units of one part by each kind, and the witnesses: places that newly close units of two."""

    torn: list[_Torn]
    closing: Int64s


def _torn_by(view: StreamView, units: _Units, ways: Sequence[_Way], marks: Int64s, part: Part) -> _Found:
    """The result for one part of the units. The first kind is by watermarks that close a unit."""
    doubtful = units.doubtful(view, marks, part)
    return _Found([_torn(view, units, way, doubtful) for way in ways], _newly_closing(view, units, ways[0], part))


def _newly_closing(view: StreamView, units: _Units, way: _Way, part: Part) -> Int64s:
    """The places of lanes that newly close a unit with two events or more in live coverage."""
    pairs = expected_pairs(view, way.lanes, part.place, way.high)
    place = _closing(view, units, way, pairs)
    group = codes(pairs.lane, units.unit[pairs.candidate])
    return distinct(place[(np.bincount(group)[group] > 1) & (place < pairs.end)])


def _closing(view: StreamView, units: _Units, way: _Way, pairs: Pairs) -> Int64s:
    """The first place at which each pair's key is covered and its unit closed."""
    top = units.top[units.unit[pairs.candidate]]
    return np.maximum(pairs.opens, closing_place(view, way.lanes, pairs.lane, top))


def _torn(view: StreamView, units: _Units, way: _Way, part: Part) -> _Torn:
    """Units for which a place of a lane lies after one event of the unit and before another.

    An event in a pair is *missing* from `opens` until it arrives in the lane's group of `whole_in`, and *present* once
    it arrived in that of `begun_in`. The earliest place at which one event of the unit is present is `begun`; the unit
    is torn at the first place from there on at which another is missing. Later places need no check: superseded events
    stay superseded, and arrived ones stay.
    """
    lanes, pairs = way.lanes, expected_pairs(view, way.lanes, part.place, way.high)
    opens = _closing(view, units, way, pairs) if way.is_closing else pairs.opens
    arrival = _arrival(view, lanes, pairs, way.whole_in, part.shown)
    beginning = arrival if way.begun_in is way.whole_in else _arrival(view, lanes, pairs, way.begun_in, part.shown)

    group = codes(pairs.lane, units.unit[pairs.candidate])
    present = np.maximum(opens, lanes.by_time.place(pairs.lane, beginning))
    begun = np.full(len(group), NEVER, np.int64)
    np.minimum.at(begun, group, present)
    place = np.maximum(begun[group], opens)
    torn = np.flatnonzero(place < np.minimum(lanes.by_time.place(pairs.lane, arrival), pairs.end))
    watermark, height = lanes.rows[place[torn]], lanes.height[place[torn]]
    versions = Versions.of_expected(view, pairs.candidate[torn])
    is_replaced = superseded(view, versions, group=way.whole_in, watermark=watermark, height=height, before=watermark)
    torn = torn[~is_replaced]
    chosen = torn[first_of_each(group[torn], place[torn])]

    first = np.flatnonzero(present == begun[group])[::-1]  # The first of each group is written last, and remains.
    shown = np.full(len(group), -1, np.int64)
    shown[group[first]] = beginning[first]
    return _Torn(
        watermark=lanes.rows[place[chosen]],
        row=shown[group[chosen]],
        candidate=pairs.candidate[chosen],
    )


def _arrival(view: StreamView, lanes: Lanes, pairs: Pairs, group: Int64s, shown: Int64s) -> Int64s:
    """The first arrival of each pair's write in its lane's group, by the rows `shown`; NEVER without one."""
    return view.first_times(group, shown).at(view.of_write(group[lanes.last[pairs.lane]], pairs.candidate))


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


def _highest_delivered(view: StreamView, lanes: Lanes, block_rows: int) -> Int64s:
    """The highest position that each lane's session had delivered at the lane's last watermark."""
    if view.contract.atomic_unit == "epoch" and view.contract.position != "epoch":
        return np.full(len(lanes.last), NEVER)  # A unit of many positions may be torn far above the delivered ones.
    d, count = view.deliveries, len(view.deliveries.kind)
    order = ascending(lanes.session, lanes.last)
    session = lanes.session[order]
    ends = session * count + lanes.last[order]
    highest = np.full(len(order), np.iinfo(np.int64).min)
    for piece in pieces(count, block_rows):
        # The lane end that follows each event.
        rows = piece.start + np.flatnonzero(is_kind(d.kind[piece], (ROW, BACKFILL)))
        at = np.searchsorted(ends, view.session[rows] * count + rows)
        is_before = np.append(session, -1)[at] == view.session[rows]
        np.maximum.at(highest, at[is_before], d.position[rows[is_before]])
    result = np.empty(len(order), np.int64)
    result[order] = max_so_far(session, highest)
    return result


def first_of_each(group: Int64s, time: Int64s) -> Int64s:
    """For each group the index of its earliest row; the indices are sorted by time."""
    order = ascending(time, group)
    return order[first_rows(group[order])]
