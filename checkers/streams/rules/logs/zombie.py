"""S17 zombie: a node that no longer owns a log appends nothing to it."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, ascending, codes, first_rows, max_so_far
from checkers.history.names import Names
from checkers.streams.coverage import logs_of
from checkers.streams.examples import Example
from checkers.streams.findings import both, first, place, shown
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, ROW


def zombie_events(view: StreamView) -> Ruling:
    """S17: rows that a former owner appended to a log after a newer owner had appended a row.

    Judged if events name the epoch of the owner (`epochs`), and by the order of the source's log, not that of receipt:
    rows that the old owner had appended before may be delivered after the change. A log that ended, and is read again,
    is another one with the same name. Each row is reported once. A witness is a change of the owner, in a log to which
    both appended rows. O(n log n).
    """
    d, contract = view.deliveries, view.contract
    if contract.epochs != "owners" or contract.position == "epoch":
        return Ruling.nothing()
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.epoch != NEVER))
    log = logs_of(d, view.session, is_position_global=contract.is_position_global)
    rows = rows[first_rows(log[rows], d.position[rows], d.epoch[rows], view.identity[rows])]
    # At one position the order is unknown, so there the newest epoch comes last.
    rows = rows[ascending(log[rows], d.position[rows], d.epoch[rows])]
    log, epoch = codes(log[rows]), d.epoch[rows]
    reached = max_so_far(log, epoch)
    broken = np.flatnonzero(epoch < reached)
    newer = GroupIndex(log, epoch, rows).first(log[broken], reached[broken])
    order = np.argsort(rows[broken], kind="stable")
    changes = int(codes(log, epoch).max(initial=-1)) - int(log.max(initial=-1))
    return Ruling.of_events(rows[broken][order], newer[order], witnesses=changes)


def _sentence(example: Example, name: Names) -> str:
    mark, newer = both(example)
    old = f"{first(mark, name)} stands{place(mark, name)}, put there by an older owner"
    return f"{old} than {shown(newer, name)}{place(newer, name)}: a replaced writer still wrote."


ZOMBIE: Final = Rule(
    name="zombie",
    id="S17",
    rank=230,
    anomaly=Anomaly(meaning="An act of a fenced owner took effect.", cause=Cause.EPOCH),
    witness="a change of a log's owner",
    is_online=True,
    scope=OfLog(zombie_events, _sentence),
)
