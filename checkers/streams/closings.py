"""Expected writes paired with the lanes that close them, and those that never arrived: inputs of several rules."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.facts import fact
from checkers.columns.index import earliest_of_each
from checkers.columns.runs import distinct
from checkers.streams.rule import per_key
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Lanes, Pairs, Ruling, StreamView, pairs_of
from harness.core.columns import NEVER, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: above all positions.


class Closings(Struct, frozen=True, kw_only=True):
    """Pairs of a lane and an expected write that the lane closes. Arrays (m,)."""

    lane: Int64s
    candidate: Int64s  # A place in `expected`.
    place: Int64s  # The first place of the lane that closes it.
    arrival: Int64s  # The time of its arrival in the lane's scope; NEVER if it did not arrive.


@fact
def closings(view: StreamView) -> Closings:
    """The closings of a view. O(n log n)."""
    lanes, position = view.lanes, view.writes.position[view.expected]
    pairs = expected_pairs(view, lanes, np.arange(len(view.expected)), lanes.top())
    place = np.maximum(pairs.opens, closing_place(view, lanes, pairs.lane, position[pairs.candidate]))
    is_closed = place < pairs.end
    lane, candidate = pairs.lane[is_closed], pairs.candidate[is_closed]
    arrival = view.first_times(view.scope).at(view.of_write(lanes.scope[lane], candidate))
    return Closings(lane=lane, candidate=candidate, place=place[is_closed], arrival=arrival)


@per_key("write")
def missing_events(view: StreamView) -> Ruling:
    """Expected writes that a watermark closes in live coverage, never delivered in its scope nor superseded.

    A write that came later is left to S05 or S06. A witness is a watermark that newly closes an expected write in live
    coverage. Each write is reported once per scope, under the first watermark that closes it. O(n log n).
    """
    lanes, closed = view.lanes, closings(view)
    candidate, place = closed.candidate, closed.place
    scope, watermark = lanes.scope[closed.lane], lanes.rows[place]
    never = np.flatnonzero(closed.arrival == NEVER)
    versions, height = Versions.of_expected(view, candidate[never]), lanes.height[place[never]]
    is_replaced = superseded(
        view, versions, group=view.scope, watermark=watermark[never], height=height, before=np.full(len(never), NEVER)
    )
    missing = never[~is_replaced]
    chosen = missing[earliest_of_each(view.of_write(scope[missing], candidate[missing]), watermark[missing])]
    closing = lanes.rows[distinct(place)]
    return Ruling.of_writes(
        watermark[chosen], view.expected[candidate[chosen]], witnesses=len(closing), witness_rows=closing
    )


class Part(Struct, frozen=True):
    """Some expected writes, as places in `expected`, and the rows of the log that show them, both ascending."""

    place: Int64s
    shown: Int64s


def expected_pairs(view: StreamView, lanes: Lanes, places: Int64s, high: Int64s) -> Pairs:
    """Pairs of each lane with the expected writes at `places` that it covers; candidates are places in `expected`."""
    write = view.expected[places]
    w = view.writes
    pairs = pairs_of(
        view, lanes, key=w.key[write], span=w.span[write], position=w.position[write], scope=None, high=high
    )
    return replace(pairs, candidate=places[pairs.candidate])


def closing_place(view: StreamView, lanes: Lanes, lane: Int64s, position: Int64s) -> Int64s:
    """The first place of each lane whose watermark closes the position, inclusive or exclusive as `closed` says."""
    return lanes.by_height.place(lane, position, above=view.contract.closed == "<")
