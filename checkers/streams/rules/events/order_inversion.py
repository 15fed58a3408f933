"""S02 and S27, order-inversion. S02: positions do not fall. S27: one key's events come in the source's order."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from checkers.columns.blocks import piece_from
from checkers.columns.index import GroupIndex, codes, first_rows, max_so_far, segments
from checkers.columns.runs import distinct, first_of_each, ordered
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import after, both, first, place, shown
from checkers.streams.rule import Cut, OfLog, Rule, per_key
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import SHARED
from harness.core.columns import NEVER, OPEN, Int64s

INVERSION: Final = "order-inversion"


def order_inversions(view: StreamView) -> Ruling:
    """S02 and S27: first deliveries in their session that come after an event which they should precede.

    S02: its position is below one before it, in one order scope (`order_key`). S27: at one position, where a key may
    have several events, it shows an older version than one before it, by the source's order of that key's versions, or
    by the order of writes in one operation. Events of different keys at one position have no order, and neither have
    those whose order at the source is unknown. A marker that opens the session anew begins a new comparison, because
    the session requested what follows. If a session may repeat what it had skipped (`versions`), an old position proves
    nothing. A witness is an event compared with one before it. O(n log n).
    """
    return _first([*_inverted_by_position(view, _compared(view)), tied_inversions(view)])


def _inverted_by_position(view: StreamView, rows: Int64s) -> Iterator[Ruling]:
    """The rulings of S02 for those rows, piece by piece.

    Each piece starts with the highest row of each scope so far.
    """
    d = view.deliveries
    opened = np.flatnonzero(d.kind == OPEN)
    openings = GroupIndex(view.session[opened], opened)
    highest, begin = rows[:0], 0
    while begin < len(rows):
        # A piece has at least as many rows as there are scopes, so that the scopes do not cost more than the rows.
        piece = piece_from(begin, len(rows), least=len(highest))
        part = np.append(highest, rows[piece])
        session = view.session[part]
        scope = codes(session, openings.place(session, part, above=True), _order_scope(view, part))
        ruling, highest = _inverted(scope, d.position[part], part)
        yield ruling
        begin = piece.stop


@per_key("row")
def tied_inversions(view: StreamView) -> Ruling:
    """S27, for events of one key at one position: first by version, then by the place in one operation."""
    d, w, rows = view.deliveries, view.writes, _compared(view)
    rows = rows[view.match[rows] >= 0]
    key = codes(d.key[rows], d.position[rows])
    rows = rows[np.bincount(key, minlength=1)[key] > 1]  # Usually a key has one row at a position.
    key = codes(_segments(view, rows), d.key[rows], d.position[rows], _home(view, rows))
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
    """A number for each row that ascends by session and by the session's openings so far."""
    return segments(view.session, view.deliveries.kind == OPEN, rows)


def _order_scope(view: StreamView, rows: Int64s) -> Int64s:
    """For each of `rows` the scope, inside its session, in which order is promised."""
    d, contract = view.deliveries, view.contract
    if contract.order_key == "key":
        return d.key[rows] if contract.is_position_global else codes(d.key[rows], _home(view, rows))
    if contract.order_key == "partition" or not contract.is_position_global:
        return d.span[rows]
    return np.zeros(len(rows), np.int64)


def _home(view: StreamView, rows: Int64s) -> Int64s:
    """The partition to which the position of each of `rows` belongs; 0 for all if positions are global."""
    return np.zeros(len(rows), np.int64) if view.contract.is_position_global else view.deliveries.span[rows]


def _inverted(group: Int64s, height: Int64s, rows: Int64s) -> tuple[Ruling, Int64s]:
    """The `rows`, by time, that are lower than an earlier one of their group, each with the highest row before it.

    Second, the highest row of each group at the end. Equal heights have no order: a row that repeats the highest is not
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
    is_witness = is_raised & ~is_first
    is_witness[inverted] = True
    witnesses = distinct(rows[is_witness])  # Part by part this costs less than at the end.
    ruling = Ruling.of_events(rows[inverted], highest, witnesses=len(witnesses), witness_rows=witnesses)
    return ruling, rows[raised[ends]]


def _first(parts: list[Ruling]) -> Ruling:
    """Each violation once, by time, as the first part with it reports it; and all rows that were compared."""
    row, earlier = (np.concatenate([getattr(part, name) for part in parts]) for name in ("watermark", "row"))
    witnesses = distinct(np.concatenate([part.witness_rows for part in parts if part.witness_rows is not None]))
    chosen = first_rows(row)
    chosen = chosen[ordered(row[chosen])[0]]
    return Ruling.of_events(row[chosen], earlier[chosen], witnesses=len(witnesses), witness_rows=witnesses)


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    arrived = f"{first(mark, name)} reached {example.subscriber} {after(event, mark)} after {shown(event, name)}"
    if event.position == mark.position:
        return f"{arrived}: both are{place(mark, name)}, where the source wrote them the other way round."
    below = f"its {name.forms.position(mark.position)} is below {name.forms.digits(event.position)}"
    return f"{arrived}, but {below}: they came in the wrong order."


ORDER_INVERSION: Final = Rule(
    name=INVERSION,
    id="S02",
    rank=60,
    anomaly=SHARED[INVERSION],
    witness="a first delivery compared with one before it",
    is_online=True,
    cut=Cut.ROW,
    scope=OfLog(order_inversions, _sentence, after=(tied_inversions,)),
)
