"""How often a finding was seen in the runs of its test."""

from pathlib import Path

from msgspec.structs import replace

from harness.core.verdict import Verdict
from harness.report.model import REPORT_FILE, FindingRow, Report, to_json
from harness.report.track_record import TrackRecord, track_records
from tests.unit.report.conftest import report

FINDING = FindingRow(fingerprint="f", anomaly="G0", checker="c", sentence="s", promise="P-1")
OLD, NEW = {"seamark": "0.1", "python": "3.11"}, {"seamark": "0.2", "python": "3.12"}


def stored(store: Path, day: int, verdict: Verdict, **fields: object) -> Report:
    """A report in a run's folder of the store; that of a red run has the finding."""
    known = {
        "started_utc": f"2026-11-{day:02}T08:00:00Z",
        "run": str(store / f"202611{day:02}T080000Z-7"),
        "versions": OLD,
    }
    findings = (FINDING,) if verdict is Verdict.INVALID else ()
    one = report(verdict, **({"findings": findings} | known | fields))
    folder = Path(one.run or "")
    folder.mkdir()
    (folder / REPORT_FILE).write_bytes(to_json(one))
    return one


def record(found: Report) -> TrackRecord:
    (one,) = track_records(found)
    assert one is not None
    return one


def test_runs_are_counted_by_release_with_the_first_and_the_last_time(tmp_path: Path) -> None:
    stored(tmp_path, 1, Verdict.INVALID)
    stored(tmp_path, 2, Verdict.VALID)
    stored(tmp_path, 3, Verdict.INVALID)
    found = record(stored(tmp_path, 4, Verdict.INVALID, versions=NEW))
    old, new = found.releases
    assert (old.name, old.seen, old.runs) == ("seamark 0.1", 2, 3)
    assert (old.first[:10], old.last[:10]) == ("2026-11-01", "2026-11-03")
    assert (new.name, new.seen, new.runs, new.first) == ("seamark 0.2", 1, 1, new.last)
    assert (found.seen, found.runs, found.is_all) == (3, 4, True)


def test_runs_that_no_seed_drew_are_not_counted(tmp_path: Path) -> None:
    stored(tmp_path, 1, Verdict.INVALID, is_given=True)
    shrunk = stored(tmp_path, 2, Verdict.INVALID, is_given=True)
    found = record(stored(tmp_path, 3, Verdict.INVALID))
    assert (found.seen, found.runs) == (1, 1)
    assert track_records(shrunk) == [None]


def test_what_tested_nothing_and_what_cannot_be_read_is_no_run(tmp_path: Path) -> None:
    stored(tmp_path, 1, Verdict.VACUOUS)
    stored(tmp_path, 2, Verdict.ERROR)
    for name, content in (("a", b"{"), ("b", b"[" * 100_000), ("c", b'{"verdict": 1}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / REPORT_FILE).write_bytes(content)
    found = record(stored(tmp_path, 3, Verdict.INVALID))
    assert (found.seen, found.runs) == (1, 1)


def test_another_anomaly_another_promise_and_other_bugs_are_not_the_same(tmp_path: Path) -> None:
    stored(tmp_path, 1, Verdict.INVALID, findings=(replace(FINDING, anomaly="G1a"),))
    stored(tmp_path, 2, Verdict.INVALID, findings=(replace(FINDING, promise="P-2"),))
    stored(tmp_path, 3, Verdict.INVALID, bugs=("lost-ack",))
    found = record(stored(tmp_path, 4, Verdict.INVALID))
    assert [(each.name, each.seen, each.runs) for each in found.releases] == [
        ("seamark 0.1", 1, 3),
        ("seamark 0.1 with lost-ack", 1, 1),
    ]


def test_a_run_counts_once_also_when_it_was_judged_before(tmp_path: Path) -> None:
    one = stored(tmp_path, 1, Verdict.INVALID)
    assert (record(one).seen, record(one).runs) == (1, 1)


def test_a_history_from_elsewhere_has_no_record() -> None:
    assert track_records(report(Verdict.INVALID, findings=(FINDING,))) == [None]
