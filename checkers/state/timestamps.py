"""Timestamps of transactions by themselves, whatever was read: each has one, of its own, and none comes too late.

Of systems whose stream's positions are commit timestamps.
1. `double-timestamp`: an ok transaction commits above its start, at a timestamp that no other has where positions are
   unique; and all rows of one transaction, in all sessions, have one position, which is that of its answer.
2. `watermark-above-start`, where positions follow a clock: a transaction starts above every watermark that was
   announced before it was invoked. So no watermark was above the newest timestamp that had been given.
Rows are those of a transaction if they name its number as their unit. O(n log n).

Witnesses: of 1, transactions with both timestamps, and rows of transactions; of 2, transactions that were invoked after
a watermark.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.engine.protocol import Check, Context
from checkers.history.names import Names
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import NEVER, OK, Int64s
from harness.core.verdict import Judgement

CHECKER: Final = "timestamps"
DOUBLE: Final = "double-timestamp"
ABOVE: Final = "watermark-above-start"
ANOMALIES: Final = {
    DOUBLE: "A transaction has two commit timestamps, or another one's, or one not above its start.",
    ABOVE: "A transaction started at or below a watermark that had been announced before.",
}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all transactions with a start timestamp. Raises HistoryError if the history is damaged."""
    contract = context.contract
    witnesses = dict.fromkeys(ANOMALIES, 0)
    if contract is None or contract.position != "commit-timestamp":
        return judgement(CHECKER, ANOMALIES, (), witnesses)
    begun = _Begun(history)
    troubles = _answers(begun, context.name, is_unique=contract.is_position_unique)
    rows, torn = _rows(history, begun, context.name)
    witnesses[DOUBLE] = int(np.count_nonzero(begun.commit != NEVER)) + rows
    if contract.follows_clock:
        late, witnesses[ABOVE] = _late(history, begun, context.name, is_inclusive=contract.closed == "<=")
        troubles += late
    return judgement(CHECKER, ANOMALIES, [*troubles, *torn], witnesses)


class _Begun:
    """The ok transactions with a start timestamp, by index. Columns have shape (n,); NEVER stands for none."""

    def __init__(self, history: Path) -> None:
        columns = ["index", "is_txn", "invoke_ns", "start_ts", "commit_ts", "txn"]
        ops = read_columns(history / "ops.parquet", columns, outcome=[OK])
        start = integers(ops["start_ts"], NEVER)
        kept = np.flatnonzero((start != NEVER) & np.asarray(ops["is_txn"].to_numpy(zero_copy_only=False), bool))
        kept = kept[np.argsort(integers(ops["index"])[kept], kind="stable")]
        self.index = integers(ops["index"])[kept]
        self.invoke_ns = integers(ops["invoke_ns"])[kept]
        self.start = start[kept]
        self.commit = integers(ops["commit_ts"], NEVER)[kept]
        self.unit = integers(ops["txn"], NEVER)[kept]


def _answers(begun: _Begun, name: Names, *, is_unique: bool) -> list[Trouble]:
    """Transactions that commit at or below their start, or where another one does."""
    found = []
    for row in np.flatnonzero(begun.commit <= begun.start).tolist():
        index, commit = int(begun.index[row]), int(begun.commit[row])
        sentence = (
            f"T{index} committed at {name.forms.position(commit)}, and had started at "
            f"{name.forms.position(int(begun.start[row]))}: it must commit above."
        )
        found.append(Trouble(DOUBLE, sentence, (index, commit), (index,)))
    committed = np.flatnonzero(begun.commit != NEVER) if is_unique else np.zeros(0, np.int64)
    order = committed[np.argsort(begun.commit[committed], kind="stable")]
    for place in np.flatnonzero(np.diff(begun.commit[order]) == 0).tolist():
        one, other = int(begun.index[order[place]]), int(begun.index[order[place + 1]])
        commit = int(begun.commit[order[place]])
        sentence = f"T{one} and T{other} both committed at {name.forms.position(commit)}."
        found.append(Trouble(DOUBLE, sentence, (one, other, commit), (one, other)))
    return found


def _rows(history: Path, begun: _Begun, name: Names) -> tuple[int, list[Trouble]]:
    """The number of rows with a unit, and transactions with rows at two positions, or elsewhere than answered."""
    unit, position = _events(history, "row", "unit", "position")
    kept = (unit != NEVER) & (position != NEVER)
    answered = (begun.unit != NEVER) & (begun.commit != NEVER)
    units = np.concatenate((unit[kept], begun.unit[answered]))
    places = np.concatenate((position[kept], begun.commit[answered]))
    order = np.lexsort((places, units))
    units, places = units[order], places[order]
    found = []
    for row in np.flatnonzero((np.diff(units) == 0) & (np.diff(places) != 0)).tolist():
        number, two = int(units[row]), places[row : row + 2].tolist()
        ops = tuple(begun.index[begun.unit == number].tolist())
        who = f"T{ops[0]}" if ops else f"The transaction {name.forms.position(number)}"
        sentence = f"{who} has two commit timestamps: {name.forms.position(two[0])} and {name.forms.position(two[1])}."
        found.append(Trouble(DOUBLE, sentence, (number, *two), ops))
    return int(np.count_nonzero(kept)), found


def _late(history: Path, begun: _Begun, name: Names, *, is_inclusive: bool) -> tuple[list[Trouble], int]:
    """Transactions that started at or below a watermark announced before; and how many were invoked after one."""
    ns, position = _events(history, "watermark", "ns", "position")
    order = np.argsort(ns, kind="stable")
    ns, highest = ns[order], np.maximum.accumulate(np.where(position == NEVER, -1, position)[order])
    place = np.searchsorted(ns, begun.invoke_ns) - 1  # The last one before: one of the same moment may be later.
    after = np.flatnonzero(place >= 0)
    floor = highest[place[after]]
    is_late = begun.start[after] <= floor if is_inclusive else begun.start[after] < floor
    found = []
    for row, watermark in zip(after[is_late].tolist(), floor[is_late].tolist(), strict=True):
        index, start = int(begun.index[row]), int(begun.start[row])
        sentence = (
            f"T{index} started at {name.forms.position(start)}, although {name.forms.watermark(watermark)} had been "
            "announced before it was invoked."
        )
        found.append(Trouble(ABOVE, sentence, (index, start, watermark), (index,)))
    return found, len(after)


def _events(history: Path, kind: str, *columns: str) -> Sequence[Int64s]:
    """Columns of the events of that kind, with NEVER for null; empty if there is no stream."""
    path = history / "events.parquet"
    if not path.is_file():
        return [np.zeros(0, np.int64) for _ in columns]
    events = read_columns(path, columns, kind=[kind])
    return [integers(events[column], NEVER) for column in columns]


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
