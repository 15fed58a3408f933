"""The part of a stream that must be held so that the rules judge later events as if they saw all earlier ones.

The *floor* is a position: everything up to it is closed, for each session that still goes on. Events above it are held
as a whole. At or below it only these are held:
1. The row with which coverage of a key began, if no marker declared the start: one for each session and key.
2. The first of the highest watermarks of each scope and partition, as no later one may be below it; of each lane that
   reaches above the floor its first watermark of each height there, and its last, which shows what the lane covers.
3. Watermarks that tear by their place, whatever their height (`cut: delivery`), and ends of batches: the first after
   each held event. Rows of other units have not arrived by then, and a second watermark adds nothing.
4. If events name the owner of the log, one row of the newest owner: rows of older ones may not follow it.
5. Markers, unless a later one took their place and nothing is held between the two.
A violation that a later event can show needs no more: what it is compared with lies above the floor. If an event
comes at or below the floor, nothing can be concluded from what is held.
"""

from dataclasses import fields, replace

import numpy as np

from checkers.columns.index import GroupIndex, codes, count_so_far, expand, is_kind
from checkers.streams.coverage import is_marker
from checkers.streams.view import StreamView
from harness.core.columns import BACKFILL, COMMIT, GAP, NEVER, OPEN, ROW, WATERMARK, Bools, Deliveries, Int64s
from harness.core.promises import StreamContract

NOTHING_CLOSED = int(np.iinfo(np.int64).min)
_COLUMNS = [(field.name, np.int8 if field.name == "kind" else np.int64) for field in fields(Deliveries)]


def taken(deliveries: Deliveries, rows: Int64s) -> Deliveries:
    """The deliveries of those rows, in that order."""
    return Deliveries(**{name: getattr(deliveries, name)[rows] for name, _ in _COLUMNS})


def joined(*parts: Deliveries) -> Deliveries:
    """The parts, one after the other."""
    return Deliveries(
        **{
            name: np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
            for name, kind in _COLUMNS
        }
    )


def closed_up_to(view: StreamView) -> int:
    """The floor: the least position that the current session of each subscriber has reached in each of its partitions.

    A session without a watermark has reached its start; without a declared start, nothing is closed.
    """
    d, contract = view.deliveries, view.contract
    current = np.zeros(int(d.subscriber.max(initial=0)) + 1, np.int64)
    current[d.subscriber] = view.session  # Ascending: the last one remains.
    is_current = current[d.subscriber] == view.session
    heard = np.flatnonzero(is_current & is_kind(d.kind, (ROW, BACKFILL, WATERMARK)))
    if len(heard) == 0:
        return NOTHING_CLOSED
    marks = is_current & (d.kind == WATERMARK) & ~view.is_regress
    opens = is_current & (d.kind == OPEN) & (d.key == NEVER) & (d.span < 0) & (d.position != NEVER)
    height = d.position - np.where(opens, contract.resume == "at", contract.closed == "<")
    whole = np.full(len(view.session), NOTHING_CLOSED)
    of_all = np.flatnonzero(opens | (marks & (d.span < 0)))
    np.maximum.at(whole, view.session[of_all], height[of_all])
    part = codes(view.session, d.span)
    reached = np.full(len(part), NOTHING_CLOSED)
    of_one = np.flatnonzero(marks)
    np.maximum.at(reached, part[of_one], height[of_one])
    return int(np.maximum(reached[part[heard]], whole[view.session[heard]]).min())


def reopened(before: Deliveries, position: int, contract: StreamContract) -> tuple[Deliveries, int]:
    """The events that must be held of all `before` when one of that position comes, and the floor below it.

    If markers declare every start, the rows below the position do not matter; else all are held this once.
    """
    d = before
    is_below = is_kind(d.kind, (ROW, BACKFILL)) & (d.position < position)
    is_whole = (d.kind == OPEN) & (d.position != NEVER) & (d.key == NEVER) & (d.span < 0)
    _, begins = np.unique(codes(d.subscriber, d.session), return_index=True)
    if not np.all(is_whole[begins]) or np.any(is_kind(d.kind, (OPEN, GAP)) & ~is_whole):
        return before, NOTHING_CLOSED
    owners = _newest_owners(before, contract, is_below)
    return _alone(before, np.flatnonzero(~is_below | owners), owners), position - 1


def open_part(view: StreamView, floor: int) -> Deliveries:
    """The events of the view that are held, given that floor. O(n log n)."""
    d = view.deliveries
    above = is_kind(d.kind, (ROW, BACKFILL)) & (d.position != NEVER) & (d.position > floor)
    marks = _watermarks(view, floor)
    beginnings = _beginnings(view, floor)
    alone = (beginnings | _newest_owners(d, view.contract, ~above)) & ~above
    held = above | marks | alone
    held |= _first_behind(view, above, beginnings)
    held |= _markers(view, held)
    return _alone(d, np.flatnonzero(held), alone)


def _alone(deliveries: Deliveries, rows: Int64s, is_alone: Bools) -> Deliveries:
    """The deliveries of those rows; flagged ones without the name of their unit, as its other rows are not held."""
    result = taken(deliveries, rows)
    return replace(result, unit=np.where(is_alone[rows], NEVER, result.unit))


def _newest_owners(deliveries: Deliveries, contract: StreamContract, among: Bools) -> Bools:
    """Rule 4: one of the events with the highest epoch in each log."""
    d = deliveries
    result = np.zeros(len(d.kind), np.bool_)
    if contract.epochs != "owners":
        return result
    rows = np.flatnonzero(among & (d.kind == ROW) & (d.epoch != NEVER))
    rows = rows[np.lexsort((-rows, d.epoch[rows], d.span[rows]))]
    result[rows[np.diff(d.span[rows], append=-2) != 0]] = True
    return result


def _watermarks(view: StreamView, floor: int) -> Bools:
    """Rows held by rule 2."""
    d = view.deliveries
    result = np.zeros(len(d.kind), np.bool_)
    rows = np.flatnonzero((d.kind == WATERMARK) & ~view.is_regress)
    part, height = codes(view.scope[rows], d.span[rows]), d.position[rows]
    top = np.full(len(part), NOTHING_CLOSED)
    np.maximum.at(top, part, height)
    highest = np.flatnonzero(height == top[part])
    _, first = np.unique(part[highest], return_index=True)
    result[rows[highest[first]]] = True

    lanes = view.lanes
    reaching = lanes.height > floor
    lane = np.repeat(np.arange(len(lanes.last)), np.diff(lanes.begin))
    _, first = np.unique(codes(lane[reaching], lanes.height[reaching]), return_index=True)
    result[lanes.rows[reaching][first]] = True
    result[lanes.last[lanes.top() > floor]] = True
    return result


def _beginnings(view: StreamView, floor: int) -> Bools:
    """Rule 1, for coverage now, and at the last watermark of each lane that reaches above the floor."""
    d, lanes = view.deliveries, view.lanes
    result = np.zeros(len(d.kind), np.bool_)
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL)))
    _, first = np.unique(codes(view.session[rows], d.key[rows], d.span[rows]), return_index=True)
    keys = rows[first]  # By session.
    session, last = view.session[keys], lanes.last[lanes.top() > floor]
    lane, place = expand(
        np.searchsorted(session, view.session[last]), np.searchsorted(session, view.session[last], "right")
    )
    asked = np.append(keys, keys[place])
    when = np.append(np.full(len(keys), len(d.kind)), last[lane])
    since = view.coverage.at(view.session[asked], d.key[asked], d.span[asked], when).since
    since = since[since != NEVER]
    result[since[is_kind(d.kind[since], (ROW, BACKFILL))]] = True
    return result


def _first_behind(view: StreamView, above: Bools, beginnings: Bools) -> Bools:
    """Rule 3. Coverage can begin in between as well: so also the first after each marker, once something is held."""
    d, contract = view.deliveries, view.contract
    result = np.zeros(len(d.kind), np.bool_)
    has_begun = count_so_far(view.session, above) > 0
    since = count_so_far(view.session, above | ((beginnings | is_marker(d)) & has_begun))
    if contract.cut == "delivery":
        rows = np.flatnonzero((d.kind == WATERMARK) & ~view.is_regress)
        result[_changed(rows, codes(view.session[rows], d.span[rows]), since)] = True
    if contract.atomic_unit in ("batch", "response"):
        rows = np.flatnonzero(d.kind == COMMIT)
        result[_changed(rows, view.session[rows], since)] = True
    return result


def _changed(rows: Int64s, group: Int64s, count: Int64s) -> Int64s:
    """Those of `rows` whose count differs from the one before in their group, and from 0."""
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    before = np.append(0, count[rows[:-1]])
    before[np.diff(group, prepend=-1) != 0] = 0
    changed: Int64s = rows[count[rows] != before[: len(rows)]]
    return changed


def _markers(view: StreamView, held: Bools) -> Bools:
    """Rule 5. A gap replaces only gaps: it does not cancel what a session requested."""
    d = view.deliveries
    marks, is_gap = is_marker(d), d.kind == GAP
    of_session = (d.key == NEVER) & (d.span < 0)
    same = codes(view.session, d.key, d.span)
    since = count_so_far(view.session, held)
    result = marks.copy()
    for followed, followers in ((marks & is_gap, marks), (marks, marks & ~is_gap)):
        for group, those in ((view.session, followers & of_session), (same, followers)):
            later = _next(group, np.flatnonzero(those))
            result &= ~(followed & (later >= 0) & (since[later] == since))
    return result


def _next(group: Int64s, rows: Int64s) -> Int64s:
    """For each row of the log the next of `rows` in its group; -1 if there is none."""
    return GroupIndex(group[rows], rows, rows).first(group, np.arange(len(group)), above=True)
