"""`seamark calibrate`: measured once, read from its rows ever after, and compared with what was."""

from pathlib import Path

import msgspec

from harness.campaign.calibration.document import Interval, read_calibration
from tests.command.conftest import Seamark

SMALL = (
    "tutorial",
    "--seed",
    "9",
    "--bug",
    "late-row",
    "--time",
    "8",
    "--hits",
    "2",
    "--runs",
    "12",  # The weights of the styles decide how many are needed: mostly three.
    "--correct",
    "1",
    "--jobs",
    "1",
)


def test_what_was_measured_is_not_run_again_and_what_became_worse_is_named(seamark: Seamark, tmp_path: Path) -> None:
    outcome = seamark("calibrate", *SMALL, "--json")
    assert outcome.code == 0, outcome.err
    folder = tmp_path / "store" / "calibration"
    found = read_calibration(folder / "calibration.json")
    (bug,), (correct,) = found.bugs, found.correct
    assert (bug.cluster, bug.bug, bug.hits) == ("tutorial", "late-row", 2)
    assert (bug.promise, bug.found_by, bug.is_client_more, bug.scripted) == ("TUT-2", "graph, rules", False, None)
    assert (correct.runs, correct.false_alarms, correct.client) == (1, 0, 0)
    assert outcome.out == (folder / "calibration.json").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == ["calibration.html", "calibration.json", "rows"]

    rows = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    again = seamark("calibrate", *SMALL, "--compare", folder / "calibration.json", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == rows
    table = seamark("calibrate", *SMALL, "--markdown", "--quiet")
    assert table.code == 0
    assert "| `late-row` |" in table.out
    into = seamark("calibrate", *SMALL, "--into", folder / "calibration.json", "--quiet")
    assert (into.code, read_calibration(folder / "calibration.json")) == (0, found)


def test_a_bug_that_is_found_less_often_than_before_is_named(seamark: Seamark, tmp_path: Path) -> None:
    rare = (
        "tutorial",
        "--bug",
        "lost-ack",
        "--workload",
        "list-append",
        "--seed",
        "9",
        "--time",
        "3",
        "--hits",
        "2",
        "--runs",
        "2",
        "--correct",
        "1",
        "--jobs",
        "1",
    )
    assert seamark("calibrate", *rare, "--quiet").code == 0
    found = read_calibration(tmp_path / "store" / "calibration" / "calibration.json")
    better = msgspec.structs.replace(found.bugs[0], interval=Interval(low=0.5, high=1.0))
    (tmp_path / "before.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(found, bugs=(better,))))
    again = seamark("calibrate", *rare, "--compare", "before.json", "--quiet")
    assert again.code == 4
    assert "worse: tutorial lost-ack: 0 of 2 runs show it, a rate of 0, below 0.5 to 1" in again.err


def test_bad_orders_are_refused_in_one_line(seamark: Seamark, tmp_path: Path) -> None:
    assert "did you mean tutorial" in seamark("calibrate", "tutoral").line
    assert "did you mean late-row" in seamark("calibrate", "tutorial", "--bug", "late-rwo").line
    assert "choose one" in seamark("calibrate", "tutorial", "--json", "--markdown").line
    (tmp_path / "spoiled.json").write_text("{}")
    assert "not a calibration" in seamark("calibrate", "tutorial", "--compare", "spoiled.json").line
    assert not (tmp_path / "store").exists()
