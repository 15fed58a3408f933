"""Runs of Pravega told by what is shown at rest: epochs, segments, operations, deliveries."""

from collections.abc import Callable, Sequence
from pathlib import Path

from checkers.engine.protocol import Context
from clusters.pravega.records import EPOCH_SHIFT
from clusters.pravega.shape import SPACE, key_hash
from harness.core.record import Complete, Invoke, Json, MicroOp, Outcome, Record, State, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.run_cases import ENGINE, MS

HALF = SPACE // 2
LEFT, RIGHT = (next(key for key in range(99) if (key_hash(key) < HALF) == is_left) for is_left in (True, False))
Spans = list[tuple[int, int, int, int]]
TWO: Spans = [(0, HALF, 0, 0), (HALF, SPACE, 1, 0)]
Event = list[Json]


def plain(key: int, value: int, number: int = 1, writer: str = "w1.1") -> Event:
    return [key, value, 0, writer, number]


def of_txn(key: int, value: int, epoch: int = 0, count: int = 1) -> Event:
    return [key, value, epoch << EPOCH_SHIFT | count, "w1.1", 0]


def copied(spans: Spans, epoch: int) -> Spans:
    return [(low, high, number, epoch) for low, high, number, _ in spans]


class Shown:
    """The records of a run."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._ops = 0

    def append(self, begin: int, end: int, key: int, *values: int, outcome: Outcome = "ok") -> None:
        """An operation that appends these values, from its begin to its end in ms."""
        mops = tuple(MicroOp("append", key, value) for value in values)
        self.records.append(Invoke(self._ops, begin * MS, begin * MS, self._ops, "txn", None, mops))
        self.records.append(Complete(self._ops, end * MS, outcome, None, mops if outcome == "ok" else None))
        self._ops += 1

    def drained(self) -> None:
        """The readers are at the end of the stream."""
        self.records.append(Invoke(self._ops, 900 * MS, 900 * MS, self._ops, "drain"))
        self.records.append(Complete(self._ops, 901 * MS, "ok"))
        self._ops += 1

    def event(
        self,
        reader: str,
        kind: str,
        span: str | None = None,
        position: int | None = None,
        *row: int,
        session: int = 1,
        ordinal: int | None = None,
    ) -> None:
        """A reader delivers something; `row` is the key and the value."""
        key, value = row or (None, None)
        number = len(self.records)
        delivered = StreamEvent(number * MS, reader, session, number, kind, span, key, value, position, ordinal)
        self.records.append(delivered)

    def epochs(self, *epochs: tuple[int, Spans]) -> None:
        """All epochs: what each refers to, and its segments."""
        for number, (reference, spans) in enumerate(epochs):
            self.records.append(State(999 * MS, "m1", "epoch", number, [reference, [list(span) for span in spans]]))

    def segment(self, name: str, events: Sequence[Event] = (), *, is_sealed: bool = False, start: int = 0) -> None:
        """A segment as its store shows it."""
        self.records.append(State(999 * MS, "s1", "segment", name, [is_sealed, list(events), start]))

    def txn(self, number: int, status: str) -> None:
        """How a transaction ended."""
        self.records.append(State(999 * MS, "m1", "txn", number, status))

    def changes(self, *changes: list[Json]) -> None:
        """How the records of the stream changed, in order."""
        for version, change in enumerate(changes):
            self.records.append(State(999 * MS, "m1", "change", version, change))

    def committed(self, begin: int, end: int, txn: int) -> None:
        """An operation whose transaction's commit was accepted."""
        self.records.append(Invoke(self._ops, begin * MS, begin * MS, self._ops, "txn", None, ()))
        self.records.append(Complete(self._ops, end * MS, "ok", None, (), txn=txn))
        self._ops += 1

    def saw(self, begin: int, end: int, *statuses: list[Json]) -> None:
        """An operation that was shown the statuses of transactions."""
        self.records.append(Invoke(self._ops, begin * MS, begin * MS, self._ops, "status"))
        self.records.append(Complete(self._ops, end * MS, "ok", list(statuses)))
        self._ops += 1

    def judged(self, check: Callable[[Path, Context], Judgement], folder: Path) -> Judgement:
        write_history(self.records, folder)
        return check(folder, Context(engine=ENGINE))


def found(judgement: Judgement) -> list[tuple[str, int]]:
    """The anomalies that were found, with their counts."""
    return [(finding.anomaly, finding.count) for finding in judgement.findings]
