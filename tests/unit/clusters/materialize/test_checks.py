"""The checks that only Materialize needs, each with what it must find, what it must not, and legal oddities."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkers.engine.protocol import Context
from clusters.materialize.checks import leaders, shards, sources, tables, timelines, waiting
from clusters.materialize.coordinator.sequencing import NO_TABLE
from harness.core.record import Complete, Fault, Invoke, MicroOp, Outcome, Probe, Record, State
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.run_cases import ENGINE, MS, anomalies


class Told:
    """The records of a run."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._ops = 0

    def op(
        self,
        begin: int,
        end: int,
        f: str,
        asked: Any = None,
        value: Any = None,
        *,
        outcome: Outcome = "ok",
        mops: tuple[MicroOp, ...] | None = None,
        **answer: Any,
    ) -> "Told":
        """An operation from its begin to its end, in ms."""
        self.records.append(Invoke(self._ops, begin * MS, begin * MS, self._ops, f, asked, mops))
        self.records.append(Complete(self._ops, end * MS, outcome, value, mops, **answer))
        self._ops += 1
        return self

    def probe(self, at: int, name: str, value: int) -> "Told":
        self.records.append(Probe(at * MS, "k1", name, value))
        return self

    def fault(self, begin: int, end: int, *targets: str) -> "Told":
        for at, phase in ((begin, "begin"), (end, "end")):
            self.records.append(Fault(at * MS, 0, phase, "pause", targets))  # type: ignore[arg-type]  # A phase.
        return self

    def state(self, name: str, key: str, value: Any) -> "Told":
        self.records.append(State(9999 * MS, "d1", name, key, value))
        return self

    def judged(self, check: Callable[[Path, Context], Judgement], folder: Path) -> Judgement:
        write_history(self.records, folder)
        return check(folder, Context(engine=ENGINE))


def led(begin: int, end: int, epoch: int, *, read_ts: int | None = None, commit_ts: int | None = None) -> Told:
    return Told().op(begin, end, "txn", mops=(), epoch=epoch, node="c1", read_ts=read_ts, commit_ts=commit_ts)


LEADERS: dict[str, tuple[Told, list[str]]] = {
    "epochs one after the other": (
        led(1, 2, 1, commit_ts=5).op(3, 4, "txn", mops=(), epoch=2, node="c2", read_ts=5).probe(0, "bound", 60),
        [],
    ),
    "a read below an earlier epoch": (
        led(1, 2, 1, commit_ts=5).op(1, 4, "txn", mops=(), epoch=2, node="c2", read_ts=4),
        ["epoch-overlap"],
    ),
    "a write at the timestamp of an earlier epoch": (
        led(1, 2, 1, read_ts=5).op(1, 4, "txn", mops=(), epoch=2, node="c2", commit_ts=5),
        ["epoch-overlap"],
    ),
    "a read after the end of its leader": (
        led(5, 6, 1, read_ts=5).probe(1, "epoch", 1).probe(4, "epoch", 2),
        ["superseded-answer"],
    ),
    "a read across the end of its leader": (led(3, 6, 1, read_ts=5).probe(1, "epoch", 1).probe(4, "epoch", 2), []),
    "a write far ahead of the clock": (led(1, 2, 1, commit_ts=500), ["ahead-of-clock"]),
    "a write within a window of the clock, after a take-over": (
        led(200, 210, 1, commit_ts=60).probe(1, "epoch", 1).probe(0, "bound", 90),
        [],
    ),
    "two tables": (
        Told().op(1, 2, "txn", mops=(MicroOp("append", 0, 1), MicroOp("append", 1, 2)), epoch=1, commit_ts=1),
        ["two-tables"],
    ),
    "two tables, refused": (
        Told().op(1, 2, "txn", mops=(MicroOp("append", 0, 1), MicroOp("append", 1, 2)), outcome="fail"),
        [],
    ),
    "a write at the bound": (led(1, 2, 1, commit_ts=9).probe(1, "bound", 9), ["beyond-bound"]),
    "a write below a bound that came later": (
        led(1, 2, 1, commit_ts=9).probe(0, "bound", 9).probe(3, "bound", 20),
        ["beyond-bound"],
    ),
    "a write below its bound": (led(1, 2, 1, commit_ts=8).probe(1, "bound", 9), []),
    "two coordinators in one epoch": (
        led(1, 2, 3, read_ts=1).op(1, 2, "stale-read", [[], 0], [], epoch=3, node="c2", read_ts=1),
        ["shared-epoch"],
    ),
}


@pytest.mark.parametrize("case", LEADERS)
def test_leaders(tmp_path: Path, case: str) -> None:
    told, expected = LEADERS[case]
    assert anomalies(told.judged(leaders.check, tmp_path)) == expected


def appends(*each: tuple[int, int, int, int]) -> list[Any]:
    return [[expected, new, epoch, at * MS] for expected, new, epoch, at in each]


SHARDS: dict[str, tuple[Told, list[str]]] = {
    "appends of two leaders": (Told().state("shard", "t0", appends((0, 5, 1, 1), (5, 9, 2, 2))), []),
    "a gap": (Told().state("shard", "t0", appends((0, 5, 1, 1), (6, 9, 1, 2))), ["upper-gap"]),
    "an append after the next leader's": (
        Told().state("shard", "t0", appends((0, 5, 2, 1), (5, 9, 1, 2))),
        ["late-append"],
    ),
    "an append after the next leader's answer": (
        led(0, 1, 1, read_ts=1)
        .op(1, 2, "stale-read", [[], 0], [], epoch=2, read_ts=9)
        .state("shard", "t0", appends((0, 5, 1, 3))),
        ["late-append"],
    ),
    "an append before the next leader's answer": (
        led(1, 4, 2, read_ts=9).state("shard", "t0", appends((0, 5, 1, 3))),
        [],
    ),
    "ingestion under two leaders": (led(1, 2, 2, read_ts=9).state("shard", "t0", appends((0, 5, 0, 3))), []),
    "a record of an older epoch": (
        Told()
        .state("shard", "t0", appends((0, 5, 1, 1)))
        .state("catalog", "0", ["Bound", 2])
        .state("catalog", "1", ["Bound", 1]),
        ["superseded-record"],
    ),
    "a row that is there less than never": (
        Told().state("shard", "a0", appends((0, 5, 1, 1))).state("negative", "a0", [[1, 2, -1]]),
        ["negative-row"],
    ),
}


@pytest.mark.parametrize("case", SHARDS)
def test_shards(tmp_path: Path, case: str) -> None:
    told, expected = SHARDS[case]
    assert anomalies(told.judged(shards.check, tmp_path)) == expected


def created(at: int = 1, name: str = "x1") -> Told:
    return Told().op(at, at + 1, "create", name)


TABLES: dict[str, tuple[Told, list[str], int]] = {
    "it is there": (created().op(5, 6, "query", "x1", ["x1", []]), [], 1),
    "it is gone": (created().op(5, 6, "query", "x1", outcome="fail", error=f"c2: {NO_TABLE}"), ["lost-table"], 1),
    "it is gone for a change": (
        created().op(5, 6, "change", [["x1", 1, 1, 1]], outcome="fail", error=f"c2: {NO_TABLE}"),
        ["lost-table"],
        1,
    ),
    "another refusal": (created().op(5, 6, "query", "x1", outcome="fail", error="c2: compute does not answer"), [], 1),
    "it may have been dropped": (
        created().op(4, 9, "drop", "x1").op(5, 6, "query", "x1", outcome="fail", error=f"c2: {NO_TABLE}"),
        [],
        0,
    ),
    "it was not acknowledged yet": (
        created(at=5).op(5, 6, "query", "x1", outcome="fail", error=f"c2: {NO_TABLE}"),
        [],
        0,
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_created_tables(tmp_path: Path, case: str) -> None:
    told, expected, witnesses = TABLES[case]
    judgement = told.judged(tables.check, tmp_path)
    assert (anomalies(judgement), judgement.witnesses) == (expected, {"lost-table": witnesses})


def counted(*appends: tuple[int, int, int, int]) -> Told:
    """Appends to the counting timeline: begin, end, timestamp, element."""
    told = Told()
    for begin, end, ts, element in appends:
        told.op(begin, end, "count-append", element, [ts, element])
    return told


TIMELINES: dict[str, tuple[Told, list[str]]] = {
    "reads of what is below": (counted((1, 2, 2, 7), (3, 4, 3, 8)).op(5, 6, "count-read", value=[3, [7, 8]]), []),
    "a read before the second": (counted((1, 2, 2, 7), (3, 9, 3, 8)).op(5, 6, "count-read", value=[2, [7]]), []),
    "a read that lacks an element": (
        counted((1, 2, 2, 7), (3, 9, 3, 8)).op(5, 6, "count-read", value=[3, [7]]),
        ["timeline-order"],
    ),
    "two of one timestamp in the order of their rows": (
        counted((1, 3, 2, 8), (1, 4, 2, 7)).op(5, 6, "count-read", value=[3, [8, 7]]),
        [],
    ),
    "an element twice": (counted((1, 2, 2, 7)).op(5, 6, "count-read", value=[3, [7, 7]]), ["timeline-order"]),
    "a read in the past": (counted((1, 2, 2, 7)).op(5, 6, "count-read", value=[1, []]), ["timeline-order"]),
    "two writes at one timestamp": (counted((1, 2, 2, 7), (3, 4, 2, 8)), ["timeline-order"]),
    "an append without an answer that is there": (
        Told().op(1, 4, "count-append", 7, outcome="info").op(5, 6, "count-read", value=[3, [7]]),
        [],
    ),
    "a mixed query": (Told().op(1, 2, "mixed-read", value=[1, []]), ["mixed-timelines"]),
    "a mixed query, refused": (Told().op(1, 2, "mixed-read", outcome="fail"), []),
}


@pytest.mark.parametrize("case", TIMELINES)
def test_the_counting_timeline(tmp_path: Path, case: str) -> None:
    told, expected = TIMELINES[case]
    assert anomalies(told.judged(timelines.check, tmp_path)) == expected


def led_by(*begins: int, is_served: bool = True) -> Told:
    """Leaders that begin at these times, each of which answers a read."""
    told = Told()
    for epoch, at in enumerate(begins, start=1):
        if is_served:
            told.op(at + 1, at + 2, "stale-read", [[], 0], [], epoch=epoch, node="c1", read_ts=1)
        told.probe(at, "epoch", epoch)
    return told


def changed(begin: int, end: int, table: str = "a1", outcome: Outcome = "info") -> Told:
    return Told().op(begin, end, "change", [[table, 1, 1, 1]], outcome=outcome)


WAITS: dict[str, tuple[Told, list[str], int]] = {
    "quick": (changed(9000, 9100, outcome="ok"), [], 1),
    "slow without a fault": (changed(9000, 10000), ["needless-wait"], 1),
    "slow beside a fault of the other data node": (changed(9000, 10000).fault(8900, 9900, "d2"), ["needless-wait"], 1),
    "slow beside a cut to the other data node": (
        changed(9000, 10000).fault(8900, 9900, "c1>d2", "d2>c1"),
        ["needless-wait"],
        1,
    ),
    "slow as its own data node is struck": (changed(9000, 10000, "a0").fault(8900, 9900, "d2"), [], 0),
    "slow as both are": (changed(9000, 10000).fault(8900, 9900, "d2", "d1"), [], 0),
    "slow soon after a fault": (changed(9000, 10000).fault(4000, 6000, "c1"), [], 0),
    "slow under a new leader": (changed(9000, 10000).probe(7500, "epoch", 2), [], 0),
    "slow on a busy machine": (changed(9000, 10000).probe(9500, "late", 300), [], 0),
    "four leaders in a second": (led_by(5000, 5300, 5600, 5900), ["restless-leaders"], 0),
    "four leaders on a busy machine": (led_by(5000, 5300, 5600, 5900).probe(5950, "late", 300), [], 0),
    "four leaders after a fault": (led_by(5000, 5300, 5600, 5900).fault(1000, 2000, "c1"), [], 0),
    "a leader whose request to begin came four times": (led_by(5000, 5001, 5002, 5003, is_served=False), [], 0),
}


@pytest.mark.parametrize("case", WAITS)
def test_waits_and_take_overs(tmp_path: Path, case: str) -> None:
    told, expected, witnesses = WAITS[case]
    judgement = told.judged(waiting.check, tmp_path)
    assert (anomalies(judgement), judgement.witnesses[waiting.WAIT]) == (expected, witnesses)


def source(*values: int) -> list[Any]:
    return ["source", [["place", value] for value in values]]


SOURCES: dict[str, tuple[Told, list[str]]] = {
    "all that was acknowledged": (
        Told().op(1, 2, "produce", 5, 0).op(3, 4, "read-source", None, source(5), read_ts=3),
        [],
    ),
    "without what was acknowledged": (
        Told().op(1, 2, "produce", 5, 0).op(3, 4, "read-source", None, source(), read_ts=3),
        ["unseen-acknowledged"],
    ),
    "before it was acknowledged": (
        Told().op(1, 4, "produce", 5, 0).op(3, 5, "read-source", None, source(), read_ts=3),
        [],
    ),
    "a gap": (Told().op(3, 4, "read-source", None, source(6), read_ts=3), ["source-gap"]),
    "fewer at a later timestamp": (
        Told().op(3, 4, "source-as-of", 0, source(5, 6), read_ts=3).op(5, 6, "source-as-of", 0, source(5), read_ts=4),
        ["source-rewritten"],
    ),
}


@pytest.mark.parametrize("case", SOURCES)
def test_sources(tmp_path: Path, case: str) -> None:
    told, expected = SOURCES[case]
    told.state("upstream", "source", [0, [5, 6, 7]])
    assert anomalies(told.judged(sources.check, tmp_path)) == expected


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (tables.check, Told().op(1, 2, "query", 7)),
        (timelines.check, Told().op(1, 2, "count-read", value="no pair")),
        (waiting.check, Told().op(1, 2, "change", "no rows")),
    ],
)
def test_an_operation_of_another_form_is_named(
    tmp_path: Path, check: Callable[[Path, Context], Judgement], told: Told
) -> None:
    with pytest.raises(Exception, match="is not of this cluster"):
        told.judged(check, tmp_path)
