"""Bounds of transactions, and what is kept for watermarks: single cases, agreement with a slow twin, and runs."""

import random
from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import timestamps
from checkers.state.timestamps import BELOW, TRACKED
from clusters.ticdc.promises import STREAM
from clusters.ticdc.rows.versions import Change
from clusters.ticdc.watermarks.advancer import Advancer
from harness.core.record import Complete, Evidence, Footer, Invoke, Json, MicroOp, State, StreamEvent
from harness.core.verdict import Judgement
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from tests.amount import FIRST_SEED, count
from tests.oracles.timestamps import bounded, kept
from tests.scenario.simulated import Simulated
from tests.worlds.epoch_cases import ENGINE, name

SEEDS = range(FIRST_SEED, FIRST_SEED + count(40))


def transaction(index: int, start_ts: int, commit_ts: int | None) -> list[Evidence]:
    """An operation that was answered; without a commit timestamp, one whose outcome nobody knows."""
    mops = (MicroOp("append", 1, index),)
    begin = Invoke(index, 1, 0, index, "txn", None, mops)
    if commit_ts is None:
        return [begin, Complete(index, 2, "info")]
    return [begin, Complete(index, 2, "ok", None, mops, start_ts=start_ts, commit_ts=commit_ts)]


def state(kind: str, key: Json, value: Json) -> State:
    return State(3, "k1", kind, key, value)


def judged(folder: Path, *records: Evidence) -> Judgement:
    write_history(records, folder / "history")
    return timestamps.check(folder / "history", Context(engine=ENGINE, name=Names(name), contract=STREAM))


def test_a_commit_below_a_bound_that_others_have_is_found(tmp_path: Path) -> None:
    judgement = judged(tmp_path, *transaction(0, 5, 8), state("bound", 5, 7), state("bound", 5, 9))
    (finding,) = judgement.findings
    assert (finding.anomaly, finding.ops) == (BELOW, (0,))
    assert finding.sentence == (
        "T0 committed at position 8, although k1 had answered others that it would commit at position 9 or above."
    )


def test_a_transaction_that_nobody_answered_is_known_by_its_rows(tmp_path: Path) -> None:
    row = StreamEvent(4, "c1", 1, 0, "row", key=1, value=0, position=8, unit=5)
    (finding,) = judged(tmp_path, *transaction(0, 5, None), row, state("bound", 5, 9)).findings
    assert finding.sentence.startswith("The transaction position 5 committed at position 8, although k1")


def test_a_commit_at_its_bound_and_bounds_of_transactions_that_failed_are_legal(tmp_path: Path) -> None:
    bounds = (state("bound", 5, 9), state("bound", 6, 99))
    judgement = judged(tmp_path, *transaction(0, 5, 9), *transaction(1, 6, None), *transaction(2, 7, 8), *bounds)
    assert judgement.findings == ()
    assert judgement.witnesses[BELOW] == 1


def test_entries_for_each_row_of_a_large_transaction_are_found(tmp_path: Path) -> None:
    judgement = judged(tmp_path, *transaction(0, 5, 9), state("tracked", 2, [5, 2, 2, 3]))
    (finding,) = judgement.findings
    assert finding.anomaly == TRACKED
    assert finding.sentence == (
        "k1 kept 5 entries for a watermark, with 2 locks of small transactions and 2 large transactions, which held 3 "
        "locks."
    )


def test_one_entry_for_each_large_transaction_and_each_small_lock_is_legal(tmp_path: Path) -> None:
    states = (state("tracked", 2, [4, 2, 2, 9]), state("tracked", 2, [0, 2, 2, 9]))
    judgement = judged(tmp_path, *transaction(0, 5, 9), *states)
    assert judgement.findings == ()
    assert judgement.witnesses[TRACKED] == 2


def test_without_a_large_transaction_that_holds_several_locks_nothing_was_kept_small(tmp_path: Path) -> None:
    judgement = judged(
        tmp_path, *transaction(0, 5, 9), state("tracked", 2, [3, 1, 2, 2]), state("tracked", 2, [4, 1, 2, 2])
    )
    assert [finding.anomaly for finding in judgement.findings] == [TRACKED]
    assert judgement.witnesses[TRACKED] == 0


def drawn(seed: int) -> list[Evidence]:
    """Transactions with bounds and rows, and reports of what nodes keep; some bounds, rows and reports are spoiled."""
    dice = random.Random(seed)
    spoil, clock = dice.choice((0.0, 0.1, 0.3)), dice.choice((0, 1 << 55))  # Large ones are no ids of their own.
    found: list[Evidence] = []
    rows = 0
    for index in range(dice.randint(1, 12)):
        clock += 10
        start, commit = clock, clock + dice.randint(2, 9)
        ends = dice.choice(("ok", "ok", "ok", "read", "open", "fail", "info"))
        may_bind = 99 if ends in ("read", "open", "fail") else 0  # It commits nowhere, so any bound is kept.
        gives = [commit - dice.randint(0, 3) + may_bind for _ in range(dice.choice((0, 1, 2, 3)))]
        if gives and dice.random() < spoil:
            gives[dice.randrange(len(gives))] += dice.randint(1, 4)
        bounds = [State(clock, dice.choice(("k1", "k2")), "bound", start, each) for each in gives]
        early = dice.randint(0, len(bounds))
        mops = (MicroOp("append", 1, index),)
        found += [Invoke(index, clock, clock, index, "txn", None, mops), *bounds[:early]]
        if ends in ("ok", "read"):
            at = commit if ends == "ok" else None
            found.append(Complete(index, clock, "ok", None, mops, start_ts=start, commit_ts=at))
        elif ends != "open":
            found.append(Complete(index, clock, "fail" if ends == "fail" else "info"))
        for _ in range(dice.randint(0, 2) if ends in ("ok", "info") else 0):
            place = commit + (dice.randint(-4, 4) if dice.random() < spoil else 0)
            found.append(StreamEvent(clock, "c1", 1, rows, "row", key=1, value=index, position=place, unit=start))
            rows += 1
        found += [*bounds[early:], *reports(dice, clock, spoil)]
    return found


def reports(dice: random.Random, clock: int, spoil: float) -> list[State]:
    """What one node keeps of a few locks: now and then an entry for each of a large transaction, as if it was small."""
    small, large = dice.randint(0, 3), [dice.randint(1, 3) for _ in range(dice.randint(0, 2))]
    entries = small + (sum(large) if dice.random() < spoil else len(large))
    entries -= dice.random() < 0.2 and entries > 0  # The state of one was forgotten already.
    value: list[Json] = [entries, small, len(large), sum(large)]
    return [State(clock, "k1", "tracked", 0, value)] * dice.randint(0, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_slow_twin(tmp_path: Path, seed: int) -> None:
    evidence = drawn(seed)
    judgement = judged(tmp_path, *evidence)
    has_broken, reported = bounded(evidence), kept(evidence)
    counts = {finding.anomaly: finding.count for finding in judgement.findings}
    assert counts.get(BELOW, 0) == sum(has_broken.values())
    assert counts.get(TRACKED, 0) == sum(is_too_much for _, is_too_much in reported)
    assert judgement.witnesses[BELOW] == len(has_broken)
    assert judgement.witnesses[TRACKED] == sum(is_exercised for is_exercised, _ in reported)


def test_the_drawn_histories_have_both_anomalies_and_clean_ones() -> None:
    histories = [drawn(seed) for seed in range(40)]
    broken = [any(bounded(each).values()) for each in histories]
    grown = [any(is_too_much for _, is_too_much in kept(each)) for each in histories]
    assert sum(broken) > 10
    assert sum(grown) > 5
    assert sum(bool(bounded(each)) and not is_broken for each, is_broken in zip(histories, broken, strict=True)) > 10
    assert sum(bool(kept(each)) and not is_grown for each, is_grown in zip(histories, grown, strict=True)) > 10


def run(store: Path) -> Report:
    """The report on a short run with large transactions and no fault."""
    scenario = Scenario(cluster="ticdc", seed=1, time_s=2, workload="large-vs-tick", clients=8)
    folder, _ = prepare(scenario, installed(scenario.cluster), store, Plan(steps=()))
    simulated = Simulated(scenario, Plan(steps=()))
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], folder / HISTORY)
    return judge_run(folder, in_threads)


def test_runs_exercise_both(tmp_path: Path) -> None:
    report = run(tmp_path)
    assert report.findings == ()
    witnesses = {promise.id: promise.witnesses for promise in report.promises}
    assert witnesses["TIK-G21"] > 10
    assert witnesses["TIK-G3"] > 10


def test_an_advancer_with_an_entry_for_each_row_is_found_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tracks a large transaction's locks by key, too, as those of small ones."""
    track = Advancer._track

    def by_key(self: Advancer, change: Change) -> None:
        track(self, change)
        if change.kind == "prewrite":
            self._starts[change.key] = change.start_ts
        elif change.kind == "commit":
            self._starts.pop(change.key, None)

    monkeypatch.setattr(Advancer, "_track", by_key)
    assert ("tracked-rows", "TIK-G21") in {(each.anomaly, each.promise) for each in run(tmp_path).findings}
