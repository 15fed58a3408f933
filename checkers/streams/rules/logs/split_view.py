"""S20: sessions that completed the same position saw the same there.

Each task computes one hash of what a session saw at a position, and the positions that it completed. The driver holds
these hashes, two for each session and position with events, and never an event. The event of a finding is fetched
afterwards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from checkers.columns.blocks import BLOCK_ROWS, pieces
from checkers.columns.index import GroupIndex, Places, ascending, codes, count_so_far, expand
from checkers.columns.runs import distinct
from checkers.streams.coverage import is_marker
from checkers.streams.view import StreamView
from harness.core.columns import BACKFILL, GAP, NEVER, OPEN, ROW, Bools, Int64s

_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """The views of a log's sessions: s sessions, i intervals, e pairs of a session and a position with events.

    `owner` (i,) and `session` (e,) are places in the first two columns. An interval is low < position <= high.
    """

    subscriber: Int64s  # (s,)
    number: Int64s  # (s,) the session's own
    owner: Int64s
    low: Int64s
    high: Int64s
    session: Int64s
    position: Int64s
    content: Int64s  # (e,) the same for the same events, in any order
    order: Int64s  # (e,) the same for the same events, in the same order of each key; 0 without an order

    def only(self, which: Bools) -> "Views":
        """The views with only those pairs."""
        columns = {name: getattr(self, name)[which] for name in ("session", "position", "content", "order")}
        return replace(self, **columns)


@dataclass(frozen=True, slots=True, order=True)
class Sighted:
    """A session at a position."""

    subscriber: int
    number: int
    position: int


@dataclass(frozen=True, slots=True)
class Split:
    """Two subscribers whose sessions differ: the first such position, and the number of them."""

    one: Sighted
    other: Sighted
    count: int


def views_of(view: StreamView, *, is_alone: bool = False, block_rows: int = BLOCK_ROWS) -> Views:
    """The views of sessions that follow the whole stream from a known position, without a snapshot. O(n log n).

    If there is no other log (`is_alone`), only at positions that several of its sessions completed. Empty if sessions
    may legally differ: versions may be skipped, or positions are not global.
    """
    d = view.deliveries
    first = np.zeros(int(view.session.max(initial=-1)) + 1, np.int64)
    for piece in reversed(list(pieces(len(view.session), block_rows))):
        first[view.session[piece][::-1]] = np.arange(piece.start, piece.stop)[::-1]  # The last write remains.
    owner, low, high = _completed(view)
    if view.contract.versions != "every" or not view.contract.is_position_global:
        owner, low, high = owner[:0], low[:0], high[:0]
    least = 2 if is_alone else 0
    rows = _rows_of(view, owner, lambda position: _times_completed(position, low, high) >= least, block_rows)
    place = codes(view.session[rows], d.position[rows])
    content, order = _hashes(view, rows, place)
    shown = np.zeros(len(content), np.int64)
    shown[place] = rows
    return Views(
        subscriber=d.subscriber[first],
        number=d.session[first],
        owner=owner,
        low=low,
        high=high,
        session=view.session[shown],
        position=d.position[shown],
        content=content,
        order=order,
    )


def _rows_of(view: StreamView, owner: Int64s, is_meant: Callable[[Int64s], Bools], block_rows: int) -> Int64s:
    """The rows that are first deliveries to one of those sessions, at positions for which `is_meant` is true."""
    d = view.deliveries
    is_owner = np.zeros(int(view.session.max(initial=-1)) + 1, np.bool_)
    is_owner[owner] = True
    every = view.firsts(view.session) if len(owner) else owner
    parts = [every[:0]]
    for piece in pieces(len(every), block_rows):
        rows = every[piece]
        parts.append(rows[(d.kind[rows] == ROW) & is_owner[view.session[rows]] & is_meant(d.position[rows])])
    return np.concatenate(parts)


def splits(parts: Sequence[Views]) -> tuple[list[Split], int]:
    """Differences between sessions of all logs, by pairs of subscribers; and the number of positions two completed."""
    views = _joined(parts)
    if len(views.position) == 0:
        return [], 0
    positions = distinct(views.position)
    positions = positions[_times_completed(positions, views.low, views.high) > 1]
    begin, end = (np.searchsorted(positions, bound, "right") for bound in (views.low, views.high))
    interval, place = expand(begin, end)
    pair = distinct(views.owner[interval] * len(positions) + place)
    session, place = pair // len(positions), pair % len(positions)
    order = ascending(place, views.subscriber[session], views.number[session])
    session, place = session[order], place[order]
    known = Places(positions).of(views.position)
    views, known = views.only(known >= 0), known[known >= 0]
    what = views.session * len(positions) + known
    index = GroupIndex(what, np.zeros_like(what))
    seen = index.first(session * len(positions) + place, np.zeros_like(session))
    content, ordered = (np.where(seen >= 0, column[seen], 0) for column in (views.content, views.order))
    reference = np.flatnonzero(np.diff(place, prepend=-1))[codes(place)]
    differs = np.flatnonzero((content != content[reference]) | (ordered != ordered[reference]))
    found: dict[tuple[int, int], Split] = {}
    for row in differs.tolist():
        at = int(positions[place[row]])
        one, other = (
            Sighted(int(views.subscriber[session[each]]), int(views.number[session[each]]), at)
            for each in (reference[row], row)
        )
        who = (one.subscriber, other.subscriber)
        old = found.get(who, Split(one, other, 0))
        found[who] = Split(old.one, old.other, old.count + 1)
    return [found[who] for who in sorted(found)], int(np.count_nonzero(np.bincount(place) > 1))


def _times_completed(positions: Int64s, low: Int64s, high: Int64s) -> Int64s:
    """The number of intervals that hold each of the positions."""
    return np.searchsorted(np.sort(low), positions) - np.searchsorted(np.sort(high), positions)


def rows_at(view: StreamView, wanted: Sequence[Sighted]) -> dict[Sighted, Int64s]:
    """The first deliveries of each wanted session at its position, by time; sessions of other logs are left out."""
    d = view.deliveries
    rows = view.firsts(view.session)
    rows = rows[d.kind[rows] == ROW]
    result = {}
    for each in wanted:
        is_meant = (d.subscriber[rows] == each.subscriber) & (d.session[rows] == each.number)
        if np.any(d.subscriber == each.subscriber):
            result[each] = rows[is_meant & (d.position[rows] == each.position)]
    return result


def _completed(view: StreamView) -> tuple[Int64s, Int64s, Int64s]:
    """The intervals that sessions completed: the session, low and high.

    From the position where a session opened the whole stream up to its last watermark before the next marker; if that
    marker says that positions may be missing, up to the first of these.
    """
    d, lanes, contract = view.deliveries, view.lanes, view.contract
    markers = np.flatnonzero(is_marker(d))
    index = GroupIndex(view.session[markers], markers, markers)
    opening = index.last_before(lanes.session, lanes.last)
    behind = index.first(lanes.session, lanes.last)
    is_whole = (lanes.span < 0) & (opening >= 0) & (d.kind[opening] == OPEN) & (d.position[opening] != NEVER)
    is_whole &= (d.key[opening] == NEVER) & (d.span[opening] < 0)
    is_whole &= ~np.isin(lanes.session, view.session[d.kind == BACKFILL])
    limits = (behind >= 0) & (d.kind[behind] == GAP) & (d.position[behind] != NEVER)
    high = lanes.top() - (contract.closed == "<")
    high = np.where(limits, np.minimum(high, d.position[behind] - 1), high)
    low = d.position[opening] - (contract.resume == "at")
    is_whole &= low < high
    return lanes.session[is_whole], low[is_whole], high[is_whole]


def _hashes(view: StreamView, rows: Int64s, place: Int64s) -> tuple[Int64s, Int64s]:
    """For each place the sums of two hashes of its rows: of their content, and of content and turn in its key."""
    d, contract = view.deliveries, view.contract
    turn = count_so_far(codes(place, d.key[rows]), np.ones(len(rows), np.bool_))
    what = _mixed(_mixed(np.zeros(len(rows), np.uint64), d.key[rows]), d.value[rows])
    sums = np.zeros((2, int(place.max(initial=-1)) + 1), np.uint64)
    np.add.at(sums[0], place, what)
    if contract.order_key != "none":
        np.add.at(sums[1], place, _mixed(what, turn))
    return sums[0].view(np.int64), sums[1].view(np.int64)


def _mixed(
    state: np.ndarray[tuple[int], np.dtype[np.uint64]], number: Int64s
) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """A hash of the state and one more number; sums wrap around."""
    add, first, second = (np.uint64(each) for each in _MIX)
    mixed = state + number.astype(np.uint64) + add
    mixed = (mixed ^ (mixed >> np.uint64(30))) * first
    mixed = (mixed ^ (mixed >> np.uint64(27))) * second
    return mixed ^ (mixed >> np.uint64(31))


def _joined(parts: Sequence[Views]) -> Views:
    base = np.cumsum([0, *(len(part.number) for part in parts)])[:-1].tolist()

    def all_of(name: str, *, is_place: bool = False) -> Int64s:
        columns = [getattr(part, name) + is_place * offset for part, offset in zip(parts, base, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *columns])

    places = {name: all_of(name, is_place=True) for name in ("owner", "session")}
    names = ("subscriber", "number", "low", "high", "position", "content", "order")
    return Views(**places, **{name: all_of(name) for name in names})
