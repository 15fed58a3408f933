"""Timestamps of transactions by themselves, whatever was read: each has one, of its own, and none comes too late.

Of systems whose stream's positions are commit timestamps.
1. `double-timestamp`: an ok transaction commits above its start, at a timestamp that no other has where positions are
   unique; and all rows of one transaction, in all sessions, have one position, which is that of its answer.
2. `watermark-above-start`, where positions follow a clock: a transaction starts above every watermark that was
   announced before it was invoked. So no watermark was above the newest timestamp that had been given.
3. `commit-below-bound`: a transaction commits at or above each bound that a node gave to others. State `bound`: the key
   is the transaction's start, the value the bound.
4. `tracked-rows`: what a node keeps to advance a watermark is one entry at most for each lock of a small transaction,
   and one for each large transaction, however many rows that has. State `tracked`: value, the numbers of entries, of
   such locks, of large transactions, and of their locks.
Rows are those of a transaction if they name its number, which is its start, as their unit. O(n log n).

Witnesses: of 1, transactions with both timestamps, and rows of transactions; of 2, transactions that were invoked after
a watermark; of 3, commits of transactions with a bound; of 4, states in which large transactions have several locks.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import convert

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Names
from checkers.history.tables import State, rows, states, stream_events
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause, Declared
from harness.core.columns import NEVER, OK, Int64s
from harness.core.promises import View
from harness.core.verdict import Judgement

CHECKER: Final = "timestamps"
DOUBLE: Final = "double-timestamp"
ABOVE: Final = "watermark-above-start"
BELOW: Final = "commit-below-bound"
TRACKED: Final = "tracked-rows"
ANOMALIES: Final[Declared] = {
    DOUBLE: Anomaly(
        meaning="A transaction has two commit timestamps, or another one's, or one not above its start.",
        cause=Cause.PAST,
    ),
    ABOVE: Anomaly(
        meaning="A transaction started at or below a watermark that had been announced before.", cause=Cause.PAST
    ),
    BELOW: "A transaction committed below its own bound, which others had received.",
    TRACKED: "To advance a watermark more was kept than an entry for each small lock and each large transaction.",
}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all transactions with a start timestamp. Raises HistoryError if the history is damaged."""
    contract = context.contract
    witnesses = dict.fromkeys(ANOMALIES, 0)
    if contract is None or contract.position != "commit-timestamp":
        return judgement(CHECKER, ANOMALIES, (), witnesses)
    begun = _Begun(history)
    troubles = _answers(begun, context.name, is_unique=contract.is_position_unique)
    views = context.bounds.views
    row_count, torn = _rows(history, begun, context.name, views)
    witnesses[DOUBLE] = int(np.count_nonzero(begun.commit != NEVER)) + row_count
    reported, witnesses[BELOW], witnesses[TRACKED] = _reported(history, context.name)
    troubles += reported
    if contract.follows_clock:
        late, witnesses[ABOVE] = _late(history, begun, context.name, views, is_inclusive=contract.closed == "<=")
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


def _rows(history: Path, begun: _Begun, name: Names, views: tuple[View, ...]) -> tuple[int, list[Trouble]]:
    """The number of rows with a unit, and transactions with rows at two positions, or elsewhere than answered."""
    unit, position = _events(history, "row", ("unit", "position"), views)
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


def _late(
    history: Path, begun: _Begun, name: Names, views: tuple[View, ...], *, is_inclusive: bool
) -> tuple[list[Trouble], int]:
    """Transactions that started at or below a watermark announced before; and how many were invoked after one."""
    ns, position = _events(history, "watermark", ("ns", "position"), views)
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


def _events(history: Path, kind: str, columns: Sequence[str], views: tuple[View, ...]) -> Sequence[Int64s]:
    """Columns of a stream's events of that kind, with NEVER for null; empty if there is no stream."""
    if not (history / "events.parquet").is_file():
        return [np.zeros(0, np.int64) for _ in columns]
    events = stream_events(history, kind, columns, views)
    return [integers(events[column], NEVER) for column in columns]


def _reported(history: Path, name: Names) -> tuple[list[Trouble], int, int]:
    """The violations of 3 and 4, by what nodes recorded; and the witnesses of each."""
    if not (history / "states.parquet").is_file():
        return [], 0, 0
    found = states(history, Dictionary(history), "bound", "tracked")
    bounds: dict[int, tuple[int, str]] = {}  # By start: the highest bound, and who gave it.
    for state in found["bound"]:
        start = convert(state.key, int)
        bounds[start] = max(bounds.get(start, (0, "")), (convert(state.value, int), state.node))
    commits = {start: commit for start, commit in _commits(history).items() if start in bounds} if bounds else {}
    tracked = [(state, convert(state.value, tuple[int, int, int, int])) for state in found["tracked"]]
    witnesses = sum(held > large for _, (_, _, large, held) in tracked)
    return [*_below(bounds, commits, name), *_grown(tracked)], len(commits), witnesses


def _commits(history: Path) -> dict[int, tuple[int, int]]:
    """The least commit timestamp of each transaction, by its start, and the operation that has it; -1: a row."""
    answers = [
        (op["start_ts"], op["commit_ts"], op["index"])
        for op in rows(history, "ops", ["index", "start_ts", "commit_ts"], outcome=[OK])
    ]
    answers += [
        (row["unit"], row["position"], -1) for row in rows(history, "events", ["unit", "position"], kind=["row"])
    ]
    found: dict[int, tuple[int, int]] = {}
    for start, commit, index in answers:
        if start is not None and commit is not None and (start not in found or commit < found[start][0]):
            found[start] = (commit, index)
    return found


def _below(bounds: dict[int, tuple[int, str]], commits: dict[int, tuple[int, int]], name: Names) -> Iterator[Trouble]:
    """Commits below a bound, in the order of their starts."""
    for start, (commit, index) in sorted(commits.items()):
        bound, node = bounds[start]
        if commit < bound:
            who = f"T{index}" if index >= 0 else f"The transaction {name.forms.position(start)}"
            sentence = (
                f"{who} committed at {name.forms.position(commit)}, although {node} had answered others that it would "
                f"commit at {name.forms.position(bound)} or above."
            )
            yield Trouble(BELOW, sentence, (start, commit), (index,) if index >= 0 else ())


def _grown(tracked: Sequence[tuple[State, tuple[int, int, int, int]]]) -> Iterator[Trouble]:
    """Nodes with more entries than small locks and large transactions."""
    for state, (entries, small, large, held) in tracked:
        if entries > small + large:
            sentence = (
                f"{state.node} kept {entries} entries for a watermark, with {small} locks of small transactions and "
                f"{large} large transactions, which held {held} locks."
            )
            yield Trouble(TRACKED, sentence, (state.node, state.ns))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
