"""S24 rewritten-offset: an offset of a log shows the same event whenever it is read."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes
from checkers.columns.runs import distinct
from checkers.history.names import Names
from checkers.streams.coverage import logs_of
from checkers.streams.examples import Example
from checkers.streams.findings import after, both, place, shown
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, ROW, Bools, Int64s


def rewritten_offsets(view: StreamView) -> Ruling:
    """S24: rows at a position where a row with another key or value was read before, in any session.

    Only if a position has one event (`events_at_position`). One key with two values is left to S04, if the value is not
    part of the identity. A log that ended, and is read again, is another one with the same name. Missing events are no
    violation: old ones may be removed. A witness is a position that was read in two sessions, or showed two events.
    O(n log n).
    """
    if view.contract.events_at_position != "one":
        return Ruling.nothing()
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.value != NEVER))
    log = logs_of(d, view.session, is_position_global=view.contract.is_position_global)
    offset = codes(log[rows], d.position[rows])
    earliest = GroupIndex(offset, rows, rows).first(offset, np.zeros(len(rows), np.int64))
    differs = (earliest < rows) & ~_is_alike(view, rows, earliest)
    is_witness = differs | (view.session[rows] != view.session[earliest])
    witnesses = len(distinct(offset[is_witness]))
    return Ruling.of_events(rows[differs], earliest[differs], witnesses=witnesses)


def _is_alike(view: StreamView, rows: Int64s, others: Int64s) -> Bools:
    """True for pairs of rows that are equal, or whose difference another rule reports."""
    d = view.deliveries
    result: Bools = d.key[rows] == d.key[others]
    if view.contract.identity == "position+key+value":
        result &= d.value[rows] == d.value[others]
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    again = f"{example.subscriber} read {shown(mark, name)}{place(mark, name)}"
    return f"{again}, where {after(event, mark)} before {shown(event, name)} had been read."


REWRITTEN_OFFSET: Final = Rule(
    name="rewritten-offset",
    id="S24",
    rank=210,
    anomaly=Anomaly(meaning="One offset of a log was read twice, and showed two events.", cause=Cause.SESSION),
    witness="an offset that was read in two sessions",
    scope=OfLog(rewritten_offsets, _sentence),
)
