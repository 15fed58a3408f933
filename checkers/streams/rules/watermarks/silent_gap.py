"""S22 silent-gap: a stream with gap markers reports what it lost."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, earliest_of_each, expand
from checkers.history.names import Names, capital
from checkers.streams.closings import missing_events
from checkers.streams.examples import Example
from checkers.streams.findings import lost, written
from checkers.streams.rule import Cut, Need, OfLog, Rule
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import GAP, NEVER, Int64s


def silent_gaps(view: StreamView) -> Ruling:
    """S22: positions of lost events that no marker named before a watermark of the session closed them.

    These are the violations of S09, which excludes what a marker covers. A marker that names its first position covers
    nothing below it: writes lost between the last watermark before the marker and that position are silent gaps too.
    Each position is reported once per session. Witnesses are the gap markers, and these losses.
    """
    if not view.contract.has_gap_marker:
        return Ruling.nothing()
    missing, jumped = missing_events(view), _jumped(view)
    watermark = np.concatenate((missing.watermark, jumped[0]))
    write = np.concatenate((missing.write, jumped[1]))
    chosen = earliest_of_each(codes(view.session[watermark], view.writes.position[write]), watermark)
    markers = int(np.count_nonzero(view.deliveries.kind == GAP))
    return Ruling.of_writes(watermark[chosen], write[chosen], witnesses=markers + len(chosen))


def _jumped(view: StreamView) -> tuple[Int64s, Int64s]:
    """Watermarks, and the lost writes that they close, between the watermark before a marker and the marker's position.

    Execution: watermark 4; a marker says that position 9 and what follows may be missing; the session opens again at
    12, and announces 13. A write at 7 that never came was neither closed before the marker nor covered by it.
    """
    d, w = view.deliveries, view.writes
    is_closed_at = view.contract.closed == "<="
    gaps = np.flatnonzero((d.kind == GAP) & (d.key == NEVER) & (d.span < 0) & (d.position != NEVER))
    marks = view.lanes.rows[d.span[view.lanes.rows] < 0]
    by_time = GroupIndex(view.session[marks], marks, marks)
    by_height = GroupIndex(view.session[marks], d.position[marks], marks)
    last = by_time.last_before(view.session[gaps], gaps)
    low = np.where(last >= 0, np.append(d.position, 0)[last], -1)
    one_group = np.zeros_like(gaps)
    index = GroupIndex(np.zeros_like(view.expected), w.position[view.expected])
    begin = index.place(one_group, low, above=is_closed_at)
    owner, place = expand(begin, index.place(one_group, d.position[gaps]))
    gap, candidate = gaps[owner], index.rows[place]
    write = view.expected[candidate]
    covered = view.coverage.at(view.session[gap], w.key[write], w.span[write], gap)
    is_lost = covered.reaches(w.position[write])
    is_lost &= view.first_times(view.scope).at(view.of_write(view.scope[gap], candidate)) == NEVER
    gap, write, candidate = gap[is_lost], write[is_lost], candidate[is_lost]
    session = view.session[gap]
    closing = by_height.place(session, w.position[write], above=not is_closed_at)
    closing = np.maximum(closing, by_time.place(session, gap))  # The order is the same: no watermark went back.
    is_announced = closing < by_time.place(session + 1, np.full(len(session), -1))
    watermark, write, candidate = by_time.rows[closing[is_announced]], write[is_announced], candidate[is_announced]
    is_replaced = superseded(
        view,
        Versions.of_expected(view, candidate),
        group=view.scope,
        watermark=watermark,
        height=d.position[watermark],
        before=np.full(len(watermark), NEVER),
    )
    return watermark[~is_replaced], write[~is_replaced]


def _sentence(example: Example, name: Names) -> str:
    what, before = capital(written(lost(example), name)), name.forms.watermark(example.watermark.position)
    return f"{what} never reached {example.subscriber}, and no gap marker said so before {before}."


SILENT_GAP: Final = Rule(
    name="silent-gap",
    id="S22",
    rank=100,
    anomaly=Anomaly(meaning="Events were lost, and no gap marker said so.", cause=Cause.ORDER),
    witness="a gap marker, or a loss that no marker named",
    needs=frozenset({Need.SOURCE, Need.POSITIONS, Need.ALL}),
    cut=Cut.ROW,
    scope=OfLog(silent_gaps, _sentence, after=(missing_events,)),
)
