"""S26 moved-key: the events of a key stay on one partition, unless a move is declared."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, first_rows, is_kind
from checkers.history.names import Names
from checkers.streams.coverage import ENDS
from checkers.streams.examples import Example
from checkers.streams.findings import after, arrived, both, shown
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OPEN, ROW, SUCCESSORS, Bools, Int64s


def moved_keys(view: StreamView) -> Ruling:
    """S26: rows of a key on another partition than the key's previous row in the session, without a declared move.

    A move is declared, between the two rows, by a marker of either partition, or of the whole session, that opens or
    ends it, or declares its place among others. Rows without a partition are left out, and so are repetitions on the
    same partition. A witness is a row compared with the one before it, in a session with several partitions.
    """
    d = view.deliveries
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.span >= 0))
    rows = rows[_has_several(view.session[rows], d.span[rows])]
    rows = rows[first_rows(view.session[rows], view.identity[rows], d.span[rows])]
    by_key = codes(view.session[rows], d.key[rows])
    earlier = GroupIndex(by_key, rows, rows).last_before(by_key, rows)
    is_compared = earlier >= 0
    moved = np.flatnonzero(is_compared & (d.span[earlier] != d.span[rows]))
    row, before = rows[moved], earlier[moved]
    marks = np.flatnonzero(is_kind(d.kind, (OPEN, SUCCESSORS, *ENDS)) & (d.key == NEVER))
    spans = int(d.span.max(initial=-1)) + 2
    index = GroupIndex(view.session[marks] * spans + d.span[marks] + 1, marks, marks)
    session = view.session[row] * spans
    declared = np.maximum.reduce(
        [index.last_before(session + span + 1, row) for span in (np.full(len(row), -1), d.span[row], d.span[before])]
    )
    is_silent = declared < before
    return Ruling.of_events(row[is_silent], before[is_silent], witnesses=int(is_compared.sum()))


def _has_several(group: Int64s, span: Int64s) -> Bools:
    """True for rows whose group has rows of several spans."""
    result: Bools = np.bincount(group[first_rows(group, span)])[group] > 1
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    where = f"on another partition than {shown(event, name)} {after(event, mark)} before it"
    return f"{arrived(example, name)} {where}, and no move was declared."


MOVED_KEY: Final = Rule(
    name="moved-key",
    id="S26",
    rank=150,
    anomaly=Anomaly(
        meaning="Events of one key came on two partitions, and no move was declared between.", cause=Cause.SESSION
    ),
    witness="a row compared with the one before it, on one of several partitions",
    scope=OfLog(moved_keys, _sentence),
)
