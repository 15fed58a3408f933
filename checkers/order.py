"""Rules about the order of arrival: S02, positions do not fall; S27, one key's events stand in the source's order."""

import numpy as np

from checkers.ragged import distinct, first_of_each, ordered
from checkers.stream_index import codes, first_rows, max_so_far, segments
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import NEVER, OPEN, ROW, Int64s


def order_inversions(view: StreamView, ties: Ruling | None = None) -> Ruling:
    """S02 and S27: first deliveries in their session behind one that they precede; `ties` may be known already.

    S02: its position is below one before it, in one order scope (`order_key`). S27: at one position, where a key may
    have several events, it shows an older version than one before it, by the source's order of that key's versions, or
    by the order of writes in one operation. Events of different keys at one position have no order, and neither have
    those whose order at the source nobody knows. A marker that opens the session anew begins a new comparison: what
    follows was asked for. Where a session may repeat what it had skipped (`versions`), an old position tells nothing.
    A witness is an event compared with one before it. O(n log n).
    """
    ties = tied_inversions(view) if ties is None else ties
    rows = _compared(view)
    segment = codes(_segments(view, rows), _order_scope(view)[rows])
    return _first([_inverted(segment, view.deliveries.position[rows], rows), ties])


def tied_inversions(view: StreamView) -> Ruling:
    """The part about events of one key at one position (S27): first by version, then by the place in one operation."""
    d, w, rows = view.deliveries, view.writes, _compared(view)
    rows = rows[view.match[rows] >= 0]
    key = codes(_segments(view, rows), d.key[rows], d.position[rows])
    tied = np.flatnonzero(np.bincount(key, minlength=1)[key] > 1)  # Mostly a key has one row at a position.
    rows, key = rows[tied], key[tied]
    write = view.expected[view.match[rows]]
    is_ranked = w.version[write] != NEVER
    by_version = _inverted(key[is_ranked], w.version[write[is_ranked]], rows[is_ranked])
    return _first([by_version, _inverted(codes(key, w.op[write]), w.ordinal[write], rows)])


def _compared(view: StreamView) -> Int64s:
    """The rows that are compared."""
    contract = view.contract
    if contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session"):
        return np.zeros(0, np.int64)
    rows = view.firsts(view.session)
    result: Int64s = rows[view.deliveries.kind[rows] == ROW]
    return result


def _segments(view: StreamView, rows: Int64s) -> Int64s:
    """In which part each row is, from one opening of a session to the next."""
    return segments(view.session, view.deliveries.kind == OPEN, rows)


def _order_scope(view: StreamView) -> Int64s:
    """What each row is ordered in, inside its session."""
    d, contract = view.deliveries, view.contract
    if contract.order_key == "key":
        return d.key
    if contract.order_key == "partition" or not contract.is_position_global:
        return d.span
    return np.zeros(len(d.kind), np.int64)


def _inverted(group: Int64s, height: Int64s, rows: Int64s) -> Ruling:
    """Which `rows`, by time, are lower than one before them in their group, beside the highest there.

    Equal heights have no order: what only repeats the highest so far, is not compared.
    """
    order, inside = ordered(group)
    height, rows = height[order], rows[order]
    reached = max_so_far(inside, height)
    is_first = first_of_each(inside)
    is_raised = is_first | first_of_each(reached)
    inverted = np.flatnonzero(height < reached)
    raised = np.flatnonzero(is_raised)
    highest = rows[raised[np.searchsorted(raised, inverted) - 1]]
    is_told = is_raised & ~is_first
    is_told[inverted] = True
    told = rows[is_told]
    return Ruling.of_events(rows[inverted], highest, witnesses=len(told), told=told)


def _first(parts: list[Ruling]) -> Ruling:
    """Each violation once, by time, as the first of these has it; and all that was compared."""
    row, earlier = (np.concatenate([getattr(part, name) for part in parts]) for name in ("watermark", "row"))
    told = distinct(np.concatenate([part.told for part in parts if part.told is not None]))
    chosen = first_rows(row)
    chosen = chosen[ordered(row[chosen])[0]]
    return Ruling.of_events(row[chosen], earlier[chosen], witnesses=len(told), told=told)
