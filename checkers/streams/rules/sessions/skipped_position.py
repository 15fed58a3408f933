"""S30 skipped-position: a stream whose positions are dense has an event at each of them."""

from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.index import GroupIndex, codes, first_rows, joint_codes, segments
from checkers.columns.runs import first_of_each
from checkers.history.names import Names
from checkers.streams.coverage import is_marker
from checkers.streams.examples import Example
from checkers.streams.findings import both
from checkers.streams.rule import OfLog, Rule
from checkers.streams.rules.sessions.joins import joints
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OPEN, ROW, WATERMARK, Bools, Int64s


def skipped_positions(view: StreamView) -> Ruling:
    """S30: positions between two rows of a session, or below one of its watermarks, at which no row ever came.

    Only if the contract declares dense positions: otherwise a hole proves nothing. A session is judged between two of
    its markers, from its start or first row on, if it asked for everything; with positions of partitions, for each
    partition that it asked for. If sessions join, so are the positions between two of them. A row that came in another
    session of the subscriber is there. The event of a violation shows that the position was passed, and its row is the
    event below the hole. A witness is a row, a watermark or an `open` that passes positions. O(n log n).
    """
    if view.contract.positions != "dense":
        return Ruling.nothing()
    d, passed = view.deliveries, _passed(view)
    seen = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.position != NEVER))
    lane, wanted = joint_codes(*([d.subscriber[rows], _home(view)[rows]] for rows in (seen, passed.event)))
    chosen = first_rows(lane, d.position[seen])
    index = GroupIndex(lane[chosen], d.position[seen[chosen]])
    count = index.place(wanted, passed.high, above=True) - index.place(wanted, passed.low, above=True)
    is_broken = count < passed.high - passed.low
    order = np.flatnonzero(is_broken)[np.argsort(passed.event[is_broken], kind="stable")]
    return Ruling.of_events(passed.event[order], passed.below[order], witnesses=len(passed.event))


class _Passed(Struct, frozen=True):
    """Ranges of positions that a session passed, (p,): above `low`, up to `high`."""

    event: Int64s
    below: Int64s
    low: Int64s
    high: Int64s


def _passed(view: StreamView) -> _Passed:
    """What rows, watermarks and openings pass, each range from the highest event below it."""
    d, home = view.deliveries, _home(view)
    is_meant = (view.coverage.begins & (d.kind == ROW)) | ((d.kind == OPEN) & (d.key == NEVER)) | (d.kind == WATERMARK)
    rows = np.flatnonzero(is_meant & (d.position != NEVER) & _is_whole(view))
    lane = codes(segments(view.session, is_marker(d), rows), home[rows])
    height = _done(view, rows)
    order = np.lexsort((rows, d.kind[rows] == WATERMARK, height, lane))
    rows, height, lane = rows[order], height[order], lane[order]
    later = np.flatnonzero(~first_of_each(lane) & (np.diff(height, prepend=0) > 0))
    ranges = _Passed(rows[later], rows[later - 1], height[later - 1], height[later] - (d.kind[rows[later]] == ROW))
    if view.contract.sessions == "apart":
        return ranges
    opens, last = joints(view)
    kept = np.isin(opens, rows)
    opens, last = opens[kept], last[kept]
    of_row, of_last = joint_codes([view.session[rows], home[rows]], [view.session[last], home[opens]])
    top = GroupIndex(of_row, height, np.arange(len(rows))).last_before(of_last, np.full(len(opens), NEVER - 1))
    opens, top = opens[top >= 0], top[top >= 0]
    high = np.maximum(_done(view, opens), height[top])
    between = _Passed(opens, rows[top], height[top], high)
    return _Passed(*(np.append(getattr(ranges, name), getattr(between, name)) for name in _Passed.__struct_fields__))


def _done(view: StreamView, rows: Int64s) -> Int64s:
    """The position up to which nothing more is to come, by an `open` or a watermark; that of a row is its own."""
    d, contract = view.deliveries, view.contract
    is_short = ((d.kind[rows] == OPEN) & (contract.resume == "at")) | (
        (d.kind[rows] == WATERMARK) & (contract.closed == "<")
    )
    result: Int64s = d.position[rows] - is_short
    return result


def _is_whole(view: StreamView) -> Bools:
    """True for events of sessions that asked for no single key and, if positions are global, for no partition."""
    d, is_global = view.deliveries, view.contract.is_position_global
    is_narrow = (d.kind == OPEN) & ((d.key != NEVER) | ((d.span >= 0) & is_global))
    result: Bools = ~np.isin(view.session, view.session[is_narrow]) & (is_global | (d.span >= 0))
    return result


def _home(view: StreamView) -> Int64s:
    """The partition to which the position of each event belongs; 0 for all if positions are global."""
    return np.zeros_like(view.session) if view.contract.is_position_global else view.deliveries.span


def _sentence(example: Example, name: Names) -> str:
    mark, below = both(example)
    digits = name.forms.digits
    return (
        f"{example.subscriber} came from {name.forms.position(below.position)} to {digits(mark.position)} in session "
        f"{mark.session}, and positions between the two never came, although the stream has an event at each."
    )


SKIPPED_POSITION: Final = Rule(
    name="skipped-position",
    id="S30",
    rank=45,
    anomaly=Anomaly(
        meaning="A stream with an event at each position left out a position.",
        cause=Cause.LATE,
    ),
    witness="a row, a watermark or an `open` that passes positions, in a stream whose positions are dense",
    scope=OfLog(skipped_positions, _sentence),
)
