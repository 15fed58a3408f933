"""How transactions ended, and where the stream ends: guarantees G16, G19, G22 and G24.

1. `status-regress`: once an answer has shown a status of a transaction, no later request shows an earlier one, or the
   other end. A witness is a transaction that two requests showed, one after the other.
2. `uncommitted`: a transaction whose commit was accepted ends as committed; one that is still marked for commit is left
   to the check of settling. A witness is such a transaction.
3. `unended`: when a stream is sealed, each of its transactions has ended. A witness is a transaction of such a stream.
4. `cut-overrun`: a truncation took away nothing but events before its cut: those of segments that had ended, and in a
   segment at the cut those below its offset. A witness is a segment that begins later than at first.
5. `beyond-watermark`: a plain event that was acknowledged by the time of a stream's watermark, and whose writer counts
   there, lies before its cut. A witness is such an event, for the first watermark that covers it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Name, Stream, shown, stream
from harness.core.columns import APPEND, OK
from harness.core.verdict import Judgement

CHECKER: Final = "stream-ends"
REGRESS, UNCOMMITTED, UNENDED = "status-regress", "uncommitted", "unended"
OVERRUN, BEYOND = "cut-overrun", "beyond-watermark"
ANOMALIES: Final = {
    REGRESS: "A transaction's status went back, or from one end to the other.",
    UNCOMMITTED: "A transaction whose commit was accepted did not end as committed.",
    UNENDED: "A stream was sealed, and one of its transactions has not ended.",
    OVERRUN: "A truncation took away what lies behind its cut.",
    BEYOND: "An event lies behind the cut of a watermark of the stream that covers it.",
}
# From each status a transaction may be seen in these.
AFTER: Final = {
    "unknown": {"unknown", "open", "committing", "aborting", "committed", "aborted"},
    "open": {"open", "committing", "aborting", "committed", "aborted"},
    "committing": {"committing", "committed"},
    "aborting": {"aborting", "aborted"},
    "committed": {"committed"},
    "aborted": {"aborted"},
}
Row = Mapping[str, Any]


class Seen(NamedTuple):
    """A status that an operation's answer showed."""

    begun: int
    ended: int
    txn: int
    status: str
    op: int


def check(history: Path, context: Context) -> Judgement:
    """The judgement of transactions, cuts and watermarks. Raises HistoryError if the stream is damaged."""
    found = stream(history, context)
    if found.lacking is not None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, found.lacking))
    columns = ["index", "outcome", "f", "value", "txn", "invoke_ns", "complete_ns"]
    ops = [row for row in rows(history, "ops", columns) if row["outcome"] == OK]
    is_sealed = any(change.what == "state" and change.values[0] == "sealed" for change in found.changes)
    pairs, regresses = _regresses(_seen(ops))
    noted, beyond = _beyond(found, _acknowledged(history, ops))
    return judgement(
        CHECKER,
        ANOMALIES,
        [*regresses, *_uncommitted(found, ops), *(_unended(found) if is_sealed else ()), *_overrun(found), *beyond],
        {
            REGRESS: pairs,
            UNCOMMITTED: sum(row["txn"] is not None for row in ops),
            UNENDED: len(found.statuses) if is_sealed else 0,
            OVERRUN: sum(held.start > 0 for held in found.segments.values()),
            BEYOND: noted,
        },
    )


def _seen(ops: Sequence[Row]) -> list[Seen]:
    """All statuses that were shown, by the time of the answer."""
    found = []
    for row in ops:
        at = (row["invoke_ns"], row["complete_ns"])
        if row["f"] == "status" and row["value"] is not None:
            shown_here = msgspec.json.decode(row["value"], type=list[tuple[int, str]])
            found += [Seen(*at, txn, status, row["index"]) for txn, status in shown_here]
        elif row["txn"] is not None:
            found.append(Seen(*at, row["txn"], "committing", row["index"]))
    return sorted(found, key=lambda seen: seen.ended)


def _regresses(seen: Sequence[Seen]) -> tuple[int, list[Trouble]]:
    """1."""
    by_txn: dict[int, list[Seen]] = {}
    for each in seen:
        by_txn.setdefault(each.txn, []).append(each)
    count, troubles = 0, []
    for txn, shown_of in by_txn.items():
        orders = [
            (one, other) for at, one in enumerate(shown_of) for other in shown_of[at + 1 :] if one.ended < other.begun
        ]
        count += bool(orders)
        for one, other in orders:
            if other.status not in AFTER.get(one.status, ()):
                sentence = (
                    f"Transaction {txn} was {one.status} for T{one.op}, and {other.status} for T{other.op}, which "
                    "began later."
                )
                troubles.append(Trouble(REGRESS, sentence, (one.status, other.status), (one.op, other.op)))
                break
    return count, troubles


def _uncommitted(found: Stream, ops: Sequence[Row]) -> Iterator[Trouble]:
    """2."""
    for row in ops:
        status = found.statuses.get(row["txn"], "unknown") if row["txn"] is not None else "committed"
        if status not in {"committing", "committed"}:
            sentence = (
                f"The commit of transaction {row['txn']} was accepted by T{row['index']}, and at rest it is {status}."
            )
            yield Trouble(UNCOMMITTED, sentence, (status,), (row["index"],))


def _unended(found: Stream) -> Iterator[Trouble]:
    """3."""
    for txn, status in found.statuses.items():
        if status not in {"committed", "aborted"}:
            yield Trouble(UNENDED, f"The stream is sealed, and transaction {txn} is {status}.", (status,))


def _overrun(found: Stream) -> Iterator[Trouble]:
    """4."""
    cuts = [change.values for change in found.changes if change.what == "truncated" and change.values[0] >= 0]
    if not cuts:
        allowed: dict[Name, int] = {}
    else:
        epoch, offsets = cuts[-1]
        allowed = {
            span.name: len(found.segments[span.name].events) for old in found.epochs[:epoch] for span in old.spans
        }
        allowed |= {(number, created): offset for number, created, offset in offsets}
    for name, held in found.segments.items():
        if held.start > allowed.get(name, 0):
            sentence = (
                f"Segment {shown(name)} begins at offset {held.start} after a truncation, and the cut allows "
                f"{allowed.get(name, 0)}."
            )
            yield Trouble(OVERRUN, sentence, (*name, held.start))


def _acknowledged(history: Path, ops: Sequence[Row]) -> dict[tuple[str, str], int]:
    """When the events were acknowledged that no transaction wrote, by key and element as text."""
    names = Dictionary(history)
    ended = {row["index"]: int(row["complete_ns"]) for row in ops if row["txn"] is None}
    mops = rows(history, "mops", ["op", "f", "key", "value"], f=[APPEND])
    return {
        (str(names.value(row["key"])), str(names.value(row["value"]))): ended[row["op"]]
        for row in mops
        if row["op"] in ended
    }


def _beyond(found: Stream, acknowledged: Mapping[tuple[str, str], int]) -> tuple[int, list[Trouble]]:
    """5. A cut covers a segment up to an offset, and all of the predecessors of its segments."""
    marks = [change.values for change in found.changes if change.what == "mark"]
    count, troubles = 0, []
    for key in found.keys():  # noqa: SIM118  A method, not a dictionary.
        rank = {name: at for at, name in enumerate(found.path(key))}
        for name, offset, event in found.events(key):
            ended = acknowledged.get((str(key), str(event.value)))
            if event.txn or ended is None:
                continue
            mark = next((each for each in marks if each[0] >= ended and event.writer in each[2]), None)
            if mark is None:
                continue
            count += 1
            at = (rank[name], offset)
            ends = [(rank[number, created], end) for number, created, end in mark[1] if (number, created) in rank]
            if not any(at < end for end in ends):
                sentence = (
                    f"Value {event.value} of key {key}, at offset {offset} of segment {shown(name)}, was acknowledged "
                    f"before the time of a watermark of the stream, and lies behind its cut."
                )
                troubles.append(Trouble(BEYOND, sentence, (str(key), str(event.value))))
    return count, troubles


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
