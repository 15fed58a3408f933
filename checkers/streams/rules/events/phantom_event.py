"""S11 phantom-event: every event shows a value that some operation wrote."""

from typing import Final

import numpy as np

from checkers.columns.table import Join
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import arrived
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import FAIL


def phantom_events(view: StreamView) -> Ruling:
    """S11: events with values that no operation wrote to their key, or only operations that certainly failed.

    A value that an operation of unclear outcome wrote is no phantom. Nothing is judged without a source, or if the
    system makes events of its own (`system_events`). A witness is an event of a key to which the source refused a
    write.
    """
    d, w = view.deliveries, view.writes
    rows = np.flatnonzero(view.is_phantom)
    failed = np.flatnonzero(w.outcome == FAIL)
    place = Join([d.key[rows], d.value[rows]], [w.key[failed], w.value[failed]]).last
    write = np.append(failed, -1)[place]
    is_event = np.zeros(len(d.kind), np.bool_)
    is_event[view.first] = np.isin(d.key[view.first], w.key[failed]) & (not view.contract.system_events)
    is_event[rows] = True
    return Ruling.of_writes(rows, write, witnesses=int(is_event.sum()))


def _sentence(example: Example, name: Names) -> str:
    failed = example.missed
    why = "no operation ever wrote it" if failed is None else f"operation {failed.op}, which wrote it, certainly failed"
    return f"{arrived(example, name)}, but {why}."


PHANTOM_EVENT: Final = Rule(
    name="phantom-event",
    id="S11",
    rank=80,
    anomaly=Anomaly(meaning="An event whose write was never attempted, or certainly failed.", cause=Cause.EVENT),
    witness="an event of a key of which a write failed",
    needs=frozenset({Need.SOURCE}),
    scope=OfLog(phantom_events, _sentence),
)
