"""Writes that later rows pass. In a stream with a declared order a row closes what is below it, as a watermark does.

The conditions (a) to (h) are those of the section "What a later event closes" of the specification of the rules.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns import runs
from checkers.columns.facts import fact
from checkers.columns.index import (
    GroupIndex,
    ascending,
    codes,
    earliest_of_each,
    expand,
    first_rows,
    is_kind,
    joint_codes,
    max_so_far,
    segments,
)
from checkers.columns.runs import distinct
from checkers.history.units import epoch_of
from checkers.streams.closings import ALL_CLOSED
from checkers.streams.coverage import is_marker, lowest_starts
from checkers.streams.rules.logs.zombie import zombie_events
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import BACKFILL, FAIL, GAP, NEVER, ROW, Bools, Int64s
from harness.core.promises import StreamContract

_NOWHERE: Final = -1  # The group of a row or a write whose place in the order is unknown.


def rows_close(contract: StreamContract) -> bool:
    """True if a later row shows that an earlier write is lost.

    Not if the stream promises no order, or may drop events. If a session may repeat what it sent, the missing row may
    still come.
    """
    can_repeat = contract.delivery == "at-least-once" and contract.replay == "session"
    return contract.order_key != "none" and contract.delivery != "at-most-once" and not can_repeat


@fact
def passed_events(view: StreamView) -> Ruling:
    """Expected writes in live coverage that a later row closes, and that never arrived in its scope.

    The event of a violation is the first row that closes the write. A witness is a row that newly closes a committed
    write. O(n log n), plus the sessions times the writes that did not arrive in all scopes.
    """
    if not rows_close(view.contract) or len(view.expected) == 0:
        return Ruling.nothing()
    lanes = _Lanes.of(view)
    if len(lanes.rows) == 0:
        return Ruling.nothing()
    row, candidate = _passed(view, lanes)
    scope = view.arrival_scope
    never = view.first_times(scope).at(view.of_write(scope[row], candidate)) == NEVER
    row, candidate = row[never], candidate[never]
    is_replaced = _is_in_snapshot(view, scope, row, candidate) | superseded(
        view,
        Versions.of_expected(view, candidate),
        group=scope,
        watermark=row,
        height=np.full(len(row), ALL_CLOSED),
        before=np.full(len(row), NEVER),
    )
    row, candidate = row[~is_replaced], candidate[~is_replaced]
    chosen = earliest_of_each(view.of_write(scope[row], candidate), row)
    row, candidate = row[chosen], candidate[chosen]
    witnesses = distinct(np.append(lanes.witnesses(view), row))
    return Ruling.of_writes(row, view.expected[candidate], witnesses=len(witnesses), witness_rows=witnesses)


class _Lanes(Struct, frozen=True, kw_only=True):
    """Rows by lane, in order of time: a session between two markers, and one scope of the order.

    Heights never fall, because rows that came in the wrong order are left out.
    """

    rows: Int64s  # (k,)
    lane: Int64s  # (k,) ascending, from 0
    height: Int64s  # (k,) the row closes writes below
    group: Int64s  # (k,) the scope of the order
    of_write: Int64s  # (e,) the same for expected writes; _NOWHERE if it is unknown

    @classmethod
    def of(cls, view: StreamView) -> "_Lanes":
        rows = _closing_rows(view)
        of_write, group = joint_codes(_scopes_of_writes(view), _scopes_of_rows(view, rows))
        of_write = np.where(_is_placed(view, view.writes.span[view.expected]), of_write, _NOWHERE)
        lane = codes(segments(view.session, is_marker(view.deliveries), rows), group)
        order = ascending(lane, rows)
        rows, lane, group = rows[order], lane[order], group[order]
        height = _heights(view, rows)
        kept = np.flatnonzero(height == max_so_far(lane, height))
        return cls(rows=rows[kept], lane=lane[kept], height=height[kept], group=group[kept], of_write=of_write)

    def witnesses(self, view: StreamView) -> Int64s:
        """Rows that newly close the write which the row before them in their lane shows."""
        later = np.flatnonzero(~runs.first_of_each(self.lane) & (np.diff(self.height, prepend=0) > 0))
        row, before = self.rows[later], self.rows[later - 1]
        write = view.expected[view.match[before]]
        w = view.writes
        covered = view.coverage.at(view.session[row], w.key[write], w.span[write], row)
        result: Int64s = row[covered.reaches(w.position[write])]
        return result


def _closing_rows(view: StreamView) -> Int64s:
    """First deliveries of placed rows: no repetition, snapshot, phantom, zombie, or event of the system's own.

    Rows before a later gap marker of their session are left out, as the marker may name what they passed.
    """
    d = view.deliveries
    rows = view.first[(d.kind[view.first] == ROW) & (view.match[view.first] >= 0)]
    rows = rows[view.coverage.begins[rows] & _is_placed(view, d.span[rows])]
    gaps = np.flatnonzero(d.kind == GAP)
    last = np.full(int(view.session.max(initial=-1)) + 1, -1, np.int64)
    last[view.session[gaps]] = gaps
    rows = rows[rows > last[view.session[rows]]]
    if view.contract.epochs == "owners":
        rows = np.setdiff1d(rows, zombie_events(view).watermark)
    return np.asarray(rows, np.int64)


def _is_by_partition(view: StreamView) -> bool:
    contract = view.contract
    is_apart = contract.order_key == "key" and contract.wm_scope == "partition"
    return contract.order_key == "partition" or not contract.is_position_global or is_apart


def _is_placed(view: StreamView, span: Int64s) -> Bools:
    """True if the partition is known, where the order needs it. A stream that names no partition has only one."""
    if not _is_by_partition(view) or not np.any(view.log.deliveries.span >= 0):
        return np.ones(len(span), np.bool_)
    result: Bools = span >= 0
    return result


def _scopes_of_rows(view: StreamView, rows: Int64s) -> list[Int64s]:
    d = view.deliveries
    return _scopes(view, d.key[rows], d.span[rows])


def _scopes_of_writes(view: StreamView) -> list[Int64s]:
    w, e = view.writes, view.expected
    return _scopes(view, w.key[e], w.span[e])


def _scopes(view: StreamView, key: Int64s, span: Int64s) -> list[Int64s]:
    """The columns whose values are equal for what the stream has in one order."""
    nothing = np.zeros(len(key), np.int64)
    return [
        key if view.contract.order_key == "key" else nothing,
        span if _is_by_partition(view) else nothing,
    ]


def _heights(view: StreamView, rows: Int64s) -> Int64s:
    """The position below which each row closes writes: its own, or the lowest one of its unit."""
    position = view.deliveries.position[rows]
    if view.contract.atomic_unit != "epoch" or view.contract.position == "epoch":
        return position
    w, e = view.writes, view.expected
    unit, epoch = runs.codes(epoch_of(w, view.contract)[e])
    low = np.full(len(unit), NEVER, np.int64)
    np.minimum.at(low, epoch, w.position[e])
    return np.minimum(position, low[epoch[view.match[rows]]])


def _passed(view: StreamView, lanes: _Lanes) -> tuple[Int64s, Int64s]:
    """Pairs of a row and a place in `expected`: the first row of a lane that closes the write in live coverage.

    Writes that arrived in all scopes are left out.
    """
    w, e, rows = view.writes, view.expected, lanes.rows
    candidates = np.flatnonzero(_may_be_lost(view, rows) & (lanes.of_write != _NOWHERE))
    begin = np.flatnonzero(runs.first_of_each(lanes.lane))
    end = np.append(begin[1:], len(rows))
    index = GroupIndex(lanes.of_write[candidates], w.position[e[candidates]], candidates)
    group, low = lanes.group[begin], _lowest(view, rows[begin])
    owner, place = expand(index.place(group, low), index.place(group, lanes.height[end - 1]))
    candidate = index.rows[place]
    write, last = e[candidate], rows[end[owner] - 1]
    covered = view.coverage.at(view.session[last], w.key[write], w.span[write], last)
    is_in = covered.reaches(w.position[write])
    owner, candidate, since = owner[is_in], candidate[is_in], covered.since[is_in]
    places = np.arange(len(rows))
    by_height, by_time = GroupIndex(lanes.lane, lanes.height, places), GroupIndex(lanes.lane, rows, places)
    closing = np.maximum(
        by_height.place(owner, w.position[e[candidate]], above=True), by_time.place(owner, since, above=True)
    )
    is_closed = closing < end[owner]
    return rows[closing[is_closed]], candidate[is_closed]


def _may_be_lost(view: StreamView, rows: Int64s) -> Bools:
    """True for the expected writes (e,) that did not arrive in every scope of those rows, and that must be sent."""
    w, e, contract = view.writes, view.expected, view.contract
    scope = view.arrival_scope
    shown = np.flatnonzero(view.match >= 0)
    shown = shown[first_rows(scope[shown], view.match[shown])]
    result: Bools = np.bincount(view.match[shown], minlength=len(e)) < len(distinct(scope[rows]))
    if contract.versions == "every":
        return result
    # A newer version, even one that has yet to come, may replace an older one; compaction removes deletions, too.
    possible = np.flatnonzero((w.outcome != FAIL) & (w.position != NEVER))
    line = [w.key, epoch_of(w, contract)] if contract.versions == "latest-per-epoch" else [w.key]
    of_all, of_owed = joint_codes([column[possible] for column in line], [column[e] for column in line])
    newest = np.full(int(of_all.max(initial=-1)) + 1, -1, np.int64)
    np.maximum.at(newest, of_all, w.position[possible])
    count = np.bincount(codes(of_all, w.position[possible]))[codes(of_all, w.position[possible])]
    is_shared = np.zeros(len(newest), np.bool_)
    is_shared[of_all[(count > 1) & (w.position[possible] == newest[of_all])]] = True
    result &= (w.position[e] == newest[of_owed]) & ~is_shared[of_owed]
    unplaced = w.key[(w.outcome != FAIL) & (w.position == NEVER)]
    result &= ~np.isin(w.key[e], unplaced)
    return result & (w.value[e] != NEVER) if contract.versions == "latest" else result


def _lowest(view: StreamView, rows: Int64s) -> Int64s:
    """For the first row of each lane the lowest position that it can close.

    A session that began with a snapshot does not show what came before that one.
    """
    d = view.deliveries
    height = np.full(len(d.kind), -1, np.int64)
    snapshots = np.flatnonzero((d.kind == BACKFILL) & (d.position != NEVER))
    height[snapshots] = d.position[snapshots] + 1
    return np.maximum(lowest_starts(d, view.session, rows), max_so_far(view.session, height)[rows])


def _is_in_snapshot(view: StreamView, scope: Int64s, row: Int64s, candidate: Int64s) -> Bools:
    """True for writes whose key came in a snapshot at or after their position, which shows their effect."""
    d, write = view.deliveries, view.expected[candidate]
    rows = np.flatnonzero(is_kind(d.kind, (BACKFILL,)) & (d.position != NEVER))
    line, wanted = joint_codes([scope[rows], d.key[rows]], [scope[row], view.writes.key[write]])
    result: Bools = GroupIndex(line, d.position[rows]).first(wanted, view.writes.position[write]) >= 0
    return result
