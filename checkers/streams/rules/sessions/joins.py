"""Writes between two sessions of a subscriber: the first covered them and ended, and the second opened above them."""

import numpy as np

from checkers.columns.facts import fact
from checkers.columns.index import codes, earliest_of_each, first_places, is_kind, last_places
from checkers.streams.closings import ALL_CLOSED
from checkers.streams.coverage import ENDS, is_session_marker
from checkers.streams.rules.sessions.holes import opening_holes, resume_holes, snapshot_holes
from checkers.streams.rules.sessions.missing_event import lost_events
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import BACKFILL, CLOSE, END, ERROR, NEVER, OPEN, Bools, Int64s


@fact
def join_holes(view: StreamView) -> Ruling:
    """Expected writes that fell between two sessions of one subscriber, and that it never received.

    The event of a violation is the `open` of the later session, and its row the last event of the session before. A
    write counts if that session covered it when it ended, if the `open` asks for its key and partition from a position
    above it, and if no other rule reports it. Not judged: sessions that begin with a snapshot, or after the end of the
    log; sessions that overlap; streams that may drop events. A witness is such an `open`. O(n log n), and the openings
    times the writes that a subscriber never received.
    """
    d, contract = view.deliveries, view.contract
    if contract.delivery == "at-most-once" or len(view.expected) == 0:
        return Ruling.nothing()
    opens, before = joints(view)
    if not contract.is_position_global:
        opens, before = opens[d.span[opens] >= 0], before[d.span[opens] >= 0]
    candidates = _never_received(view)
    mark = np.repeat(opens, len(candidates))
    last, candidate = np.repeat(before, len(candidates)), np.tile(candidates, len(opens))
    kept = _is_between(view, mark, last, candidate)
    mark, last, candidate = mark[kept], last[kept], candidate[kept]
    is_replaced = superseded(
        view,
        Versions.of_expected(view, candidate),
        group=d.subscriber,
        watermark=mark,
        height=np.full(len(mark), ALL_CLOSED),
        before=np.full(len(mark), NEVER),
    )
    others = (lost_events(view), resume_holes(view), opening_holes(view), snapshot_holes(view))
    blamed = np.concatenate(
        [view.of_write(d.subscriber[each.watermark], np.searchsorted(view.expected, each.write)) for each in others]
    )
    own = view.of_write(d.subscriber[mark], candidate)
    new = np.flatnonzero(~is_replaced & ~np.isin(own, blamed))
    new = new[earliest_of_each(own[new], mark[new])]
    order = new[np.lexsort((candidate[new], mark[new]))]
    return Ruling(
        watermark=mark[order],
        row=last[order],
        write=view.expected[candidate[order]],
        witnesses=len(opens),
        witness_rows=opens,
    )


def joints(view: StreamView) -> tuple[Int64s, Int64s]:
    """The openings at a position that follow a session of their subscriber, and the last event of that session."""
    d, session = view.deliveries, view.session
    count = int(session.max(initial=-1)) + 1
    first, closed = first_places(session, count), _closed(view)
    last = np.where(closed == NEVER, last_places(session, count), closed)
    by_time = np.lexsort((first, d.subscriber[first]))
    earlier = np.full(count, -1, np.int64)
    earlier[by_time[1:]] = np.where(
        d.subscriber[first[by_time[1:]]] == d.subscriber[first[by_time[:-1]]], by_time[:-1], -1
    )
    opens = np.flatnonzero((d.kind == OPEN) & (d.position != NEVER))
    opens = opens[(earlier[session[opens]] >= 0) & ~np.isin(session[opens], session[d.kind == BACKFILL])]
    before = earlier[session[opens]]
    kept = (last[before] < opens) & ~np.isin(before, session[(d.kind == END) & is_session_marker(d)])
    return opens[kept], last[before[kept]]


def _closed(view: StreamView) -> Int64s:
    """For each session the row at which it was closed, or broke; NEVER if it did not."""
    is_close = is_kind(view.deliveries.kind, (CLOSE, ERROR)) & is_session_marker(view.deliveries)
    result = np.full(int(view.session.max(initial=-1)) + 1, NEVER, np.int64)
    closes = np.flatnonzero(is_close)[::-1]
    result[view.session[closes]] = closes  # The first one remains.
    return result


def _received(view: StreamView) -> Int64s:
    """The rows that show a write, in sessions that had not been closed."""
    shown = np.flatnonzero(view.match >= 0)
    result: Int64s = shown[shown < _closed(view)[view.session[shown]]]
    return result


def _never_received(view: StreamView) -> Int64s:
    """The places in `expected` of writes that some subscriber never received."""
    who = codes(view.deliveries.subscriber)
    shown = _received(view)
    pairs = np.unique(view.of_write(who[shown], view.match[shown]))
    count = np.bincount(pairs % (len(view.expected) + 1), minlength=len(view.expected))
    return np.flatnonzero(count < int(who.max(initial=-1)) + 1)


def _is_between(view: StreamView, mark: Int64s, last: Int64s, candidate: Int64s) -> Bools:
    """True for pairs of an `open` and a write that the session before it covered, and that the `open` leaves out."""
    d, w, write = view.deliveries, view.writes, view.expected[candidate]
    is_below = w.position[write] <= d.position[mark]
    if view.contract.resume == "at":
        is_below = w.position[write] < d.position[mark]
    is_below &= (d.key[mark] == NEVER) | (d.key[mark] == w.key[write])
    is_below &= (d.span[mark] < 0) | (d.span[mark] == w.span[write])
    never = view.first_times(d.subscriber, _received(view)).at(view.of_write(d.subscriber[mark], candidate)) == NEVER
    ended = np.where(is_kind(d.kind[last], ENDS), last, last + 1)
    covered = view.coverage.at(view.session[last], w.key[write], w.span[write], ended)
    result: Bools = is_below & never & covered.reaches(w.position[write])
    return result
