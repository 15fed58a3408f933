"""Spark and threads judge streams alike: the same findings, fingerprints, witnesses and facts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers.engine import LocalEngine
from checkers.spark import SparkEngine
from checkers.streams import check
from harness.core.columns import FAIL, KINDS, NEVER, OK
from harness.core.promises import StreamContract
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.formats.parquet import write_history
from tests.stream_generator import damaged
from tests.stream_language import Event, Write

SEEDS, ENOUGH = 40, 3
pytestmark = pytest.mark.spark


def records(log: list[Event], source: list[Write]) -> Iterator[Record]:
    """The same stream and source as a run would have recorded them."""
    for op in sorted({write.op for write in source}):
        writes = [write for write in source if write.op == op]
        outcome: Outcome = "ok" if writes[0].outcome == OK else "fail" if writes[0].outcome == FAIL else "info"
        mops = tuple(MicroOp("append", write.key, write.value) for write in writes)
        yield Invoke(op, op, op, op, "txn", None, mops)
        yield Complete(op, op, outcome, None, mops, commit_ts=known(writes[0].position), epoch=known(writes[0].epoch))
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
        )


def known(number: int) -> int | None:
    return None if number == NEVER else number


@pytest.mark.parametrize("scope", ["session", "subscriber", "partition", "global"])
def test_spark_and_threads_say_the_same(spark: SparkEngine, tmp_path: Path, scope: str) -> None:
    contract = StreamContract(closed="<=", cut="delivery", position="offset", wm_scope=scope)  # type: ignore[arg-type]  # One of its four values.
    compared = 0
    for seed in range(SEEDS):
        folder = tmp_path / f"{scope}-{seed}"
        write_history(records(*damaged(seed, contract)), folder)
        theirs = check(folder, contract, LocalEngine(2))
        if theirs.findings and compared < ENOUGH:
            assert check(folder, contract, spark) == theirs, f"seed {seed}"
            compared += 1
    assert compared == ENOUGH, "too few seeds have findings: the comparison says little"
