"""Every schedule of docs/findings/ticdc-large-transactions.md: what the design as written does, and the corrected one.

A switch of the cluster makes a rule what the design says. Each file beside the page is one schedule, to the nanosecond.
"""

from pathlib import Path

import pytest

import seamark

SCHEDULES = Path(__file__).resolve().parents[2] / "docs/findings/ticdc-large-transactions"
FORGETS, FREES = "rescan-forgets-determined", "unblock-on-status"
# A schedule and the design as written: the promises that it breaks, by their anomalies.
BROKEN = {
    ("new-session", FORGETS): {"late-event TIK-G4", "torn-unit TIK-G6"},
    ("new-session-lost", FORGETS): {"missing-event TIK-G5", "torn-unit TIK-G6", "split-view TIK-G12"},
    ("status-frees", FREES): {"late-event TIK-G4", "torn-unit TIK-G6"},
    ("backup", "pitr-status-based"): {"backup-mismatch TIK-G18"},
    ("flashback", "flashback-blind-rollback"): {"flashback-mismatch TIK-G19", "snapshot-mismatch TIK-G1"},
}
NEW_LEADERS = ("new-leader-k1", "new-leader-k2", "new-leader-k3")
ANSWERED = {"backup": 2, "flashback": 3}  # Operations that succeed; elsewhere it is the large transaction alone.


def repeated(schedule: str, store: Path, *switches: str) -> seamark.Report:
    """The report on that schedule, with these switches; all faults had an effect."""
    case = (SCHEDULES / f"{schedule}.json").read_text(encoding="utf-8")
    report = seamark.repeat(case, cluster="ticdc", bugs=switches, store=store)
    assert report.operations["ok"] == ANSWERED.get(schedule, 1)
    assert all(fault.effective == fault.planned for fault in report.faults)
    return report


def test_every_schedule_is_tried() -> None:
    assert sorted(path.stem for path in SCHEDULES.iterdir()) == sorted({name for name, _ in BROKEN} | {*NEW_LEADERS})


@pytest.mark.parametrize(("schedule", "switch"), BROKEN)
def test_the_design_as_written_breaks_its_promise(tmp_path: Path, schedule: str, switch: str) -> None:
    report = repeated(schedule, tmp_path, switch)
    assert report.verdict == "invalid"
    assert BROKEN[schedule, switch] <= set(report.symptoms)


@pytest.mark.parametrize("schedule", [*(name for name, _ in BROKEN), *NEW_LEADERS])
def test_the_corrected_design_keeps_it_under_the_same_schedule(tmp_path: Path, schedule: str) -> None:
    assert repeated(schedule, tmp_path).symptoms == ()


@pytest.mark.parametrize("schedule", NEW_LEADERS)
def test_a_new_leader_alone_breaks_nothing_where_only_commits_free_the_watermark(tmp_path: Path, schedule: str) -> None:
    """It takes leftover locks for those of a transaction that it has to wait for, and sends them to captures."""
    assert repeated(schedule, tmp_path, FORGETS).symptoms == ()
