"""Expected writes paired with the lanes that close them: an input that several rules share."""

from dataclasses import dataclass, replace

import numpy as np

from checkers.columns.facts import fact
from checkers.streams.view import Lanes, Pairs, StreamView, pairs_of
from harness.core.columns import NEVER, Int64s

ALL_CLOSED = NEVER - 1  # The height of a boundary that is no watermark: above all positions.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
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


@dataclass(frozen=True, slots=True)
class Part:
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
