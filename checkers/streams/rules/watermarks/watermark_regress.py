"""S07 watermark-regress: watermarks do not go back."""

from typing import Final

import numpy as np

from checkers.columns.index import codes
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import after, announced, both
from checkers.streams.rule import Cut, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import WATERMARK


def regressions(view: StreamView) -> Ruling:
    """S07: watermarks below an earlier one of their scope and partition.

    Equal is legal, and so are the lower watermarks of a reader that lags behind another one of its partition. A witness
    is a watermark after another one in its scope and partition.
    """
    rows = np.flatnonzero(view.deliveries.kind == WATERMARK)
    group = codes(view.scope[rows], view.deliveries.span[rows])
    lower = rows[view.is_regress[rows]]
    witnesses = len(rows) - int(group.max(initial=-1)) - 1
    return Ruling.by_time(lower, view.surpassed[lower], witnesses=witnesses)


def _sentence(example: Example, name: Names) -> str:
    mark, earlier = both(example)
    before = name.forms.watermark(earlier.position)
    where = "" if example.partition is None else f" on partition {example.partition}"
    return f"{announced(example, name)}{where} {after(earlier, mark)} after {before}: it went back."


WATERMARK_REGRESS: Final = Rule(
    name="watermark-regress",
    id="S07",
    rank=30,
    anomaly=Anomaly(meaning="A watermark went back.", cause=Cause.WATERMARK),
    witness="a watermark after another one in its scope and partition",
    is_online=True,
    cut=Cut.STATE,
    scope=OfLog(regressions, _sentence),
)
