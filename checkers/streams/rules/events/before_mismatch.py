"""S29 before-mismatch: the before-image of a row is the previous row of its key."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, ascending, codes, count_so_far, first_places, is_kind, segments
from checkers.columns.runs import first_of_each
from checkers.history.names import Names
from checkers.streams.coverage import is_marker
from checkers.streams.examples import Example
from checkers.streams.findings import after, arrived, both, place, shown
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Int64s


def before_mismatches(view: StreamView) -> Ruling:
    """S29: rows whose before-image contradicts the row of their key that precedes it by position. A change is lost.

    Compared are first deliveries of one session between two of its markers; a repetition is not compared again. Not
    judged: the first row of a key; images that tell nothing of a column (`checkers.columns.images`); streams that may
    skip versions or drop events; rows at one position of which one came again, as the order between them is not known.
    A row of a snapshot counts as the row before only if the snapshot came first in its session, at a lower position,
    and nothing later shows the same value: a snapshot may overlap the stream, which then reaches what it showed. Nor
    does it count if a change of the key has a lower position: that change was under way, so the snapshot does not show
    it. A witness is a row that was compared. O(n log n), and a decoding for each row whose image is not the known row.
    """
    images, contract = view.log.around.images, view.contract
    if images is None or contract.versions != "every" or contract.delivery == "at-most-once":
        return Ruling.nothing()
    row, before = _pairs(view)
    kept = images.have(view.deliveries.seq[row])
    row, before = row[kept], before[kept]
    d = view.deliveries
    is_broken = images.contradict(d.seq[row], d.value[before])
    order = np.argsort(row[is_broken])
    return Ruling.of_events(row[is_broken][order], before[is_broken][order], witnesses=len(row))


def _pairs(view: StreamView) -> tuple[Int64s, Int64s]:
    """Rows of the log that can be compared, each with the event of its key before it by position."""
    d = view.deliveries
    rows = np.flatnonzero(view.coverage.begins & is_kind(d.kind, (ROW, BACKFILL)) & (d.position != NEVER))
    part = segments(view.session, is_marker(d), rows)
    line = codes(part, d.key[rows], np.zeros_like(rows) if view.contract.is_position_global else d.span[rows])
    order = ascending(line, d.position[rows])
    rows, line, part = rows[order], line[order], part[order]
    is_sure = _are_sure(view, rows, codes(line, d.position[rows]))
    later = np.flatnonzero(~first_of_each(line))
    row, before = rows[later], rows[later - 1]
    is_meant = (d.kind[row] == ROW) & is_sure[later] & is_sure[later - 1]
    is_after_row = d.kind[before] == ROW
    if not is_after_row.all():
        is_meant &= is_after_row | _is_exact(view, rows, line, part, later)
    return row[is_meant], before[is_meant]


def _are_sure(view: StreamView, rows: Int64s, tie: Int64s) -> Bools:
    """False for rows that share their position with others of their key, of which one came again."""
    count = int(tie.max(initial=-1)) + 1
    repeated = np.zeros(count, np.bool_)
    repeated[tie[view.is_repeated[rows]]] = True
    result: Bools = (np.bincount(tie, minlength=count)[tie] == 1) | ~repeated[tie]
    return result


def _is_exact(view: StreamView, rows: Int64s, line: Int64s, part: Int64s, later: Int64s) -> Bools:
    """True for places whose row follows a snapshot's row that shows what was there just before it."""
    d = view.deliveries
    row, before = rows[later], rows[later - 1]
    by_time = np.argsort(rows)
    streamed = by_time[d.kind[rows[by_time]] == ROW]
    first = np.append(rows[streamed], NEVER)[first_places(part[streamed], int(part.max(initial=0)) + 1)]
    is_whole = (before < first[part[later]]) & (before < row) & (d.position[before] < d.position[row])
    of_value = codes(line, d.value[rows])
    index = GroupIndex(of_value, np.arange(len(rows)))
    reached = index.first(of_value[later - 1], later) >= 0
    is_under_way = count_so_far(line, d.kind[rows] == ROW)[later - 1] > 0
    result: Bools = is_whole & ~reached & ~is_under_way
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    known = f"{shown(event, name)}{place(event, name)}, {after(event, mark)} before"
    return f"{arrived(example, name)}, but its before-image is not the previous row of the key, {known}."


BEFORE_MISMATCH: Final = Rule(
    name="before-mismatch",
    id="S29",
    rank=95,
    anomaly=Anomaly(
        meaning="The before-image of a row contradicts the previous row of its key: a change between the two is lost.",
        cause=Cause.LATE,
    ),
    witness="a row with a before-image, or an update or deletion, compared with the row of its key before it",
    needs=frozenset({Need.IMAGES}),
    scope=OfLog(before_mismatches, _sentence),
)
