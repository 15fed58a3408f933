"""Bugs of the tutorial and of NDB are found by the promises of simple workloads, and nothing is found without them.

Runs of NDB follow the schedules of `test_ndb.py`. A bug that loses or tears shows in what a person would look at first:
money that is not there, an element that is gone, a read that goes back.
"""

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
from nemesis.plan import Plan
from tests.planted.schedules import schedule
from tests.scenario.simulated import Simulated

# Cluster, workload, bug, seed, and what is found by which promise.
FOUND = [
    ("tutorial", "sets", "lost-ack", 1, "lost-element", "SETS-1"),
    ("tutorial", "monotonic", "lost-ack", 1, "non-monotonic-read", "MONOTONIC-1"),
    ("tutorial", "write-skew", "lost-ack", 2, "write-skew", "WRITE-SKEW-1"),
    ("ndb", "bank-locked", "takeover-aborts-committed", 27, "wrong-total", "BANK-1"),
    ("ndb", "sets", "ack-before-commit", 27, "stale-element", "SETS-1"),
    ("ndb", "long-fork-locked", "no-arbitration", 27, "long-fork", "LONG-FORK-1"),
]


def judged(store: Path, cluster: str, workload: str, seed: int, bug: str, *, is_planted: bool) -> Report:
    """The run of NDB under that bug's schedule, or of the tutorial under any faults."""
    print(f"seed {seed}")
    bugs = (bug,) if is_planted else ()
    plan: Plan | None = None
    scenario = Scenario(cluster=cluster, workload=workload, seed=seed, time_s=10, bugs=bugs)
    if cluster == "ndb":
        plan = schedule(cluster, bug).plan
        scenario = Scenario(cluster=cluster, workload=workload, seed=seed, time_s=8, clients=8, bugs=bugs)
    run, _ = prepare(scenario, installed(scenario.cluster), store, plan)
    simulated = Simulated(scenario, plan)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return judge_run(run, in_threads)


@pytest.mark.parametrize(("cluster", "workload", "bug", "seed", "anomaly", "promise"), FOUND)
def test_the_bug_is_found_by_the_promise_of_the_workload(
    tmp_path: Path, cluster: str, workload: str, bug: str, seed: int, anomaly: str, promise: str
) -> None:
    report = judged(tmp_path, cluster, workload, seed, bug, is_planted=True)
    assert report.verdict == "invalid"
    own = [finding for finding in report.findings if finding.promise == promise]
    assert anomaly in {finding.anomaly for finding in own}
    assert all(finding.ops and f"T{finding.ops[0]} " in finding.sentence for finding in own)


@pytest.mark.parametrize(("cluster", "workload", "bug", "seed"), [case[:4] for case in FOUND])
def test_without_the_bug_the_promise_of_the_workload_holds(
    tmp_path: Path, cluster: str, workload: str, bug: str, seed: int
) -> None:
    report = judged(tmp_path, cluster, workload, seed, bug, is_planted=False)
    assert (report.verdict, report.findings) == ("valid", ())
    own = [row for row in report.promises if row.source.startswith("harness/scenario/workloads/")]
    assert own
    assert {row.verdict for row in own} == {"holds"}
