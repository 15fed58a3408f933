"""S31 early-event: no event comes before its write was invoked."""

from typing import Final

import numpy as np

from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import arrived, lost
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER


def early_events(view: StreamView) -> Ruling:
    """S31: events that show the value of a write before the operation that wrote it was invoked.

    The order is that of the records. A history in which every event precedes its write is not judged: it was put
    together from two files, one after the other. A witness is an event compared with its write.
    """
    d, w = view.deliveries, view.writes
    rows = np.flatnonzero((view.match >= 0) & (d.value != NEVER))
    write = view.expected[view.match[rows]]
    is_same = (d.value[rows] == w.value[write]) & (w.invoke_seq[write] != NEVER)
    rows, write = rows[is_same], write[is_same]
    is_early = d.seq[rows] < w.invoke_seq[write]
    if len(rows) == 0 or is_early.all():
        return Ruling.nothing()
    return Ruling.of_writes(rows[is_early], write[is_early], witnesses=len(rows))


def _sentence(example: Example, name: Names) -> str:
    return f"{arrived(example, name)} before operation {lost(example).op}, which wrote it, was invoked."


EARLY_EVENT: Final = Rule(
    name="early-event",
    id="S31",
    rank=85,
    anomaly=Anomaly(meaning="An event came before the operation that wrote its value was invoked.", cause=Cause.EVENT),
    witness="an event compared with its write",
    needs=frozenset({Need.SOURCE}),
    scope=OfLog(early_events, _sentence),
)
