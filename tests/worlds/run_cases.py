"""Runs of a small NDB-like cluster, told record by record, as histories that checks can read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from checkers.engine.datasets import LocalEngine
from harness.core.promises import Bounds
from harness.core.record import Complete, Fault, Invoke, Json, Mark, MicroOp, Outcome, Probe, Record, State, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history

MS = 1_000_000
GROUPS = (("d1", "d2"), ("d3", "d4"))
NODES = ("d1", "d2", "d3", "d4")
ENGINE = LocalEngine(1)
BOUNDS = Bounds(
    groups=GROUPS,
    saved_bits=32,
    loss_ns=500 * MS,
    records=8,
    disconnect_ns=300 * MS,
    stall_ns=400 * MS,
    blocked_ns=100 * MS,
    grace_ns=200 * MS,
)
Writes = Mapping[int, int] | Mapping[str, int]  # What is appended to each key.
Rows = Mapping[int, list[int]] | Mapping[str, list[int]]


def epoch(gci: int, micro: int = 0) -> int:
    """An epoch by its two numbers."""
    return gci << 32 | micro


class Run:
    """A run as it is told. Records are put in order of their times; those of one time stay in the order of telling."""

    def __init__(self) -> None:
        self._records: list[tuple[int, Record]] = []
        self._operations = 0
        self._steps = 0
        self._numbers: dict[tuple[str, int], int] = {}

    def invoke(self, ms: float, writes: Writes, reads: Sequence[int] = ()) -> int:
        """An operation begins; answers with its index."""
        index, self._operations = self._operations, self._operations + 1
        ns = int(ms * MS)
        self._add(ns, Invoke(index, ns, ns, index, "txn", None, _mops(writes, dict.fromkeys(reads))))
        return index

    def show(
        self,
        ms: float,
        f: str,
        value: Json = None,
        mops: tuple[MicroOp, ...] | None = None,
        at: int | None = None,
    ) -> None:
        """An operation that shows a value, or a transaction of any kind."""
        index, self._operations = self._operations, self._operations + 1
        ns = int(ms * MS)
        self._add(ns, Invoke(index, ns, ns, index, f, None, mops))
        self._add(ns, Complete(index, ns, "ok", value, mops, epoch=at, commit_ts=at))

    def complete(
        self,
        ms: float,
        index: int,
        writes: Writes,
        outcome: Outcome = "ok",
        *,
        at: int | None = None,
        node: str = "d1",
        reads: dict[int, list[int]] | None = None,
        error: str | None = None,
    ) -> None:
        """It ends."""
        ns = int(ms * MS)
        done = _mops(writes, dict(reads or {})) if outcome == "ok" else None
        said = {"node": node, "txn": index, "epoch": at, "commit_ts": at if writes else None} if outcome == "ok" else {}
        self._add(ns, Complete(index, ns, outcome, None, done, error, **said))  # type: ignore[arg-type]  # Fields by name.

    def append(
        self,
        ms: float,
        writes: Writes,
        outcome: Outcome = "ok",
        *,
        at: int | None = None,
        node: str = "d1",
        took_ms: float = 1,
    ) -> int:
        """A transaction of appends, from its begin to its end."""
        index = self.invoke(ms, writes)
        self.complete(ms + took_ms, index, writes, outcome, at=at, node=node)
        return index

    def read(self, ms: float, key: int, elements: list[int]) -> int:
        """A transaction that reads one key."""
        index = self.invoke(ms, {}, [key])
        self.complete(ms + 1, index, {}, reads={key: elements}, at=epoch(1))
        return index

    def state(
        self,
        ms: float,
        node: str,
        thing: str,
        key: Json,
        value: Json,
        position: int | None = None,
        txn: int | None = None,
    ) -> None:
        """A node shows an object of its state."""
        self._add(int(ms * MS), State(int(ms * MS), node, thing, key, value, position, txn))

    def restart(self, ms: float, number: int, gci: int, first: int) -> None:
        """The whole cluster begins to serve with what was saved in `gci`; `first` is its next one."""
        self.state(ms, "d1", "restart", number, [gci, epoch(first)])

    def dump(self, ms: float, nodes: str, rows: Rows, *, restart: int | None = None, at: int = 0) -> None:
        """Those nodes show their rows, all of that epoch: at rest, or after that restart."""
        for node in nodes.split():
            for key, elements in rows.items():
                self.state(ms, node, "row" if restart is None else "restored", key, [*elements], at, restart)

    def view(self, ms: float, number: int, members: str, nodes: str | None = None) -> None:
        """The members, or only some of them, install a view."""
        for node in (nodes or members).split():
            self.state(ms, node, "view", number, [*members.split()], epoch(1))

    def probe(self, ms: float, node: str, name: str, value: int = 1) -> None:
        """A node shows a metric."""
        self._add(int(ms * MS), Probe(int(ms * MS), node, name, value))

    def fault(self, kind: str, targets: str, begin_ms: float, end_ms: float, effect: int = 1) -> None:
        """A fault, from its begin to its end."""
        names, step = tuple(targets.split()), self._steps
        self._steps += 1
        begin, end = int(begin_ms * MS), int(end_ms * MS)
        self._add(begin, Fault(begin, step, "begin", kind, names))
        self._add(end, Fault(end, step, "effect", kind, names, effect))
        self._add(end, Fault(end, step, "end", kind, names))

    def event(
        self,
        ms: float,
        subscriber: str,
        kind: str,
        position: int | None = None,
        *,
        session: int = 1,
        span: str | None = None,
        key: Json = None,
        value: Json = None,
    ) -> None:
        """A subscriber receives something."""
        number = self._numbers.get((subscriber, session), 0)
        self._numbers[subscriber, session] = number + 1
        ns = int(ms * MS)
        self._add(ns, StreamEvent(ns, subscriber, session, number, kind, span, key, value, position))

    def watermarks(self, subscriber: str, ms: Sequence[int], *, session: int = 1) -> None:
        """One watermark at each of those times, its position the same number of milliseconds."""
        for each in ms:
            self.event(each, subscriber, "watermark", each, session=session)

    def mark(self, ms: float, phase: str) -> None:
        """A phase begins."""
        self._add(int(ms * MS), Mark(int(ms * MS), phase))

    def write(self, folder: Path) -> Path:
        """The history, in that folder."""
        write_history([record for _, record in sorted(self._records, key=lambda timed: timed[0])], folder / "history")
        return folder / "history"

    def _add(self, ns: int, record: Record) -> None:
        self._records.append((ns, record))


def anomalies(judgement: Judgement) -> list[str]:
    """The names of what was found, in order."""
    return [finding.anomaly for finding in judgement.findings]


def counts(judgement: Judgement) -> dict[str, int]:
    """The witnesses of what has any."""
    return {name: count for name, count in judgement.witnesses.items() if count}


def _mops(writes: Writes, reads: dict[int, list[int] | None]) -> tuple[MicroOp, ...]:
    read = [MicroOp("r", key, None if elements is None else [*elements]) for key, elements in reads.items()]
    return (*(MicroOp("append", key, element) for key, element in writes.items()), *read)
