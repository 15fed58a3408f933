"""Timestamps against real time: sentences about single cases, and agreement with a slow twin."""

import json
import os
import random
from pathlib import Path

import pytest

import seamark
from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import realtime
from checkers.state.realtime import NOT_ABOVE, REGRESS
from harness.core.record import Complete, Evidence, Invoke, Outcome
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.oracles.realtime import contradictions
from tests.worlds.epoch_cases import ENGINE, name

FIRST = int(os.environ.get("SEAMARK_FUZZ_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "40")))


class Story:
    """Operations with the times of their begin and end, and their timestamps."""

    def __init__(self) -> None:
        self.records: list[Evidence] = []

    def op(
        self, begin: int, end: int, *, read_ts: int | None = None, commit_ts: int | None = None, f: str = "query",
        outcome: Outcome = "ok",
    ) -> None:  # fmt: skip
        index = sum(isinstance(each, Invoke) for each in self.records)
        self.records.append(Invoke(index, begin, begin, index, f, "v"))
        self.records.append(Complete(index, end, outcome, "v", read_ts=read_ts, commit_ts=commit_ts))

    def judged(self, folder: Path) -> Judgement:
        write_history(in_order(self.records), folder / "history")
        return realtime.check(folder / "history", Context(engine=ENGINE, name=Names(name)))


def in_order(records: list[Evidence]) -> list[Evidence]:
    """The records by time, with indexes in the order of invocation."""
    by_time = sorted(records, key=lambda each: (each.time_ns, isinstance(each, Complete)))
    rank = {each.index: rank for rank, each in enumerate(each for each in by_time if isinstance(each, Invoke))}
    moved: list[Evidence] = []
    for each in by_time:
        if isinstance(each, Invoke):
            moved.append(Invoke(rank[each.index], each.time_ns, each.time_ns, rank[each.index], each.f, "v"))
        elif isinstance(each, Complete):
            moved.append(
                Complete(
                    rank[each.index], each.time_ns, each.outcome, "v", read_ts=each.read_ts, commit_ts=each.commit_ts
                )
            )
    return moved


def test_a_read_below_what_was_answered_before_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(0, 1, commit_ts=7)
    story.op(2, 3, read_ts=6)
    (finding,) = story.judged(tmp_path).findings
    assert (finding.anomaly, finding.ops) == (REGRESS, (0, 1))
    assert finding.sentence == (
        "T1 read at position 6, although T0 had been answered at position 7 before T1 was invoked."
    )


def test_a_write_at_the_timestamp_of_an_earlier_read_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op(0, 1, read_ts=7)
    story.op(2, 3, commit_ts=7)
    (finding,) = story.judged(tmp_path).findings
    assert (finding.anomaly, finding.ops) == (NOT_ABOVE, (0, 1))


def test_the_read_of_a_read_then_write_is_judged_as_a_read(tmp_path: Path) -> None:
    story = Story()
    story.op(0, 1, commit_ts=7)
    story.op(2, 3, read_ts=6, commit_ts=9)
    assert [finding.anomaly for finding in story.judged(tmp_path).findings] == [REGRESS]


def test_what_is_legal_is_not_found(tmp_path: Path) -> None:
    story = Story()
    story.op(0, 3, commit_ts=7)
    story.op(1, 2, read_ts=5)  # Concurrent.
    story.op(4, 5, read_ts=7)  # A read may share the timestamp of a write before it.
    story.op(6, 7, read_ts=3, f="stale-read")  # A read of the past claims nothing.
    story.op(8, 9, read_ts=2, outcome="fail")
    judgement = story.judged(tmp_path)
    assert judgement.findings == ()
    assert judgement.witnesses == {REGRESS: 1, NOT_ABOVE: 0}


def drawn(seed: int) -> list[Evidence]:
    dice, story = random.Random(seed), Story()
    for _ in range(dice.randint(1, 12)):
        begin = dice.randint(0, 40)
        read_ts = dice.choice((None, begin // 8 + dice.randint(0, 2)))
        commit_ts = dice.choice((None, begin // 8 + dice.randint(1, 4)))
        outcome: Outcome = dice.choice(("ok", "ok", "ok", "fail"))
        f = dice.choice(("query", "change", "stale-read"))
        story.op(begin, begin + dice.randint(1, 9), read_ts=read_ts, commit_ts=commit_ts, f=f, outcome=outcome)
    return in_order(story.records)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_slow_twin(tmp_path: Path, seed: int) -> None:
    evidence = drawn(seed)
    write_history(evidence, tmp_path / "history")
    findings = realtime.check(tmp_path / "history", Context(engine=ENGINE)).findings
    expected = contradictions(evidence)
    assert {finding.anomaly: finding.count for finding in findings} == {
        anomaly: len(ops) for anomaly, ops in expected.items() if ops
    }


def test_the_drawn_histories_have_both_anomalies_and_clean_ones() -> None:
    found = [contradictions(drawn(seed)) for seed in range(60)]
    assert all(sum(bool(each[anomaly]) for each in found) > 5 for anomaly in (REGRESS, NOT_ABOVE))
    assert sum(not any(each.values()) for each in found) > 5


PROMISES = """
[[promise]]
id = "EXT-1"
text = "Commit timestamps follow real time."
source = "the manual"
forbids = ["timestamp-regress", "write-not-above"]
"""


@pytest.mark.parametrize(("last", "verdict", "anomalies"), [(9, "invalid", {"write-not-above"}), (31, "valid", set())])
def test_a_history_from_elsewhere_is_judged_by_a_promise_file(
    tmp_path: Path, last: int, verdict: str, anomalies: set[str]
) -> None:
    """Transactions one after another with commit timestamps of 11 to 30, as a system of another kind reports them."""
    lines = list[str]()
    for index, stamp in enumerate([*range(11, 31), last]):
        invoke = {"type": "invoke", "index": index, "time_ns": 10 * index, "process": index % 3, "f": "txn"}
        mops = [["append", "x", index]]
        done = {"type": "complete", "index": index, "time_ns": 10 * index + 5, "outcome": "ok", "commit_ts": stamp}
        lines += [json.dumps(each | {"mops": mops}) for each in (invoke, done)]
    (tmp_path / "h.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "promises.toml").write_text(PROMISES)
    found = seamark.check(tmp_path / "h.jsonl", promises=tmp_path / "promises.toml")
    assert (found.verdict, {each.anomaly for each in found.findings if each.promise}) == (verdict, anomalies)
    assert "realtime" in {each.checker for each in found.findings} or not anomalies
    (promise,) = found.promises
    assert (promise.id, promise.witnesses) == ("EXT-1", 20)
