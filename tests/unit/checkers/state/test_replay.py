"""Reads against timestamps: sentences about single cases, and agreement with a slow twin."""

import os
import random
from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import replay
from checkers.state.replay import BACKUP, FLASHBACK, MISMATCH, ORDER, OVERTAKEN, STALE, early_snapshots, read_acts
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, Outcome
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.oracles.replay import early, mismatches, overtakers
from tests.worlds.epoch_cases import ENGINE, name

SEEDS = range(int(os.environ.get("SEAMARK_FUZZ_SEED", "0")), int(os.environ.get("SEAMARK_FUZZ_SEED", "0")) + 60)
X = ord("x")


class Story:
    """Operations one after the other, with their timestamps."""

    def __init__(self) -> None:
        self.records: list[Evidence] = []

    def op(
        self, *mops: MicroOp, read_ts: int | None = None, commit_ts: int | None = None, outcome: Outcome = "ok",
        f: str = "txn", start_ts: int | None = None,
    ) -> None:  # fmt: skip
        index = len(self.records) // 2
        asked = tuple(mop if mop.f == "append" else MicroOp("r", mop.key) for mop in mops)
        self.records.append(Invoke(index, 2 * index, 2 * index, index, f, None, asked))
        done = Complete(index, 2 * index + 1, outcome)
        if outcome == "ok":
            done = Complete(
                index, 2 * index + 1, "ok", mops=mops, start_ts=start_ts, read_ts=read_ts, commit_ts=commit_ts
            )
        self.records.append(done)

    def judged(self, folder: Path) -> Judgement:
        write_history(self.records, folder / "history")
        return replay.check(folder / "history", Context(engine=ENGINE, name=Names(name)))


def append(value: int, key: int = X) -> MicroOp:
    return MicroOp("append", key, value)


def read(*values: int, key: int = X) -> MicroOp:
    return MicroOp("r", key, list(values))


def test_a_read_without_what_was_committed_by_then_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=5)
    story.op(read(), read_ts=7)
    (finding,) = story.judged(tmp_path).findings
    assert (finding.anomaly, finding.ops) == (MISMATCH, (0, 1))
    assert finding.sentence == "T1 read x at position 7 as [], without 1, which T0 committed at position 5."


def test_a_read_of_what_was_committed_later_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=9)
    story.op(read(1), read_ts=7)
    mismatch, order = story.judged(tmp_path).findings
    assert mismatch.sentence == "T1 read x at position 7 as [1], with 1, which T0 committed only at position 9."
    assert order.anomaly == ORDER
    assert order.sentence == (
        "T1 read at position 7, although T0 had committed at position 9, and had been answered before T1 was invoked."
    )


def test_operations_of_one_timestamp_may_come_in_either_order(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), commit_ts=3)
    story.op(append(2), commit_ts=3)
    story.op(append(3), commit_ts=4)
    for seen in ((1, 2, 3), (2, 1, 3)):
        story.op(read(*seen), read_ts=4)
    assert story.judged(tmp_path).findings == ()
    story.op(read(1, 1, 3), read_ts=4)
    assert [finding.count for finding in story.judged(tmp_path / "twice").findings] == [1]
    story.op(read(1, 3, 2), read_ts=4)
    assert [finding.count for finding in story.judged(tmp_path / "late").findings] == [2]


def test_elements_in_another_order_than_that_of_commits_are_found(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=3)
    story.op(append(2), read_ts=4, commit_ts=5)
    story.op(read(2, 1), read_ts=7)
    (finding,) = story.judged(tmp_path).findings
    assert finding.sentence.endswith("which differs from the commits by then, in the order of commits.")


def test_own_appends_unclear_ones_and_reads_without_a_timestamp_are_legal(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), outcome="info")
    story.op(append(2), read_ts=2, commit_ts=3)
    story.op(read(1, 2), append(3), read(1, 2, 3), read_ts=4, commit_ts=6)
    story.op(read(2, 3), read_ts=6)
    story.op(read())
    judged = story.judged(tmp_path)
    assert judged.findings == ()
    assert judged.witnesses == dict.fromkeys(replay.ANOMALIES, 0) | {MISMATCH: 3, ORDER: 2}


@pytest.mark.parametrize(("kind", "anomaly"), [("stale-read", STALE), ("restore", BACKUP), ("restored", FLASHBACK)])
def test_a_read_of_the_past_is_compared_and_may_be_old(tmp_path: Path, kind: str, anomaly: str) -> None:
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=3)
    story.op(append(2), read_ts=4, commit_ts=5)
    views: tuple[tuple[int, list[Json]], ...] = ((2, [1]), (3, [1, 2]))
    for index, seen in views:
        story.records += [
            Invoke(index, 2 * index, 2 * index, index, kind, [[X], 9]),
            Complete(index, 2 * index + 1, "ok", [[X, seen]], read_ts=4),
        ]
    judged = story.judged(tmp_path)
    (finding,) = judged.findings
    assert (finding.anomaly, finding.ops) == (anomaly, (1, 3))
    assert finding.sentence == "T3 read x at position 4 as [1, 2], with 2, which T1 committed only at position 5."
    assert judged.witnesses == dict.fromkeys(replay.ANOMALIES, 0) | {ORDER: 1, anomaly: 2}


@pytest.mark.parametrize(("seen", "count"), [([[X, 1]], 0), ([[X, 7], [X, [1]]], 0), ([1, 2], 0), ([[X, [1]]], 1)])
def test_only_lists_by_key_are_a_read_of_the_past(tmp_path: Path, seen: Json, count: int) -> None:
    """Registers, too, may be read at a timestamp, and pairs may be anything."""
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=3)
    story.records += [Invoke(1, 2, 2, 1, "stale-read", None), Complete(1, 3, "ok", seen, read_ts=4)]
    judged = story.judged(tmp_path)
    assert (judged.findings, judged.witnesses[STALE]) == ((), count)


def test_an_append_after_a_flashback_that_ended_its_key_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), read_ts=1, commit_ts=3)
    story.op(read(1), append(-1, key=ord("y")), read_ts=6, commit_ts=6, f="flashback")
    story.op(append(2), read_ts=5, commit_ts=7)
    judged = story.judged(tmp_path)
    (finding,) = [each for each in judged.findings if each.anomaly == OVERTAKEN]
    assert finding.ops == (1, 2)
    assert finding.sentence == (
        "T2 appended 2 to x at position 7, although the flashback T1 had ended that key at position 6."
    )


def test_an_append_to_what_a_flashback_began_by_one_that_had_started_before_is_found(tmp_path: Path) -> None:
    story, y = Story(), ord("y")
    story.op(read(), append(-1, key=y), start_ts=4, read_ts=6, commit_ts=6, f="flashback")
    story.op(append(2, key=y), start_ts=5, read_ts=5, commit_ts=7)
    story.op(append(3, key=y), start_ts=8, read_ts=8, commit_ts=9)
    judged = story.judged(tmp_path)
    (finding,) = [each for each in judged.findings if each.anomaly == OVERTAKEN]
    assert (finding.ops, finding.count) == ((0, 1), 1)
    assert finding.sentence == (
        "T1 appended 2 to y at position 7, although the flashback T0 began that key after it had started, at position "
        "5, at position 6."
    )


def test_appends_below_a_flashback_and_to_what_it_began_are_legal(tmp_path: Path) -> None:
    """So are those of unclear outcome, and any on keys of a flashback that failed."""
    story, y, z = Story(), ord("y"), ord("z")
    story.op(append(1), read_ts=1, commit_ts=3)
    story.op(append(2), outcome="info")
    story.op(read(1), append(-1, key=y), read_ts=6, commit_ts=6, f="flashback")
    story.op(read(key=z), append(-2, key=y), outcome="fail", f="flashback")
    story.op(append(4, key=y), append(5, key=z), read_ts=7, commit_ts=8)
    judged = story.judged(tmp_path)
    assert judged.findings == ()
    assert judged.witnesses[OVERTAKEN] == 1


def test_a_failed_transactions_append_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(append(1), outcome="fail")
    story.op(read(1), read_ts=4)
    assert [finding.anomaly for finding in story.judged(tmp_path).findings] == [MISMATCH]


def drawn(seed: int) -> list[Evidence]:
    """A history of a correct store with timestamps, in which a few reads and timestamps are spoiled."""
    dice, story, clock, value = random.Random(seed), Story(), 0, 0
    state: list[tuple[int, int, int]] = []
    for _ in range(dice.randint(1, 25)):
        clock += dice.randint(1, 3)
        start, mops, own = clock, [], []
        for _ in range(dice.randint(1, 3)):
            key = dice.randint(0, 2)
            if dice.random() < 0.5:
                value += 1
                own.append((key, value))
                mops.append(append(value, key))
                continue
            ranked = sorted(state, key=lambda each: (each[0], dice.random()))
            seen = [each for at, held, each in ranked if held == key and at <= start]
            seen += [each for held, each in own if held == key]
            if dice.random() < 0.08 and seen:
                dice.choice((seen.reverse, seen.pop))()
            mops.append(read(*seen, key=key))
        outcome: Outcome = dice.choice(("ok", "ok", "ok", "ok", "info", "fail"))
        clock += dice.random() < 0.8  # Else it may share the timestamp of the operation before it.
        if own and (outcome == "ok" or (outcome == "info" and dice.random() < 0.5)):
            state += [(clock, key, each) for key, each in own]
        spoiled = start - dice.randint(1, 6) if dice.random() < 0.06 else start
        story.op(*mops, read_ts=max(1, spoiled), commit_ts=clock if own else None, outcome=outcome)
    return story.records


@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_slow_twin(tmp_path: Path, seed: int) -> None:
    evidence = drawn(seed)
    write_history(evidence, tmp_path / "history")
    acts = read_acts(tmp_path / "history")
    wrong, _ = replay.mismatched(acts)
    assert {int(acts.index[acts.read_op[row]]) for row in wrong} == mismatches(evidence)
    assert set(acts.index[early_snapshots(acts)[0]].tolist()) == early(evidence)


def test_the_drawn_histories_have_both_anomalies_and_clean_ones() -> None:
    histories = [drawn(seed) for seed in range(60)]
    assert sum(bool(mismatches(each)) for each in histories) > 10
    assert sum(bool(early(each)) for each in histories) > 5
    assert sum(not mismatches(each) and not early(each) for each in histories) > 10


def flashed(seed: int) -> list[Evidence]:
    """Flashbacks, and transactions that use the name of each key which is in force; a few use another one."""
    dice, story, clock = random.Random(seed), Story(), 0
    names, spoil = [0, 0, 0], dice.choice((0.0, 0.2, 0.4))
    for value in range(dice.randint(2, 25)):
        clock += 10
        rows = sorted(dice.sample(range(3), dice.randint(1, 2)))
        outcome: Outcome = dice.choice(("ok", "ok", "ok", "ok", "info", "fail"))
        commit = clock + 5 - (dice.randint(6, 30) if dice.random() < spoil else 0)
        start = commit - 1 - dice.randint(0, 60 if dice.random() < spoil else 3)
        offset = dice.choice((-1, 1)) if dice.random() < spoil else 0
        keys = [10 * row + max(0, names[row] + offset) for row in rows]
        if dice.random() < 0.25:
            mops = [*(read(key=key) for key in keys), *(append(-1 - value, key=key + 1) for key in keys)]
            story.op(*mops, start_ts=start, read_ts=commit, commit_ts=commit, outcome=outcome, f="flashback")
            if outcome == "ok":
                names = [name + (row in rows) for row, name in enumerate(names)]
            continue
        mops = [*(append(value, key=key) for key in keys), read(key=10 * rows[0])]
        at = commit if dice.random() < 0.9 else None
        story.op(*mops, start_ts=start, read_ts=start, commit_ts=at, outcome=outcome)
    return story.records


@pytest.mark.parametrize("seed", SEEDS)
def test_overtakers_of_flashbacks_are_those_of_a_slow_twin(tmp_path: Path, seed: int) -> None:
    evidence = flashed(seed)
    write_history(evidence, tmp_path / "history")
    judgement = replay.check(tmp_path / "history", Context(engine=ENGINE))
    found = [(each.ops, each.count) for each in judgement.findings if each.anomaly == OVERTAKEN]
    expected = overtakers(evidence)
    assert [count for _, count in found] == [len(expected)] * bool(expected)
    assert all({op for op, *_ in expected} & set(ops) for ops, _ in found)


def test_the_drawn_flashbacks_are_overtaken_and_are_not() -> None:
    histories = [flashed(seed) for seed in range(60)]
    flashbacks = [
        [each for each in records if isinstance(each, Invoke) and each.f == "flashback"] for records in histories
    ]
    late = [overtakers(each) for each in histories]
    assert sum(any(is_ended for *_, is_ended in each) for each in late) > 10
    assert sum(any(not is_ended for *_, is_ended in each) for each in late) > 5
    assert sum(not each and len(legal) > 1 for each, legal in zip(late, flashbacks, strict=True)) > 15
