"""Rules about the order of arrival: S02, positions do not fall; S27, one key's events stand in the source's order."""

from dataclasses import dataclass

import numpy as np

from checkers.ragged import distinct, ordered
from checkers.stream_index import GroupIndex, codes, count_so_far, first_rows, max_so_far
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import NEVER, OPEN, ROW, Bools, Int64s


def order_inversions(view: StreamView) -> Ruling:
    """S02 and S27: first deliveries in their session behind one that they precede.

    S02: its position is below one before it, in one order scope (`order_key`). S27: at one position, where a key may
    have several events, it shows an older version than one before it, by the source's order of that key's versions, or
    by the order of writes in one operation. Events of different keys at one position have no order, and neither have
    those whose order at the source nobody knows. A marker that opens the session anew begins a new comparison: what
    follows was asked for. Where a session may repeat what it had skipped (`versions`), an old position tells nothing.
    A witness is an event compared with one before it. O(n log n).
    """
    contract = view.contract
    is_silent = contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session")
    rows = view.firsts(view.session)
    rows = rows[view.deliveries.kind[rows] == ROW]
    found = [_inverted(rows[:0], rows[:0], rows[:0])] if is_silent else list(_comparisons(view, rows))
    row = np.concatenate([each.row for each in found])
    earlier = np.concatenate([each.earlier for each in found])
    chosen = first_rows(row)
    chosen = chosen[ordered(row[chosen])[0]]
    write = np.full(len(chosen), -1, np.int64)
    witnesses = len(distinct(np.concatenate([each.compared for each in found])))
    return Ruling(watermark=row[chosen], row=earlier[chosen], write=write, witnesses=witnesses)


@dataclass(frozen=True, slots=True)
class _Inverted:
    row: Int64s
    earlier: Int64s  # The highest row before each, which it should precede.
    compared: Int64s


def _comparisons(view: StreamView, rows: Int64s) -> tuple[_Inverted, ...]:
    """First by position, then by version, then by the place in one operation."""
    d, w = view.deliveries, view.writes
    segment = codes(view.session, count_so_far(view.session, d.kind == OPEN))[rows]
    by_position = _inverted(codes(segment, _order_scope(view)[rows]), d.position[rows], rows)
    matched = np.flatnonzero(view.match[rows] >= 0)
    write, shown = view.expected[view.match[rows[matched]]], rows[matched]
    key = codes(segment[matched], d.key[shown], d.position[shown])
    tied = np.flatnonzero(np.bincount(key, minlength=1)[key] > 1)  # Mostly a key has one row at a position.
    write, shown, key = write[tied], shown[tied], key[tied]
    is_ranked = w.version[write] != NEVER
    by_version = _inverted(key[is_ranked], w.version[write[is_ranked]], shown[is_ranked])
    by_ordinal = _inverted(codes(key, w.op[write]), w.ordinal[write], shown)
    return by_position, by_version, by_ordinal


def _order_scope(view: StreamView) -> Int64s:
    """What each row is ordered in, inside its session."""
    d, contract = view.deliveries, view.contract
    if contract.order_key == "key":
        return d.key
    if contract.order_key == "partition" or not contract.is_position_global:
        return d.span
    return np.zeros(len(d.kind), np.int64)


def _inverted(group: Int64s, height: Int64s, rows: Int64s) -> _Inverted:
    """Which `rows`, by time, are lower than one before them in their group. Equal heights have no order."""
    if len(rows) == 0:
        return _Inverted(rows, rows, rows)
    reached = max_so_far(group, height)
    is_inverted = height < reached
    earlier = GroupIndex(group, height, rows).first(group[is_inverted], reached[is_inverted])
    is_first = _is_first(group)
    is_repeated = ~_is_first(group, height) & ~is_inverted
    return _Inverted(rows[is_inverted], earlier, rows[~is_first & ~is_repeated])


def _is_first(*columns: Int64s) -> Bools:
    result = np.zeros(len(columns[0]), np.bool_)
    result[first_rows(*columns)] = True
    return result
