"""The order of events over epochs: guarantees G2, G6 and G8, and real time between plain events.

What is judged is the stream at rest: of each key the segments that have it, epoch by epoch.
1. `writer-order`: plain events of one writer come, key by key, in the order in which it took them. A witness is an
   event with an earlier one of its writer.
2. `split-block`: the events of a transaction stand together in a segment. A witness is a transaction in a segment where
   another event follows it.
3. `commit-order`: T comes before U if T's operation had succeeded before U's began, and T was created against the same
   epoch, or an older one. A witness is such a pair of neighbours of one key.
4. `append-order`: a plain event comes before another one of its key that was requested after it had been acknowledged.
   A witness is such a pair of neighbours.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Event, Name, shown, stream
from clusters.pravega.records import EPOCH_SHIFT
from harness.core.columns import APPEND, NEVER, OK
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "stream-order"
WRITER, BLOCK, COMMIT, APPENDS = "writer-order", "split-block", "commit-order", "append-order"
ANOMALIES: Final = {
    WRITER: "Events of one writer and key are not in the order in which they were written.",
    BLOCK: "Another event stands between the events of a transaction.",
    COMMIT: "A transaction comes before one that was committed before it began.",
    APPENDS: "An event comes before one that was acknowledged before it was requested.",
}


class Op(NamedTuple):
    """An operation that appended: when it was invoked, and when it succeeded (NEVER if it did not)."""

    number: int
    begun: int
    succeeded: int


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the stream at rest. Raises HistoryError if it is damaged."""
    found = stream(history, context)
    if found.lacking is not None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, found.lacking))
    ops = _operations(history)
    witnesses = dict.fromkeys(ANOMALIES, 0)
    troubles: list[Trouble] = []
    for key in found.keys():  # noqa: SIM118  A method, not a dictionary.
        events = found.events(key)
        for anomaly, judge in ((WRITER, _writers), (COMMIT, _commits), (APPENDS, _appends)):
            count, broken = judge(key, events, ops)
            witnesses[anomaly] += count
            troubles += broken
    for name, held in found.segments.items():
        blocks = _blocks(held.events)
        witnesses[BLOCK] += sum(1 for one, other in pairwise(blocks) if one and one != other)
        troubles += _split(name, blocks)
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


Placed = Sequence[tuple[Name, int, Event]]
Ops = dict[tuple[str, str], Op]  # By key and element, as text.


def _operations(history: Path) -> Ops:
    names = Dictionary(history)
    ops = {
        int(row["index"]): Op(
            int(row["index"]), int(row["invoke_ns"]), int(row["complete_ns"]) if row["outcome"] == OK else NEVER
        )
        for row in rows(history, "ops", ["index", "outcome", "invoke_ns", "complete_ns"])
    }
    mops = rows(history, "mops", ["op", "f", "key", "value"], f=[APPEND])
    return {(str(names.value(row["key"])), str(names.value(row["value"]))): ops[row["op"]] for row in mops}


def _at(placed: tuple[Name, int, Event]) -> str:
    name, offset, event = placed
    return f"value {event.value} at offset {offset} of segment {shown(name)}"


def _writers(key: Json, events: Placed, ops: Ops) -> tuple[int, list[Trouble]]:
    """1."""
    last: dict[str, tuple[Name, int, Event]] = {}
    count, troubles = 0, []
    for placed in events:
        event = placed[2]
        if event.txn:
            continue
        before = last.get(event.writer)
        count += before is not None
        if before is not None and before[2].number >= event.number:
            sentence = (
                f"Writer {event.writer} wrote to key {key} first {_at(placed)}, and then {_at(before)}, which comes "
                "before it."
            )
            troubles.append(Trouble(WRITER, sentence, (key, event.value), _ops(ops, key, before[2], event)))
        else:
            last[event.writer] = placed
    return count, troubles


def _blocks(events: Sequence[Event]) -> list[int]:
    """The transactions of a segment in order, one for each row of neighbours; 0 for a plain event."""
    return [event.txn for at, event in enumerate(events) if not event.txn or not at or events[at - 1].txn != event.txn]


def _split(name: Name, blocks: Sequence[int]) -> Iterator[Trouble]:
    """2."""
    seen: dict[int, None] = {}
    for txn in blocks:
        if txn in seen:
            sentence = f"The events of a transaction stand in several places of segment {shown(name)}."
            yield Trouble(BLOCK, sentence, (*name, txn))
        if txn:
            seen[txn] = None


def _commits(key: Json, events: Placed, ops: Ops) -> tuple[int, list[Trouble]]:
    """3."""
    return _in_real_time(COMMIT, key, [placed for placed in events if placed[2].txn], ops)


def _appends(key: Json, events: Placed, ops: Ops) -> tuple[int, list[Trouble]]:
    """4."""
    return _in_real_time(APPENDS, key, [placed for placed in events if not placed[2].txn], ops)


def _in_real_time(anomaly: str, key: Json, events: Placed, ops: Ops) -> tuple[int, list[Trouble]]:
    """Witnesses, and events before which one stands that began after they had succeeded."""
    count, troubles = 0, []
    latest: dict[int, tuple[int, tuple[Name, int, Event]]] = {}  # By epoch: who began last of those that came before.
    for placed in events:
        event = placed[2]
        op = ops.get((str(key), str(event.value)))
        if op is None:
            continue
        epoch = event.txn >> EPOCH_SHIFT
        for other, (begun, before) in latest.items():
            own = ops[str(key), str(before[2].value)]
            if other >= epoch and op.succeeded != NEVER and op.succeeded < begun and own.number != op.number:
                sentence = (
                    f"In key {key} {_at(before)} comes before {_at(placed)}, though T{op.number}, which wrote the "
                    f"latter, had succeeded before T{own.number} began."
                )
                troubles.append(Trouble(anomaly, sentence, (key, event.value), (op.number, own.number)))
                break
        newest = latest.get(epoch)
        count += newest is not None and ops[str(key), str(newest[1][2].value)].succeeded < op.begun
        if newest is None or op.begun > newest[0]:
            latest[epoch] = (op.begun, placed)
    return count, troubles


def _ops(ops: Ops, key: Json, *events: Event) -> tuple[int, ...]:
    found = (ops.get((str(key), str(event.value))) for event in events)
    return tuple(op.number for op in found if op is not None)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
