"""S20 split-view: sessions that completed the same position saw the same events there.

Each task computes hashes of what a session saw at a position, and the positions that it completed. The driver holds
these hashes, two for each session and position with events, and never an event. The events for a finding are fetched
afterwards.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.blocks import pieces
from checkers.columns.index import GroupIndex, Places, ascending, codes, count_so_far, expand
from checkers.columns.runs import distinct
from checkers.columns.table import concat, empty, take
from checkers.history.names import Names
from checkers.streams.coverage import is_marker
from checkers.streams.findings import stream_finding
from checkers.streams.rule import Conclusion, Cut, Need, OfAllLogs, Rule, Seen, Sighted
from checkers.streams.view import StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, GAP, NEVER, OPEN, ROW, Bools, Int64s
from harness.core.verdict import Finding

EVENTS_SHOWN: Final = 8  # Events of a finding: a position where two sessions differ may have very many.

_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class Sessions(Struct, frozen=True, kw_only=True):
    """The sessions of some logs, by their subscribers and own numbers."""

    subscriber: Int64s
    number: Int64s


class Intervals(Struct, frozen=True, kw_only=True):
    """Positions that sessions completed: low < position <= high."""

    session: Int64s  # A row of Sessions.
    low: Int64s
    high: Int64s


class Contents(Struct, frozen=True, kw_only=True):
    """Hashes of what sessions saw at positions with events."""

    session: Int64s  # A row of Sessions.
    position: Int64s
    content: Int64s  # Equal for the same events, in any order.
    order: Int64s  # Equal for the same events, in the same order of each key; 0 if no order is promised.


class Views(Struct, frozen=True):
    """The view of each session of some logs: the positions that it completed, and hashes of their events."""

    sessions: Sessions
    intervals: Intervals
    contents: Contents


class Split(Struct, frozen=True):
    """Two subscribers whose sessions differ: the first such position, and the number of such positions."""

    one: Sighted
    other: Sighted
    count: int


def views_of(view: StreamView) -> Views:
    """The views of sessions that follow the whole stream from a known position, without a snapshot. O(n log n).

    If there is no other log, only positions that several of its sessions completed are included. Empty if sessions may
    legally differ: versions may be skipped, or positions are not global.
    """
    d, contract = view.deliveries, view.contract
    first = np.zeros(int(view.session.max(initial=-1)) + 1, np.int64)
    for piece in reversed(list(pieces(len(view.session)))):
        first[view.session[piece][::-1]] = np.arange(piece.start, piece.stop)[::-1]  # The last write is kept.
    is_meant = contract.versions == "every" and contract.is_position_global
    completed = _completed(view) if is_meant else empty(Intervals)
    least = 2 if view.log.is_alone else 0
    rows = _rows_of(view, completed.session, lambda position: _times_completed(position, completed) >= least)
    place = codes(view.session[rows], d.position[rows])
    content, order = _hashes(view, rows, place)
    shown = np.zeros(len(content), np.int64)
    shown[place] = rows
    return Views(
        Sessions(subscriber=d.subscriber[first], number=d.session[first]),
        completed,
        Contents(session=view.session[shown], position=d.position[shown], content=content, order=order),
    )


def _rows_of(view: StreamView, owner: Int64s, is_meant: Callable[[Int64s], Bools]) -> Int64s:
    """The first deliveries to sessions among `owner`, at positions for which `is_meant` is true."""
    d = view.deliveries
    is_owner = np.zeros(int(view.session.max(initial=-1)) + 1, np.bool_)
    is_owner[owner] = True
    every = view.firsts(view.session) if len(owner) else owner
    parts = [every[:0]]
    for piece in pieces(len(every)):
        rows = every[piece]
        parts.append(rows[(d.kind[rows] == ROW) & is_owner[view.session[rows]] & is_meant(d.position[rows])])
    return np.concatenate(parts)


def splits(parts: Sequence[Views]) -> tuple[list[Split], int]:
    """Differences between sessions, by pairs of subscribers; and the number of positions that two completed."""
    views = _together(parts)
    if len(views.contents.position) == 0:
        return [], 0
    sessions, completed = views.sessions, views.intervals
    positions = distinct(views.contents.position)
    positions = positions[_times_completed(positions, completed) > 1]
    begin, end = (np.searchsorted(positions, bound, "right") for bound in (completed.low, completed.high))
    interval, place = expand(begin, end)
    pair = distinct(completed.session[interval] * len(positions) + place)
    session, place = pair // len(positions), pair % len(positions)
    order = ascending(place, sessions.subscriber[session], sessions.number[session])
    session, place = session[order], place[order]
    known = Places(positions).of(views.contents.position)
    contents, known = take(views.contents, known >= 0), known[known >= 0]
    what = contents.session * len(positions) + known
    seen = GroupIndex(what, np.zeros_like(what)).first(session * len(positions) + place, np.zeros_like(session))
    content, ordered = (np.where(seen >= 0, column[seen], 0) for column in (contents.content, contents.order))
    reference = np.flatnonzero(np.diff(place, prepend=-1))[codes(place)]
    differs = np.flatnonzero((content != content[reference]) | (ordered != ordered[reference]))
    found: dict[tuple[int, int], Split] = {}
    for row in differs.tolist():
        at = int(positions[place[row]])
        one, other = (
            Sighted(int(sessions.subscriber[session[each]]), int(sessions.number[session[each]]), at)
            for each in (reference[row], row)
        )
        who = (one.subscriber, other.subscriber)
        old = found.get(who, Split(one, other, 0))
        found[who] = Split(old.one, old.other, old.count + 1)
    return [found[who] for who in sorted(found)], int(np.count_nonzero(np.bincount(place) > 1))


def _times_completed(positions: Int64s, completed: Intervals) -> Int64s:
    """The number of intervals that hold each of the positions."""
    return np.searchsorted(np.sort(completed.low), positions) - np.searchsorted(np.sort(completed.high), positions)


def rows_at(view: StreamView, wanted: Sequence[Sighted]) -> dict[Sighted, Int64s]:
    """For each wanted session the rows with its first deliveries at the position, by time.

    Omits sessions of other logs.
    """
    d = view.deliveries
    rows = view.firsts(view.session)
    rows = rows[d.kind[rows] == ROW]
    result = {}
    for each in wanted:
        is_meant = (d.subscriber[rows] == each.subscriber) & (d.session[rows] == each.number)
        if np.any(d.subscriber == each.subscriber):
            result[each] = rows[is_meant & (d.position[rows] == each.position)]
    return result


def _completed(view: StreamView) -> Intervals:
    """The intervals of positions that sessions completed.

    Each goes from the position where a session opened the whole stream up to its last watermark before the next marker.
    If that marker says that positions may be missing, the interval ends before the first of these.
    """
    d, lanes, contract = view.deliveries, view.lanes, view.contract
    markers = np.flatnonzero(is_marker(d))
    index = GroupIndex(view.session[markers], markers, markers)
    opening = index.last_before(lanes.session, lanes.last)
    following = index.first(lanes.session, lanes.last)
    is_whole = (lanes.span < 0) & (opening >= 0) & (d.kind[opening] == OPEN) & (d.position[opening] != NEVER)
    is_whole &= (d.key[opening] == NEVER) & (d.span[opening] < 0)
    is_whole &= ~np.isin(lanes.session, view.session[d.kind == BACKFILL])
    limits = (following >= 0) & (d.kind[following] == GAP) & (d.position[following] != NEVER)
    high = lanes.top() - (contract.closed == "<")
    high = np.where(limits, np.minimum(high, d.position[following] - 1), high)
    low = d.position[opening] - (contract.resume == "at")
    is_whole &= low < high
    return take(Intervals(session=lanes.session, low=low, high=high), is_whole)


def _hashes(view: StreamView, rows: Int64s, place: Int64s) -> tuple[Int64s, Int64s]:
    """Two sums of hashes of the rows at each place.

    The first is over key and value, the second over key, value, and the rank of the row among those of its key.
    """
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
    """A hash of the state and one more number. Arithmetic wraps around."""
    add, first, second = (np.uint64(each) for each in _MIX)
    mixed = state + number.astype(np.uint64) + add
    mixed = (mixed ^ (mixed >> np.uint64(30))) * first
    mixed = (mixed ^ (mixed >> np.uint64(27))) * second
    return mixed ^ (mixed >> np.uint64(31))


def _together(parts: Sequence[Views]) -> Views:
    """The views of all logs."""
    sessions, intervals, contents = [empty(Sessions)], [empty(Intervals)], [empty(Contents)]
    base = 0
    for part in parts:
        sessions.append(part.sessions)
        intervals.append(replace(part.intervals, session=part.intervals.session + base))
        contents.append(replace(part.contents, session=part.contents.session + base))
        base += len(part.sessions.number)
    return Views(concat(sessions), concat(intervals), concat(contents))


def _conclude(
    parts: Sequence[Views], look: Callable[[Sequence[Sighted]], Seen], subscribers: Sequence[str], name: Names
) -> Conclusion:
    found, compared = splits(parts)
    seen = look(tuple(dict.fromkeys(side for split in found for side in (split.one, split.other)))) if found else {}
    return Conclusion(tuple(split_finding(split, seen, subscribers, name) for split in found), compared)


def split_finding(split: Split, seen: Seen, subscribers: Sequence[str], name: Names) -> Finding:
    """The finding that two subscribers differ, with an event that shows it."""
    one, other = split.one, split.other
    whose = [f"{subscribers[each.subscriber]} (session {each.number})" for each in (one, other)]
    sides = [[(event.key, event.value) for event in seen[each]] for each in (one, other)]
    what = _difference(sides, whose, name.pair)
    return stream_finding(
        SPLIT_VIEW.name,
        f"{whose[0]} and {whose[1]} completed {name.forms.position(one.position)}, but {what}.",
        facts=(*whose, one.position, _difference(sides, whose, lambda key, value: f"{name(key)}'s {name(value)}")),
        count=split.count,
        events=tuple(sorted(event.seq for each in (one, other) for event in seen[each]))[:EVENTS_SHOWN],
    )


_Shown = tuple[int, int]  # Key and value.


def _difference(sides: list[list[_Shown]], whose: list[str], pair: Callable[[int, int], str]) -> str:
    """A phrase with the first difference between two sides; `pair` names a key and a value."""
    for side, who in ((0, whose[0]), (1, whose[1])):
        if only := Counter(sides[side]) - Counter(sides[1 - side]):
            return f"only {who} received {pair(*next(iter(only)))} there"
    turn = next(turn for key in sides[0] if (turn := _swapped(sides, key[0])))
    return f"{whose[0]} received {pair(*turn[0])} there before {pair(*turn[1])}, the other after it"


def _swapped(sides: list[list[_Shown]], key: int) -> tuple[_Shown, _Shown] | None:
    """The first two events of that key whose order differs between the sides; None if there are none."""
    one, other = ([event for event in side if event[0] == key] for side in sides)
    return next(((mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine != theirs), None)


SPLIT_VIEW: Final = Rule(
    name="split-view",
    id="S20",
    rank=120,
    anomaly=Anomaly(meaning="Two views of the same position differ.", cause=Cause.ORDER),
    witness="a position that two sessions completed",
    needs=frozenset({Need.OPENS, Need.ALL}),
    cut=Cut.UNIT,
    scope=OfAllLogs(views_of, _conclude, rows_at),
)
