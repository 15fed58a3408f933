"""Each planted bug of NDB is found under a schedule of a few steps, by a promise that it breaks; nothing without it.

For the schedules see schedules.py.
"""

from pathlib import Path

import pytest
from msgspec import structs

from clusters.ndb.planted import BUGS
from harness.judging.engines import in_threads
from harness.record.store import RUN_FILE, read_run_file, write_run_file
from harness.run.single import judge_run
from tests.planted.schedules import Case, Runs, judged, require_clean, require_found, require_schedules, schedule

CLUSTER = "ndb"
CASES: dict[str, Case] = {
    "no-commit-block": Case("cut-not-closed", "NDB-G5"),
    "unblock-before-all": Case("cut-not-closed", "NDB-G5"),
    "epoch-at-prepare": Case("cut-not-closed", "NDB-G5"),
    "epoch-per-participant": Case("double-epoch", "NDB-G4"),
    "nodefinish-early": Case("missing-event", "NDB-G7"),
    "nodefinish-ignores-adopted": Case("missing-event", "NDB-G7"),
    "adopt-with-current-epoch": Case("double-epoch", "NDB-G4"),
    "takeover-aborts-committed": Case("fractured-transaction", "NDB-G23"),
    "takeover-commits-prepared": Case("fractured-transaction", "NDB-G23"),
    "takeover-partial-query": Case("diverged-replicas", "NDB-G24"),
    "master-crash-forgets-commit": Case("cut-not-closed", "NDB-G5"),
    "master-crash-leaves-block": Case("stall", "NDB-G28"),
    "stale-failure-no": Case("cut-not-closed", "NDB-G5"),
    "ack-before-commit": Case("stale-acknowledged", "NDB-G2"),
    "locks-released-at-prepare": Case("lost-update", "NDB-G3"),
    "complete-before-rows": Case("missing-event", "NDB-G7"),
    "lib-any-node-completes": Case("torn-unit", "NDB-G8"),
    "bucket-count-not-set": Case("missing-event", "NDB-G7"),
    "failed-node-counts-done": Case("missing-event", "NDB-G7"),
    "no-resend": Case("stall", "NDB-G28"),
    "free-on-own-ack": Case("stall", "NDB-G28"),
    "ack-one-subscriber": Case("stall", "NDB-G28"),
    "switch-epoch-too-low": Case("missing-event", "NDB-G7"),
    "resend-range-short": Case("missing-event", "NDB-G7"),
    "handover-double": Case("duplicate-event", "NDB-G11"),
    "handover-hole": Case("missing-event", "NDB-G7"),
    "handover-before-connect": Case("stall", "NDB-G28"),
    "oob-silent": Case("silent-gap", "NDB-G13"),
    "oob-flag-always": Case("false-gap", "NDB-G14"),
    "lib-overflow-drops-rows": Case("missing-event", "NDB-G7"),
    "lib-resume-mid-epoch": Case("torn-unit", "NDB-G8"),
    "slow-user-no-ack": Case("user-blocks-acknowledgements", "NDB-G29"),
    "disconnect-wrong": Case("spurious-disconnect", "NDB-G27"),
    "cluster-failure-keeps-partial": Case("outside-filter", "NDB-G9"),
    "epoch-reuse": Case("epoch-shape", "NDB-G15"),
    "gci-saved-early": Case("diverged-replicas", "NDB-G24"),
    "redo-tail-not-invalidated": Case("resurrected", "NDB-G21"),
    "restart-max-of-nodes": Case("diverged-replicas", "NDB-G24"),
    "old-master-no-copy": Case("loss-beyond-bound", "NDB-G22"),
    "copy-misses-running": Case("diverged-replicas", "NDB-G24"),
    "no-arbitration": Case("split-brain", "NDB-G25"),
    "arbitrator-two-grants": Case("split-brain", "NDB-G25"),
    "majority-not-viability": Case("lost-acknowledged", "NDB-G23"),
    "row-order-in-epoch": Case("order-inversion", "NDB-G10"),
    "merge-loses-delete-insert": Case("wrong-merge", "NDB-G9"),
    "gcp-blocks-on-subscriber": Case("lag", "NDB-G27"),
    "no-lag-check": Case("memory-growth", "NDB-G26"),
    "commit-primary-first": Case("incompatible-order", "NDB-G1"),
}


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_finds_nothing(runs: Runs, bug: str) -> None:
    require_clean(runs.of(bug, is_planted=False), "valid")


@pytest.mark.parametrize("bug", ["nodefinish-early", "no-arbitration"])
def test_no_check_knows_which_bug_is_on(tmp_path: Path, bug: str) -> None:
    case = schedule(CLUSTER, bug)
    report = judged(tmp_path, structs.replace(case.scenario, bugs=(bug,)), case.plan)
    (run_path,) = tmp_path.rglob(RUN_FILE)
    run_file = read_run_file(run_path)
    options = run_file.options | {"bugs": [], "seed": 0}
    anonymous = structs.replace(run_file, bugs=(), options=options, seed=0, cluster="nobody's")
    write_run_file(run_path.parent, anonymous)
    again = judge_run(run_path.parent, in_threads)
    assert (again.verdict, again.findings) == (report.verdict, report.findings)
    assert again.bugs == ()
    assert again.history_sha256 == report.history_sha256
