"""Rules about the order of arrival: S02, positions do not fall; S27, one key's events come in the source's order."""

from collections.abc import Iterator

import numpy as np

from checkers.columns.blocks import BLOCK_ROWS
from checkers.columns.index import GroupIndex, codes, first_rows, max_so_far, segments
from checkers.columns.runs import distinct, first_of_each, ordered
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER, OPEN, Int64s


def order_inversions(view: StreamView, ties: Ruling | None = None, *, block_rows: int = BLOCK_ROWS) -> Ruling:
    """S02 and S27: first deliveries in their session after one that they precede; `ties` may be known already.

    S02: its position is below one before it, in one order scope (`order_key`). S27: at one position, where a key may
    have several events, it shows an older version than one before it, by the source's order of that key's versions, or
    by the order of writes in one operation. Events of different keys at one position have no order, and neither have
    those whose order at the source is unknown. A marker that opens the session anew begins a new comparison, because
    the session requested what follows. If a session may repeat what it had skipped (`versions`), an old position proves
    nothing. A witness is an event compared with one before it. O(n log n).
    """
    ties = tied_inversions(view) if ties is None else ties
    parts = list(_inverted_by_position(view, _compared(view), block_rows))
    return _first([*parts, ties])


def _inverted_by_position(view: StreamView, rows: Int64s, block_rows: int) -> Iterator[Ruling]:
    """S02 for those rows, block by block, each after the highest of each order scope so far."""
    d = view.deliveries
    opened = np.flatnonzero(d.kind == OPEN)
    openings = GroupIndex(view.session[opened], opened)
    highest, begin = rows[:0], 0
    while begin < len(rows):
        # At least as many rows as order scopes, so that the scopes do not cost more than the rows.
        end = begin + max(block_rows, len(highest))
        part = np.append(highest, rows[begin:end])
        session = view.session[part]
        scope = codes(session, openings.place(session, part, above=True), _order_scope(view, part))
        ruling, highest = _inverted(scope, d.position[part], part)
        yield ruling
        begin = end


def tied_inversions(view: StreamView) -> Ruling:
    """S27, for events of one key at one position: first by version, then by the place in one operation."""
    d, w, rows = view.deliveries, view.writes, _compared(view)
    rows = rows[view.match[rows] >= 0]
    key = codes(d.key[rows], d.position[rows])
    rows = rows[np.bincount(key, minlength=1)[key] > 1]  # Usually a key has one row at a position.
    key = codes(_segments(view, rows), d.key[rows], d.position[rows])
    write = view.expected[view.match[rows]]
    is_ranked = w.version[write] != NEVER
    by_version, _ = _inverted(key[is_ranked], w.version[write[is_ranked]], rows[is_ranked])
    by_number, _ = _inverted(codes(key, w.op[write]), w.ordinal[write], rows)
    return _first([by_version, by_number])


def _compared(view: StreamView) -> Int64s:
    contract = view.contract
    if contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session"):
        return np.zeros(0, np.int64)
    return view.new_rows()


def _segments(view: StreamView, rows: Int64s) -> Int64s:
    """The segment of each row, from one opening of a session to the next."""
    return segments(view.session, view.deliveries.kind == OPEN, rows)


def _order_scope(view: StreamView, rows: Int64s) -> Int64s:
    """The order scope of each of `rows`, inside its session."""
    d, contract = view.deliveries, view.contract
    if contract.order_key == "key":
        return d.key[rows]
    if contract.order_key == "partition" or not contract.is_position_global:
        return d.span[rows]
    return np.zeros(len(rows), np.int64)


def _inverted(group: Int64s, height: Int64s, rows: Int64s) -> tuple[Ruling, Int64s]:
    """The `rows`, by time, that are lower than an earlier one of their group, with the highest one before each.

    Second, the highest row of each group at the end. Equal heights have no order: repeating the highest is not
    compared.
    """
    order, inside = ordered(group)
    height, rows = height[order], rows[order]
    reached = max_so_far(inside, height)
    is_first = first_of_each(inside)
    is_raised = is_first | first_of_each(reached)
    inverted = np.flatnonzero(height < reached)
    raised = np.flatnonzero(is_raised)
    highest = rows[raised[np.searchsorted(raised, inverted) - 1]]
    ends = np.append(np.flatnonzero(is_first[raised]), len(raised))[1:] - 1
    is_told = is_raised & ~is_first
    is_told[inverted] = True
    told = distinct(rows[is_told])  # Part by part this costs less than at the end.
    return Ruling.of_events(rows[inverted], highest, witnesses=len(told), told=told), rows[raised[ends]]


def _first(parts: list[Ruling]) -> Ruling:
    """Each violation once, by time, as the first part reports it; and all rows that were compared."""
    row, earlier = (np.concatenate([getattr(part, name) for part in parts]) for name in ("watermark", "row"))
    told = distinct(np.concatenate([part.told for part in parts if part.told is not None]))
    chosen = first_rows(row)
    chosen = chosen[ordered(row[chosen])[0]]
    return Ruling.of_events(row[chosen], earlier[chosen], witnesses=len(told), told=told)
