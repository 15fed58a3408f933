"""S09 missing-event: every committed write that a watermark or, in order, a later row closes has arrived.

A rule about the stream alone cannot see a key all of whose events were lost: this one compares with the source.
"""

from typing import Final

import numpy as np

from checkers.columns.index import ascending
from checkers.columns.runs import distinct
from checkers.history.names import Names
from checkers.streams.closings import missing_events
from checkers.streams.examples import Example
from checkers.streams.findings import announced, arrived, lost, written
from checkers.streams.rule import Cut, Need, OfLog, Rule
from checkers.streams.rules.sessions.holes import resume_holes, snapshot_holes
from checkers.streams.rules.sessions.passings import passed_events
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import ROW


def lost_events(view: StreamView) -> Ruling:
    """S09: expected writes that a watermark, or a later row in the stream's order, closes, and that never arrived.

    A write that S13 or S25 reports is left to it, unless a watermark closes it. Each write is reported once per scope,
    under the first event that closes it, a watermark if there is one. O(n log n).
    """
    below, passed = missing_events(view), passed_events(view)
    others = (below, resume_holes(view), snapshot_holes(view))
    blamed = np.concatenate([view.blamed(ruling) for ruling in others])
    rest = np.flatnonzero(~np.isin(view.blamed(passed), blamed))
    mark = np.append(below.watermark, passed.watermark[rest])
    write = np.append(below.write, passed.write[rest])
    order = ascending(mark, write)
    witnesses = [ruling.witness_rows for ruling in (below, passed) if ruling.witness_rows is not None]
    rows = distinct(np.concatenate([mark[:0], *witnesses]))
    return Ruling.of_writes(mark[order], write[order], witnesses=len(rows), witness_rows=rows)


def _sentence(example: Example, name: Names) -> str:
    write = lost(example)
    if example.watermark.kind == ROW:
        return f"{arrived(example, name)}, but {written(write, name)}, which precedes it, never arrived."
    return f"{announced(example, name)}, but {written(write, name, beside=example.watermark)} never arrived."


MISSING_EVENT: Final = Rule(
    name="missing-event",
    id="S09",
    rank=40,
    anomaly=Anomaly(
        meaning="A committed write below a watermark, or before a later row in the stream's order, never arrived.",
        cause=Cause.LATE,
    ),
    witness="a watermark that newly closes a committed write in live coverage, or a row that does, in a declared order",
    needs=frozenset({Need.SOURCE, Need.POSITIONS, Need.ALL}),
    cut=Cut.ROW,
    scope=OfLog(lost_events, _sentence, after=(missing_events, resume_holes, snapshot_holes)),
)
