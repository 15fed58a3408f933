"""Rules that join the stream with its source: what a watermark closes has arrived, and arrived whole.

S09 missing-event, S10 torn-unit. A rule that looks at the stream only cannot see a key all of whose events were lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers.ragged import distinct, groups
from checkers.stream_blocks import BLOCK_ROWS, by_part
from checkers.stream_index import ascending, codes, first_rows, is_kind, max_so_far
from checkers.stream_units import unit_of
from checkers.stream_versions import Versions, superseded
from checkers.stream_view import Lanes, Pairs, Ruling, StreamView, lanes_of, pairs_of
from harness.core.columns import BACKFILL, COMMIT, NEVER, ROW, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: it speaks of all that came before it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """All expected writes beside the lanes of a view that close them: what several rules begin with. Arrays (m,)."""

    lane: Int64s
    candidate: Int64s  # A place in `expected`.
    place: Int64s  # The first place of the lane that closes it.
    arrival: Int64s  # When it arrived in the lane's scope, NEVER if it did not.

    @classmethod
    def of(cls, view: StreamView) -> "Closings":
        """Those of a view. O(n log n)."""
        lanes, position = view.lanes, view.writes.position[view.expected]
        pairs = expected_pairs(view, lanes, np.arange(len(view.expected)), lanes.top())
        place = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, position[pairs.candidate]))
        is_closed = place < pairs.end
        lane, candidate = pairs.lane[is_closed], pairs.candidate[is_closed]
        arrival = view.first_times(view.scope).at(view.of_write(lanes.scope[lane], candidate))
        return cls(lane=lane, candidate=candidate, place=place[is_closed], arrival=arrival)


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

    The watermark must close the unit. Where the state at a watermark is all that was delivered before it (`cut:
    delivery`), any watermark tears a unit that its own session has begun; for batches and responses so does, in its
    session, the end of one, which a commit event marks. A unit is an operation, or an epoch. A witness is a watermark
    that newly closes a unit of two events or more in live coverage. Each unit is reported once a scope, at the first
    watermark that tears it. So many threads take a part of the units each. O(n log n).
    """
    units, ways = _Units.of(view), list(_ways(view))
    parts, receipt = units.parts(view, block_rows), _Receipt.of(view, ways) if len(ways) > 1 else None
    found = list(by_part(partial(_torn_by, view, units, ways, receipt), parts, threads=threads))
    torn = [each[way] for way in range(len(ways)) for each in found]
    watermark, row, candidate = (
        np.concatenate([getattr(t, name) for t in torn]) for name in ("watermark", "row", "candidate")
    )
    chosen = first_of_each(codes(view.scope[watermark], units.unit[candidate]), watermark)
    return Ruling(
        watermark=watermark[chosen],
        row=row[chosen],
        write=view.expected[candidate[chosen]],
        witnesses=len(distinct(np.concatenate([each[0].closing for each in found]))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How units are torn: at which places of which lanes, in what they begin, and in what they must be whole, (n,)."""

    lanes: Lanes
    high: Int64s  # (lanes,) up to which position each lane says something
    begun_in: Int64s
    whole_in: Int64s
    is_closing: bool


def _ways(view: StreamView) -> Iterator[_Way]:
    """By watermarks that close a unit; where the contract says so by any watermark, and by the end of a batch."""
    d, lanes, session = view.deliveries, view.lanes, view.session
    yield _Way(lanes=lanes, high=lanes.top(), begun_in=view.scope, whole_in=view.scope, is_closing=True)
    if view.contract.cut == "delivery":
        high = _highest_delivered(view, lanes)
        yield _Way(lanes=lanes, high=high, begun_in=session, whole_in=view.scope, is_closing=False)
    if view.contract.atomic_unit in ("batch", "response"):
        rows = np.flatnonzero(d.kind == COMMIT)
        ends = lanes_of(d, session, view.scope, rows, np.full(len(view.scope), ALL_CLOSED))
        high = _highest_delivered(view, ends)
        yield _Way(lanes=ends, high=high, begun_in=session, whole_in=session, is_closing=False)


@dataclass(frozen=True, slots=True)
class Part:
    """Some expected writes, as places in `expected`, and the rows of the log that show these, both ascending."""

    place: Int64s
    shown: Int64s


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

    def parts(self, view: StreamView, block_rows: int) -> list[Part]:
        """The writes of units of two or more beside their rows, about so many of both in a part. O(n)."""
        rows = np.flatnonzero(view.match >= 0)
        count = (len(self.place) + len(rows)) // block_rows + 1
        if count == 1:
            return [Part(self.place, rows)]
        part = self.unit * count // len(self.top)
        shown = groups(part[view.match[rows]], count)
        return [
            Part(self.place[own], rows[of_rows])
            for own, of_rows in zip(groups(part[self.place], count), shown, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What tells at once of most units that nothing tears them: they came whole, between two places of all lanes."""

    times: Int64s  # (e,) how often each expected write came
    marks: Int64s  # the rows of all lanes, ascending

    @classmethod
    def of(cls, view: StreamView, ways: Sequence[_Way]) -> "_Receipt":
        """That of a view. O(n)."""
        times = np.bincount(view.match[view.match >= 0], minlength=len(view.expected))
        return cls(times, distinct(np.concatenate([way.lanes.rows for way in ways])))

    def doubtful(self, view: StreamView, units: _Units, part: Part) -> Part:
        """The units of a part that did not come so: each event once, all in one session and scope."""
        rows, of_row, of_write = part.shown, units.unit[view.match[part.shown]], units.unit[part.place]
        low = int(min(of_row.min(initial=NEVER), of_write.min(initial=NEVER)))  # A part's units lie close together.
        count = int(max(of_row.max(initial=low), of_write.max(initial=low))) - low + 1
        of_row, of_write = of_row - low, of_write - low
        first = np.zeros(count, np.int64)
        first[of_row[::-1]] = np.arange(len(rows))[::-1]  # What is written last, stays.
        place = np.searchsorted(self.marks, rows)
        differs = np.zeros(len(rows), np.bool_)
        for column in (place, view.session[rows], view.scope[rows]):
            differs |= column != column[first[of_row]]
        is_doubtful = np.zeros(count, np.bool_)
        is_doubtful[of_row[differs]] = True
        is_doubtful[of_write[self.times[part.place] != 1]] = True
        return Part(part.place[is_doubtful[of_write]], rows[is_doubtful[of_row]])


@dataclass(frozen=True, slots=True)
class _Torn:
    """One row for each lane and unit that is torn in it."""

    watermark: Int64s
    row: Int64s  # An event of the unit that had arrived.
    candidate: Int64s  # The place in `expected` of one that had not.
    closing: Int64s  # Witnesses: places of the lanes that newly close a unit of two or more.


def _torn_by(
    view: StreamView, units: _Units, ways: Sequence[_Way], receipt: _Receipt | None, part: Part
) -> list[_Torn]:
    """What is torn of one part of the units, in each way; only what is closed has witnesses of its own."""
    doubtful = part if receipt is None else receipt.doubtful(view, units, part)
    return [_torn(view, units, way, part if way.is_closing else doubtful) for way in ways]


def _torn(view: StreamView, units: _Units, way: _Way, part: Part) -> _Torn:
    """Where a place of a lane lies behind one event of a unit and before another.

    An event in a pair is *missing* from `opens` until it arrives in the lane's group of `whole_in`, and *present* once
    it arrived in that of `begun_in`. The earliest place at which one of the unit is present is `begun`; the unit is
    torn at the first place from there on at which another is missing. Later places need no look: what is superseded
    stays superseded, and what has arrived stays.
    """
    lanes, pairs = way.lanes, expected_pairs(view, way.lanes, part.place, way.high)
    closing = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, units.top[units.unit[pairs.candidate]]))
    opens = closing if way.is_closing else pairs.opens
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

    first = np.flatnonzero(present == begun[group])[::-1]  # The first of each group is written last, and stays.
    shown = np.full(len(group), -1, np.int64)
    shown[group[first]] = beginning[first]
    is_witness = (np.bincount(group)[group] > 1) & (closing < pairs.end)
    return _Torn(
        watermark=lanes.rows[place[chosen]],
        row=shown[group[chosen]],
        candidate=pairs.candidate[chosen],
        closing=distinct(closing[is_witness]) if way.is_closing else closing[:0],
    )


def _arrival(view: StreamView, lanes: Lanes, pairs: Pairs, group: Int64s, shown: Int64s) -> Int64s:
    """When each pair's write first arrived in its lane's group, by the rows `shown`; NEVER."""
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


def _highest_delivered(view: StreamView, lanes: Lanes) -> Int64s:
    """The highest position that each lane's session had delivered at the lane's last watermark."""
    if view.contract.atomic_unit == "epoch" and view.contract.position != "epoch":
        return np.full(len(lanes.last), NEVER)  # A unit of many positions may be torn far above what was delivered.
    d, count = view.deliveries, len(view.deliveries.kind)
    order = ascending(lanes.session, lanes.last)
    session = lanes.session[order]
    # Of which lane's end each event is the nearest before.
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL)))
    at = np.searchsorted(session * count + lanes.last[order], view.session[rows] * count + rows)
    is_before = np.append(session, -1)[at] == view.session[rows]
    highest = np.full(len(order), np.iinfo(np.int64).min)
    np.maximum.at(highest, at[is_before], d.position[rows[is_before]])
    result = np.empty(len(order), np.int64)
    result[order] = max_so_far(session, highest)
    return result


def first_of_each(group: Int64s, time: Int64s) -> Int64s:
    """For each group the index of its earliest row, these by time."""
    order = ascending(time, group)
    return order[first_rows(group[order])]
