"""Transactions on registers miss what a planted bug loses, and nothing is missed without it."""

from pathlib import Path

import pytest

from harness.core.record import Footer
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from tests.scenario.simulated import Simulated

SEED = 1


def judged(store: Path, seed: int, *bugs: str) -> Report:
    scenario = Scenario(
        cluster="tutorial", workload="rw-register", seed=seed, time_s=12, nemesis=("partition", "crash"), bugs=bugs
    )
    run, _ = prepare(scenario, installed(scenario.cluster), store)
    simulated = Simulated(scenario)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return judge_run(run, in_threads)


def test_what_a_promotion_lost_breaks_the_order_of_versions(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    report = judged(tmp_path, SEED, "lost-ack")
    assert report.verdict == "invalid"
    finding = next(each for each in report.findings if each.promise == "TUT-1")
    assert finding.anomaly.startswith("G-single-")
    assert any("counts as later" in step.sentence for step in finding.cycle)


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
def test_the_same_run_without_the_bug_passes(tmp_path: Path, seed: int) -> None:
    report = judged(tmp_path, seed)
    assert (report.verdict, report.findings) == ("valid", ())
    promise = next(row for row in report.promises if row.id == "TUT-1")
    assert (promise.verdict, promise.witnesses > 1000) == ("holds", True)
    facts = report.facts["serializability"]
    assert isinstance(facts, dict)
    # Concurrent writes leave some of the order open; that an order explains all reads is proved all the same.
    assert facts["decided"] == "proved"
    known = facts["version_order_known_permille"]
    assert isinstance(known, int)
    assert 500 < known < 1000
    assert facts["version_order"] == {
        "initial-state": "given",
        "commits": "not used",
        "writes-follow-reads": "given",
        "process": "timed",
        "real-time": "timed",
    }
