"""S15 watermark-above-partitions: the watermark of the whole stream is not above that of a partition."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, count_so_far, expand, first_rows, is_kind, max_so_far
from checkers.history.names import Names, capital
from checkers.streams.coverage import ENDS, is_marker, is_session_marker
from checkers.streams.examples import Example
from checkers.streams.findings import both
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OPEN, WATERMARK, Int64s

NOT_COUNTED = -1


def watermarks_above_partitions(view: StreamView) -> Ruling:
    """S15: watermarks of the whole stream above what the session had received from one of its partitions.

    Nothing is judged unless the contract says that the watermark of the whole is made from those of the partitions as
    the session received them (`is_whole_least`), nor if watermarks rest without writes, as an idle partition then
    bounds nothing.

    A partition counts from its first watermark on, or from where it was opened, at that position, until a marker ends
    it. After an interruption by a marker of the whole session, or a gap, it counts from its next watermark. A witness
    is a watermark of the whole in a session in which two partitions count, with different watermarks. O(n log n), and
    the watermarks of the whole times the partitions of their session.
    """
    d, contract = view.deliveries, view.contract
    marks = np.flatnonzero((d.kind == WATERMARK) & (d.span < 0) & ~view.is_regress)
    if not contract.is_whole_least or contract.wm_idle != "moves" or not contract.is_position_global:
        return Ruling.nothing()
    owner, last, height = _levels_at(view, marks)
    lowest, highest = np.full(len(marks), NEVER, np.int64), np.full(len(marks), NOT_COUNTED, np.int64)
    np.minimum.at(lowest, owner, height)
    np.maximum.at(highest, owner, height)
    is_above = d.position[marks] > lowest
    order = np.lexsort((last, height, owner))
    lowest_row = order[first_rows(owner[order])]
    shown = np.full(len(marks), -1, np.int64)
    shown[owner[lowest_row]] = last[lowest_row]
    witnesses = int(np.count_nonzero(is_above | (lowest < highest)))
    return Ruling.of_events(marks[is_above], shown[is_above], witnesses=witnesses)


def _levels_at(view: StreamView, marks: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The partitions that count at each of `marks`: the mark's place, the row that sets the height, and the height."""
    d = view.deliveries
    is_part = (d.span >= 0) & (d.key == NEVER) & ((d.kind == WATERMARK) | is_marker(d))
    rows = np.flatnonzero(is_part)
    lane = codes(view.session[rows], d.span[rows])
    begun = count_so_far(view.session, is_session_marker(d))
    height = _heights(view, rows, codes(lane, begun[rows], count_so_far(lane, is_marker(d)[rows])))
    _, first = np.unique(lane, return_index=True)
    session = view.session[rows[first]]  # For each lane; lanes are sorted by session.
    begin, end = (np.searchsorted(session, view.session[marks], side) for side in ("left", "right"))
    owner, wanted = expand(begin, end)
    place = GroupIndex(lane, rows).last_before(wanted, marks[owner])
    owner, place = owner[place >= 0], place[place >= 0]
    counts = (height[place] != NOT_COUNTED) & (begun[rows[place]] == begun[marks[owner]])
    return owner[counts], rows[place[counts]], height[place[counts]]


def _heights(view: StreamView, rows: Int64s, segment: Int64s) -> Int64s:
    """The height of a partition at each of `rows`. A segment goes from one marker of the partition to the next."""
    d = view.deliveries
    is_announced = (d.kind[rows] == WATERMARK) | ((d.kind[rows] == OPEN) & (d.position[rows] != NEVER))
    height = max_so_far(segment, np.where(is_announced, d.position[rows], NOT_COUNTED))
    _, first = np.unique(segment, return_index=True)
    is_over = is_kind(d.kind[rows[first]], ENDS)
    return np.where(is_over[segment], NOT_COUNTED, height)


def _sentence(example: Example, name: Names) -> str:
    mark, part = both(example)
    said = "had been opened at" if part.kind == OPEN else "was at"
    whole = f"{capital(name.forms.watermark(mark.position))} of the whole stream was announced to {example.subscriber}"
    return f"{whole}, when a partition of it {said} {name.forms.position(part.position)}, as the session knew."


WATERMARK_ABOVE_PARTITIONS: Final = Rule(
    name="watermark-above-partitions",
    id="S15",
    rank=200,
    anomaly=Anomaly(
        meaning="A watermark of the whole stream is above the watermark of a partition.", cause=Cause.WATERMARK
    ),
    witness="a watermark of the whole stream while two partitions differ",
    scope=OfLog(watermarks_above_partitions, _sentence),
)
