"""S10 torn-unit: every unit that a watermark closes has arrived whole."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns import runs
from checkers.columns.blocks import by_part, part_count, pieces
from checkers.columns.facts import fact
from checkers.columns.index import ascending, codes, earliest_of_each, first_places, is_kind, max_so_far
from checkers.columns.runs import distinct, groups, is_ascending, spans
from checkers.columns.table import concat
from checkers.history.names import Names
from checkers.history.units import NO_KEY, unit_of
from checkers.streams.closings import ALL_CLOSED, Part, closing_place, expected_pairs
from checkers.streams.examples import Example
from checkers.streams.findings import announced, both, later, lost, place, shown
from checkers.streams.rule import Cut, OfUnits, Rule
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Lanes, Pairs, Ruling, StreamView, announced_view, lanes_of
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, COMMIT, NEVER, ROW, WATERMARK, Int64s
from harness.core.wording import counted

# A commit event with such a number of rows is none of a batch; the reader of a stream found it.
LACKS_A_ROW: Final = -2
CAME_AGAIN: Final = -3  # For `duplicate-event`.


def torn_units(view: StreamView) -> Ruling:
    """S10: watermarks at which some events of a unit had arrived, and others, in live coverage, had not.

    The watermark must close the unit. If the state at a watermark is all that was delivered before it (`cut:
    delivery`), any watermark tears a unit that its own session has begun. For batches and responses, the end of one,
    which a commit event marks, tears a unit in the same manner. A unit is an operation, or an epoch. A witness is a
    watermark that newly closes a unit of two events or more in live coverage. Each unit is reported once per scope, at
    the first watermark that tears it. Works by parts of the units. O(n log n).
    """
    if view.contract.atomic_unit == "none":
        return Ruling.nothing()  # Each write is a unit by itself.
    ends, whole = _ends(view), _torn_inside(view)
    order = ascending(np.append(whole.watermark, ends.watermark))
    return Ruling(
        watermark=np.append(whole.watermark, ends.watermark)[order],
        row=np.append(whole.row, ends.row)[order],
        write=np.append(whole.write, ends.write)[order],
        witnesses=whole.witnesses + ends.witnesses,
    )


def _ends(view: StreamView) -> Ruling:
    """Ends of units that name the unit and its size, of which no row at all came; and all such ends.

    An end of 0 rows stands for one that is missing: a later unit ended, and this one never did. An end of -1 rows came
    in the wrong place among begins and ends, and one of -2 is a row behind which its unit lacks one.
    """
    d = view.deliveries
    ends = np.flatnonzero((d.kind == COMMIT) & (d.unit != NEVER) & (d.unit_rows != NEVER))
    ends = ends[d.unit_rows[ends] != CAME_AGAIN]
    came = np.isin(d.unit[ends], d.unit[is_kind(d.kind, (ROW, BACKFILL))])
    return Ruling.of_events(ends[~came | (d.unit_rows[ends] <= 0)], witnesses=len(ends))


def _torn_inside(view: StreamView) -> Ruling:
    """Units of which some events had arrived at a boundary, and others had not."""
    units, boundaries = _Units.of(view), list(_boundaries(view))
    marks = distinct(np.concatenate([boundary.lanes.rows for boundary in boundaries]))
    look = partial(_torn_by, view, units, boundaries, marks)
    found = list(by_part(look, units.parts(view)))
    torn = concat([each.torn[kind] for kind in range(len(boundaries)) for each in found])
    chosen = earliest_of_each(codes(view.scope[torn.watermark], units.unit[torn.candidate]), torn.watermark)
    return Ruling(
        watermark=torn.watermark[chosen],
        row=torn.row[chosen],
        write=view.expected[torn.candidate[chosen]],
        witnesses=len(distinct(np.concatenate([each.closing for each in found]))),
    )


class _Boundary(Struct, frozen=True, kw_only=True):
    """The boundaries of one kind: their lanes, and the scopes (n,) in which units begin and must be whole."""

    lanes: Lanes
    high: Int64s  # (lanes,) the highest position that each lane covers
    begun_in: Int64s
    whole_in: Int64s
    is_closing: bool


def _boundaries(view: StreamView) -> Iterator[_Boundary]:
    """Watermarks that close a unit; if the contract says so, also any watermark, and the end of a batch."""
    d, lanes, session = view.deliveries, view.lanes, view.session
    yield _Boundary(lanes=lanes, high=lanes.top(), begun_in=view.scope, whole_in=view.scope, is_closing=True)
    if view.contract.cut == "delivery":
        high = _highest_delivered(view, lanes)
        yield _Boundary(lanes=lanes, high=high, begun_in=session, whole_in=view.scope, is_closing=False)
    if view.contract.atomic_unit in ("batch", "response"):
        rows = np.flatnonzero(d.kind == COMMIT)
        ends = lanes_of(d, session, view.scope, rows, np.full(len(view.scope), ALL_CLOSED))
        high = _highest_delivered(view, ends)
        yield _Boundary(lanes=ends, high=high, begun_in=session, whole_in=session, is_closing=False)


class _Units(Struct, frozen=True):
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

    def parts(self, view: StreamView) -> list[Part]:
        """The writes of units with two events or more, with the rows that show them, in parts of about a block.

        O(n).
        """
        count = part_count(len(self.unit) + len(view.match))
        of_unit = np.arange(len(self.top)) * count // max(1, len(self.top))
        of_unit[np.bincount(self.unit, minlength=len(of_unit)) < 2] = count  # Units of one event are in no part.
        # Small numbers, for there is one for each row of the log; the last is that of rows that show no write.
        part = np.append(of_unit, count).astype(np.min_scalar_type(count))[np.append(self.unit, len(of_unit))]
        places, shown = (groups(of, count + 1)[:count] for of in (part[:-1], part[view.match]))
        return [Part(*each) for each in zip(places, shown, strict=True)]

    def doubtful(self, view: StreamView, marks: Int64s, part: Part) -> Part:
        """The units of a part that may be torn.

        In all others each event came once, all in one session and scope, and between the same two of `marks`, which are
        the rows of all lanes.
        """
        rows, shown = part.shown, view.match[part.shown]
        of_row, of_write = self.unit[shown], self.unit[part.place]
        low = int(of_write.min(initial=NEVER))  # A part's units lie close together.
        is_doubtful = np.zeros(int(of_write.max(initial=low)) - low + 1, np.bool_)
        of_row, of_write = of_row - low, of_write - low
        first = first_places(of_row, len(is_doubtful))[of_row]
        for column in (np.searchsorted(marks, rows), view.session[rows], view.scope[rows]):
            is_doubtful[of_row[column != column[first]]] = True
        shown.sort()
        if not np.array_equal(shown, part.place):
            begin, end = spans(shown, part.place)
            is_doubtful[of_write[end - begin != 1]] = True
        return Part(part.place[is_doubtful[of_write]], rows[is_doubtful[of_row]])


class _Torn(Struct, frozen=True):
    """Pairs of a lane and a unit that is torn in it."""

    watermark: Int64s
    row: Int64s  # An event of the unit that had arrived.
    candidate: Int64s  # The place in `expected` of one that had not.


class _Found(Struct, frozen=True):
    """The torn units of one part by boundary, and the witnesses: places that newly close units of several events."""

    torn: list[_Torn]
    closing: Int64s


def _torn_by(view: StreamView, units: _Units, boundaries: Sequence[_Boundary], marks: Int64s, part: Part) -> _Found:
    """The result for one part of the units. The first boundary has the watermarks that close a unit."""
    doubtful = units.doubtful(view, marks, part)
    return _Found(
        [_torn(view, units, boundary, doubtful) for boundary in boundaries],
        _newly_closing(view, units, boundaries[0], part),
    )


def _newly_closing(view: StreamView, units: _Units, boundary: _Boundary, part: Part) -> Int64s:
    """The places of lanes that newly close a unit with two events or more in live coverage."""
    pairs = expected_pairs(view, boundary.lanes, part.place, boundary.high)
    place = _closing(view, units, boundary, pairs)
    group = codes(pairs.lane, units.unit[pairs.candidate])
    return distinct(place[(np.bincount(group)[group] > 1) & (place < pairs.end)])


def _closing(view: StreamView, units: _Units, boundary: _Boundary, pairs: Pairs) -> Int64s:
    """The first place at which each pair's key is covered and its unit is closed."""
    top = units.top[units.unit[pairs.candidate]]
    return np.maximum(pairs.opens, closing_place(view, boundary.lanes, pairs.lane, top))


def _torn(view: StreamView, units: _Units, boundary: _Boundary, part: Part) -> _Torn:
    """Units for which a place of a lane lies after one event of the unit and before another.

    An event in a pair is *missing* from `opens` until it arrives in the lane's group of `whole_in`, and *present* once
    it arrived in that of `begun_in`. The earliest place at which one event of the unit is present is `begun`; the unit
    is torn at the first place from there on at which another is missing. Later places need no check: superseded events
    stay superseded, and arrived ones stay.
    """
    lanes, pairs = boundary.lanes, expected_pairs(view, boundary.lanes, part.place, boundary.high)
    opens = _closing(view, units, boundary, pairs) if boundary.is_closing else pairs.opens
    arrival = _arrival(view, lanes, pairs, boundary.whole_in, part.shown)
    beginning = (
        arrival
        if boundary.begun_in is boundary.whole_in
        else _arrival(view, lanes, pairs, boundary.begun_in, part.shown)
    )

    group = codes(pairs.lane, units.unit[pairs.candidate])
    present = np.maximum(opens, lanes.by_time.place(pairs.lane, beginning))
    begun = np.full(len(group), NEVER, np.int64)
    np.minimum.at(begun, group, present)
    place = np.maximum(begun[group], opens)
    torn = np.flatnonzero(place < np.minimum(lanes.by_time.place(pairs.lane, arrival), pairs.end))
    watermark, height = lanes.rows[place[torn]], lanes.height[place[torn]]
    versions = Versions.of_expected(view, pairs.candidate[torn])
    is_replaced = superseded(
        view, versions, group=boundary.whole_in, watermark=watermark, height=height, before=watermark
    )
    torn = torn[~is_replaced]
    chosen = torn[earliest_of_each(group[torn], place[torn])]

    first = np.flatnonzero(present == begun[group])[::-1]  # The first of each group is written last, and remains.
    shown = np.full(len(group), -1, np.int64)
    shown[group[first]] = beginning[first]
    return _Torn(
        watermark=lanes.rows[place[chosen]],
        row=shown[group[chosen]],
        candidate=pairs.candidate[chosen],
    )


def _arrival(view: StreamView, lanes: Lanes, pairs: Pairs, group: Int64s, shown: Int64s) -> Int64s:
    """The first arrival of each pair's write in its lane's group, among the rows `shown`; NEVER if there is none."""
    return view.first_times(group, shown).at(view.of_write(group[lanes.last[pairs.lane]], pairs.candidate))


def _highest_delivered(view: StreamView, lanes: Lanes) -> Int64s:
    """For each lane the highest position that its session had delivered before the lane's last watermark."""
    if view.contract.atomic_unit == "epoch" and view.contract.position != "epoch":
        return np.full(len(lanes.last), NEVER)  # A unit of many positions may be torn far above the delivered ones.
    d, count = view.deliveries, len(view.deliveries.kind)
    order = ascending(lanes.session, lanes.last)
    session = lanes.session[order]
    ends = session * count + lanes.last[order]
    highest = np.full(len(order), np.iinfo(np.int64).min)
    for piece in pieces(count):
        # The lane end that follows each event.
        rows = piece.start + np.flatnonzero(is_kind(d.kind[piece], (ROW, BACKFILL)))
        at = np.searchsorted(ends, view.session[rows] * count + rows)
        is_before = np.append(session, -1)[at] == view.session[rows]
        np.maximum.at(highest, at[is_before], d.position[rows[is_before]])
    result = np.empty(len(order), np.int64)
    result[order] = max_so_far(session, highest)
    return result


@fact
def units_view(view: StreamView) -> StreamView:
    """The view in which units are judged. Without a source it has only the units that rows name.

    Without a boundary nothing is judged in it, so that no unit is needed.
    """
    has_boundary = bool(is_kind(view.deliveries.kind, (WATERMARK, COMMIT)).any())
    return announced_view(view.deliveries, view.contract) if has_boundary and not len(view.log.writes.op) else view


def _sentence(example: Example, name: Names) -> str:
    if example.event is None:
        unit = name.unit(example.watermark.unit)
        if example.watermark.unit_rows == 0:
            return f"Transaction {unit} never ended at {example.subscriber}."
        if example.watermark.unit_rows == LACKS_A_ROW:
            return (
                f"Transaction {unit} lacks a row at {example.subscriber}: the numbers of its rows in their table jump."
            )
        if example.watermark.unit_rows < 0:
            return f"The end of transaction {unit} did not reach {example.subscriber} right after its begin."
        rows = counted(example.watermark.unit_rows, "row")
        return f"The end of transaction {unit} names {rows}, and none of them reached {example.subscriber}."
    (mark, event), missed = both(example), lost(example)
    if missed.key == NO_KEY:
        rest = f"but not every row that unit {name.unit(missed.op)} has"
    else:
        end = "never came" if missed.came is None else f"came {later(mark, missed.came)}"
        rest = f"but {shown(missed, name)} of the same unit had not: it {end} (operation {missed.op})"
    boundary = f"A batch ended at {example.subscriber}" if mark.kind == COMMIT else announced(example, name)
    return f"{boundary} when {shown(event, name)}{place(event, name, beside=mark)} had arrived, {rest}."


TORN_UNIT: Final = Rule(
    name="torn-unit",
    id="S10",
    rank=50,
    anomaly=Anomaly(
        meaning="A watermark was announced when part of a unit had arrived, and part had not.", cause=Cause.TORN
    ),
    witness="a watermark that newly closes a unit of two events or more in live coverage",
    is_online=True,
    cut=Cut.UNIT,
    scope=OfUnits(torn_units, _sentence, units_view),
)
