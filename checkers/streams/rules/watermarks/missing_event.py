"""S09 missing-event: every write that a watermark closes has arrived.

A rule about the stream alone cannot see a key all of whose events were lost: this one compares with the source.
"""

from typing import Final

import numpy as np

from checkers.columns.index import earliest_of_each
from checkers.columns.runs import distinct
from checkers.history.names import Names
from checkers.streams.closings import closings
from checkers.streams.examples import Example
from checkers.streams.findings import announced, lost, written
from checkers.streams.rule import Need, OfKeys, Rule, per_key
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER


@per_key("write")
def missing_events(view: StreamView) -> Ruling:
    """S09: expected writes that a watermark closes in live coverage, never delivered in its scope nor superseded.

    A write that came later is left to S05 or S06. A witness is a watermark that newly closes an expected write in live
    coverage. Each write is reported once per scope, under the first watermark that closes it. O(n log n).
    """
    lanes, closed = view.lanes, closings(view)
    candidate, place = closed.candidate, closed.place
    scope, watermark = lanes.scope[closed.lane], lanes.rows[place]
    never = np.flatnonzero(closed.arrival == NEVER)
    versions, height = Versions.of_expected(view, candidate[never]), lanes.height[place[never]]
    is_replaced = superseded(
        view, versions, group=view.scope, watermark=watermark[never], height=height, before=np.full(len(never), NEVER)
    )
    missing = never[~is_replaced]
    chosen = missing[earliest_of_each(view.of_write(scope[missing], candidate[missing]), watermark[missing])]
    closing = lanes.rows[distinct(place)]
    return Ruling.of_writes(
        watermark[chosen], view.expected[candidate[chosen]], witnesses=len(closing), witness_rows=closing
    )


def _sentence(example: Example, name: Names) -> str:
    return f"{announced(example, name)}, but {written(lost(example), name, beside=example.watermark)} never arrived."


MISSING_EVENT: Final = Rule(
    name="missing-event",
    id="S09",
    rank=40,
    meaning="A committed write below a watermark never arrived.",
    witness="a watermark that newly closes a committed write in live coverage",
    needs=frozenset({Need.SOURCE, Need.POSITIONS}),
    scope=OfKeys(missing_events, _sentence),
)
