"""Spark and threads judge streams alike: the same findings, fingerprints, witnesses and facts."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.engine.spark import SparkEngine
from checkers.history.streams import StreamLog
from checkers.streams.check import check
from checkers.streams.task import judged
from harness.core.columns import FAIL, KINDS, NEVER, OK
from harness.core.promises import Bounds, StreamContract, View
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.cases import EPOCHS, anomalies_of
from tests.worlds.streams.cases import contract as case_contract
from tests.worlds.streams.generator import damaged
from tests.worlds.streams.language import Event, Write, deliveries_of, source_of
from tests.worlds.streams.spoiled_logs import spoiled as logs_spoiled
from tests.worlds.streams.spoiled_sessions import spoiled as snapshots_spoiled

ENOUGH = count(3)  # Comparisons for each scope of watermarks.
SEEDS = range(FIRST_SEED, FIRST_SEED + 13 * ENOUGH)
NEW = {
    "order-inversion",
    "duplicate-event",
    "phantom-event",
    "wrong-value",
    "silent-gap",
    "state-mismatch",
    "split-view",
}
pytestmark = pytest.mark.spark


def records(log: list[Event], source: list[Write]) -> Iterator[Record]:
    """The same stream and source as a run would have recorded them."""
    for op in sorted({write.op for write in source}):
        writes = [write for write in source if write.op == op]
        outcome: Outcome = "ok" if writes[0].outcome == OK else "fail" if writes[0].outcome == FAIL else "info"
        mops = tuple(MicroOp("append", write.key, write.value) for write in writes)
        yield Invoke(op, op, op, op, "txn", None, mops)
        position, epoch, txn = (known(number) for number in (writes[0].position, writes[0].epoch, writes[0].txn))
        yield Complete(op, op, outcome, None, mops, txn=txn, commit_ts=position, epoch=epoch)
    for op, key in enumerate(sorted({write.key for write in source}), len({write.op for write in source})):
        ranked = sorted((w for w in source if w.key == key and w.version != NEVER), key=lambda w: w.version)
        yield Invoke(op, op, op, op, "txn", None, (MicroOp("r", key),))
        yield Complete(op, op, "ok", None, (MicroOp("r", key, [write.value for write in ranked]),))
    for number, event in enumerate(log):
        yield StreamEvent(
            100 + number,
            f"s{event.subscriber}",
            event.session,
            number,
            KINDS[event.kind],
            None if event.span < 0 else f"p{event.span}",
            known(event.key),
            known(event.value),
            known(event.position),
            known(event.ordinal),
            known(event.epoch),
            known(event.unit),
        )


def known(number: int) -> int | None:
    return None if number == NEVER else number


@pytest.mark.parametrize("scope", ["session", "subscriber", "partition", "global"])
def test_spark_and_threads_say_the_same(spark: SparkEngine, tmp_path: Path, scope: str) -> None:
    contract = StreamContract(closed="<=", cut="delivery", position="offset", wm_scope=scope)  # type: ignore[arg-type]  # One of its four values.
    compared = 0
    for seed in SEEDS:
        folder = tmp_path / f"{scope}-{seed}"
        log, source = damaged(seed, contract)
        write_history(records(log, source), folder)
        theirs = check(folder, Context(engine=LocalEngine(2), contract=contract))
        if theirs.findings and compared < ENOUGH:
            beside = [StreamEvent(999, "s0", 1, 999, kind, span="v", position=0) for kind in ("row", "watermark")]
            write_history([*records(log, source), *beside], folder)
            views = Bounds(views=(View(name="v", operator="rows", inputs=("a",)),))
            assert check(folder, Context(engine=spark, contract=contract, bounds=views)) == theirs, f"seed {seed}"
            compared += 1
    assert compared == ENOUGH, "too few seeds have findings: the comparison says little"


def test_spark_and_threads_say_the_same_of_epochs(spark: SparkEngine, tmp_path: Path) -> None:
    contract = case_contract(**EPOCHS)
    left = set(NEW)
    for seed in sorted(range(300), key=lambda seed: -len(likely(seed, contract))):
        if not likely(seed, contract) & left:
            continue
        folder = tmp_path / str(seed)
        write_history(records(*damaged(seed, contract)), folder)
        theirs = check(folder, Context(engine=LocalEngine(2), contract=contract))
        if found := {finding.anomaly for finding in theirs.findings} & left:
            assert check(folder, Context(engine=spark, contract=contract)) == theirs, f"seed {seed}"
            left -= found
    assert not left, "no seed has them: the comparison says little"


def test_spark_and_threads_say_the_same_of_sessions_and_logs(spark: SparkEngine, tmp_path: Path) -> None:
    contract = StreamContract(closed="<=", cut="position", position="offset", wm_scope="session", epochs="owners")
    rests = replace(contract, wm_idle="rests", realtime="follows", events_at_position="one", tail="settled")
    left = {"watermark-from-future", "rewritten-offset", "lost-tail", "event-after-end", "zombie", "real-time-order"}
    left |= {"resume-hole", "hand-over-hole", "watermark-above-partitions"}
    for seed in range(150):
        variant = rests if seed % 2 else replace(contract, is_whole_least=True, backfill="whole")
        log, source = damaged(seed, variant)
        log = snapshots_spoiled(seed, logs_spoiled(seed, log))
        folder = tmp_path / str(seed)
        write_history(in_time(log, source), folder)
        theirs = check(folder, Context(engine=LocalEngine(2), contract=variant))
        if found := {finding.anomaly for finding in theirs.findings} & left:
            assert check(folder, Context(engine=spark, contract=variant)) == theirs, f"seed {seed}"
            left -= found
        if not left:
            return
    assert not left, "no seed has them: the comparison says little"


def in_time(log: list[Event], source: list[Write]) -> list[Record]:
    """The records in the order of a journal: operations stand where their times say, among the events of the log."""
    ops = {write.op: write for write in source}
    placed: list[tuple[float, Record]] = []
    for record in records(log, source):
        match record:
            case Invoke(index=index) if index in ops:
                placed.append((ops[index].invoke_seq - 0.5, record))
            case Complete(index=index) if index in ops:
                placed.append((ops[index].complete_seq + 0.5, record))
            case StreamEvent(time_ns=place):
                placed.append((place, record))
            case _:
                placed.append((1_000, record))  # The final reads.
    invoked: dict[int, int] = {}
    result: list[Record] = []
    for _, record in sorted(placed, key=lambda each: each[0]):
        match record:
            case Invoke(index=index):
                invoked[index] = len(invoked)  # Operations are numbered in the order of their invocations.
                result.append(replace(record, index=invoked[index], process=invoked[index]))
            case Complete(index=index):
                result.append(replace(record, index=invoked[index]))
            case _:
                result.append(record)
    return result


@lru_cache
def likely(seed: int, contract: StreamContract) -> frozenset[str]:
    """What the history of that seed will show, more or less: its source knows more than what can be recorded."""
    log, source = damaged(seed, contract)
    if not log:
        return frozenset()
    outcome = judged(StreamLog("", (), ("s0", "s1"), ()), deliveries_of(log), source_of(source), contract)
    return frozenset(anomalies_of(outcome)) & NEW
