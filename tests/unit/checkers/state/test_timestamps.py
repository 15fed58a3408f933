"""Timestamps by themselves: sentences about single cases, and agreement with a slow twin."""

import os
import random
from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import timestamps
from checkers.state.timestamps import ABOVE, DOUBLE
from harness.core.promises import StreamContract
from harness.core.record import Complete, Evidence, Invoke, MicroOp, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.oracles.timestamps import doubles, late
from tests.worlds.epoch_cases import ENGINE, name
from tests.worlds.run_cases import anomalies

FIRST = int(os.environ.get("SEAMARK_FUZZ_SEED", "0"))
SEEDS = range(FIRST, FIRST + 30)
CONTRACT = StreamContract(closed="<=", cut="position", position="commit-timestamp", follows_clock=True)


class World:
    """Transactions and a stream, one record a nanosecond."""

    def __init__(self) -> None:
        self.records: list[Evidence] = []
        self._operations = self._events = 0

    def txn(self, start_ts: int, commit_ts: int | None) -> int:
        index, self._operations = self._operations, self._operations + 1
        mops = (MicroOp("append", 1, index),)
        self.records.append(Invoke(index, len(self.records), 0, index, "txn", None, mops))
        self.records.append(
            Complete(
                index, len(self.records), "ok", None, mops, txn=start_ts, start_ts=start_ts, read_ts=start_ts,
                commit_ts=commit_ts,
            )
        )  # fmt: skip
        return index

    def event(self, kind: str, position: int, unit: int | None = None) -> None:
        number, self._events = self._events, self._events + 1
        self.records.append(
            StreamEvent(len(self.records), "c1", 1, number, kind, key=1, value=number, position=position, unit=unit)
        )

    def judged(self, folder: Path, contract: StreamContract | None = CONTRACT) -> Judgement:
        write_history(self.records, folder / "history")
        return timestamps.check(folder / "history", Context(engine=ENGINE, name=Names(name), contract=contract))


def test_a_transaction_commits_above_its_start(tmp_path: Path) -> None:
    world = World()
    world.txn(5, 6)
    world.txn(7, 7)
    judgement = world.judged(tmp_path)
    assert [(each.anomaly, each.ops) for each in judgement.findings] == [(DOUBLE, (1,))]
    assert judgement.findings[0].sentence == (
        "T1 committed at position 7, and had started at position 7: it must commit above."
    )


def test_two_transactions_have_two_commit_timestamps(tmp_path: Path) -> None:
    world = World()
    world.txn(5, 9)
    world.txn(6, 9)
    (finding,) = world.judged(tmp_path).findings
    assert (finding.anomaly, finding.ops) == (DOUBLE, (0, 1))
    assert finding.sentence == "T0 and T1 both committed at position 9."


def test_all_rows_of_a_transaction_have_the_timestamp_of_its_answer(tmp_path: Path) -> None:
    world = World()
    world.txn(5, 9)
    world.event("row", 9, unit=5)
    world.event("row", 10, unit=5)
    world.event("row", 12, unit=11)  # Of one that was not answered.
    (finding,) = world.judged(tmp_path).findings
    assert (finding.anomaly, finding.ops) == (DOUBLE, (0,))
    assert finding.sentence == "T0 has two commit timestamps: position 9 and position 10."


def test_a_transaction_starts_above_a_watermark_announced_before(tmp_path: Path) -> None:
    world = World()
    world.event("watermark", 8)
    world.txn(8, 9)
    world.txn(10, None)
    judgement = world.judged(tmp_path)
    (finding,) = judgement.findings
    assert (finding.anomaly, finding.ops) == (ABOVE, (0,))
    assert "T0 started at position 8, although" in finding.sentence
    assert judgement.witnesses == dict.fromkeys(timestamps.ANOMALIES, 0) | {DOUBLE: 1, ABOVE: 2}


@pytest.mark.parametrize(
    "contract",
    [
        None,
        StreamContract(closed="<=", cut="position", position="epoch", follows_clock=True),
        StreamContract(closed="<=", cut="position", position="commit-timestamp"),
        StreamContract(closed="<", cut="position", position="commit-timestamp", follows_clock=True),
    ],
)
def test_a_watermark_binds_starts_only_where_positions_follow_a_clock(
    tmp_path: Path, contract: StreamContract | None
) -> None:
    world = World()
    world.event("watermark", 8)
    world.txn(8, 9)
    assert anomalies(world.judged(tmp_path, contract)) == []


def drawn(seed: int) -> list[Evidence]:
    """A history of a correct oracle, some of whose timestamps are spoiled."""
    dice, world, clock = random.Random(seed), World(), 10
    spoil = dice.choice((0.0, 0.1, 0.2))
    for _ in range(dice.randint(1, 20)):
        clock += 3
        if dice.random() < 0.4:
            world.event("watermark", clock + (9 if dice.random() < spoil else 0))
            continue
        start, commit = clock, clock + (dice.choice((-1, 0, 4)) if dice.random() < spoil else 1)
        world.txn(start, commit)
        for _ in range(dice.randint(0, 2)):
            world.event("row", commit + (dice.random() < spoil), unit=start)
    return world.records


@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_slow_twin(tmp_path: Path, seed: int) -> None:
    evidence = drawn(seed)
    write_history(evidence, tmp_path / "history")
    judgement = timestamps.check(tmp_path / "history", Context(engine=ENGINE, name=Names(name), contract=CONTRACT))
    counted = {finding.anomaly: finding.count for finding in judgement.findings}
    assert counted == {
        key: count for key, count in ((DOUBLE, doubles(evidence)), (ABOVE, len(late(evidence)))) if count
    }


def test_the_drawn_histories_have_both_anomalies_and_clean_ones() -> None:
    histories = [drawn(seed) for seed in range(60)]
    assert sum(bool(doubles(each)) for each in histories) > 10
    assert sum(bool(late(each)) for each in histories) > 5
    assert sum(not doubles(each) and not late(each) for each in histories) > 10
