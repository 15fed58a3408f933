"""`seamark sweep`: one verdict for many runs, files for people and programs, and nothing lost when it is killed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from harness.campaign.document import read_sweep
from harness.campaign.evidence import kept_in
from harness.campaign.page import sweep_summary
from harness.cli.campaigns.sweep import mark_of
from harness.run.pool import LocalPool, TaskDied, results
from tests.command.browser import Browser, browser
from tests.command.conftest import Seamark

__all__ = ["browser"]
SEAMARK = str(Path(sys.executable).with_name("seamark"))
CONFIG = """
name = "nightly"
seed = 3
count = 3
time = 4.0
rate = 60.0
jobs = 1
min_runs = 3
clusters = ["tutorial"]
faults = ["partition,pause"]
style = "swarm"
"""
RED = """
name = "nightly"
clusters = ["tutorial"]
bug = ["late-row"]
time = 8.0
count = 1
"""
START_S = 120


def config(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "nightly.toml"
    path.write_text(text, encoding="utf-8")
    return path


def only(folder: Path) -> Path:
    (sweep,) = (folder / "store" / "sweeps" / "nightly").iterdir()
    return sweep


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of correct runs that came to its end."""
    folder = tmp_path_factory.mktemp("sweep")
    command = [SEAMARK, "sweep", str(config(folder)), "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (only(folder) / "sweep.json").read_text()
    return only(folder)


def test_a_green_sweep_says_what_it_exposed_and_keeps_rows_but_no_histories(ended: Path) -> None:
    sweep = read_sweep(ended)
    assert (sweep.verdict, sweep.exit_code, sweep.runs, sweep.counts["invalid"]) == ("valid", 0, 3, 0)
    assert [(each.kind, each.is_exercised) for each in sweep.faults] == [("partition", True), ("pause", True)]
    assert {each.id for each in sweep.promises if each.verdict == "holds"} >= {"TUT-1", "TUT-2"}
    assert (sweep.cells[0].planned, sweep.cells[0].runs, sweep.cells[0].hours > 0) == (3, 3, True)
    assert sweep.cells[0].numbers.recovery_s_median is not None
    assert {row.seed for row in kept_in(ended)[1].rows} == {3, 4, 5}
    assert [path.name for path in (ended.parents[2]).iterdir()] == ["sweeps"]


def test_the_page_states_the_rule_and_is_ours_alone(ended: Path, browser: Browser) -> None:
    page = ended / "page.html"
    assert "a kind of fault never took effect or met fewer than 5 operations" in page.read_text(encoding="utf-8")
    for width in (390, 1280):
        probed = browser.probe(page, width=width)
        assert probed.scroll_width <= probed.width
        assert probed.contrasts == {"light": [], "dark": []}


def test_junit_has_the_same_names_every_night(ended: Path) -> None:
    (suite,) = ElementTree.fromstring((ended / "junit.xml").read_bytes())  # noqa: S314  Our own.
    assert suite.attrib["name"] == "nightly"
    assert {case.attrib["classname"] for case in suite} == {"tutorial.any.partition+pause.sim"}
    assert not any(case.find(kind) is not None for case in suite for kind in ("failure", "error"))


def test_a_killed_sweep_goes_on_where_it_was_and_leaves_nothing_behind(
    ended: Path, tmp_path: Path, seamark: Seamark
) -> None:
    command = [SEAMARK, "sweep", str(config(tmp_path)), "--quiet"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and not list((tmp_path / "store").glob("sweeps/*/*/rows.jsonl")):
            time.sleep(0.05)
        folder = only(tmp_path)
        while time.monotonic() < deadline and not kept_in(folder)[1].rows:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = kept_in(folder)[1].rows
    assert 1 <= len(before) < 3
    assert list((tmp_path / "store").glob(".seamark-sweep-*"))  # What the run in progress had written.
    assert not (folder / "sweep.json").exists()

    outcome = seamark("sweep", "--resume", "latest", "--json")
    assert outcome.code == 0, outcome.err
    assert kept_in(folder)[1].rows[: len(before)] == before
    assert len(kept_in(folder)[1].rows) == 3
    assert read_sweep(folder).history_sha256 == read_sweep(ended).history_sha256
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["sweeps"]


def test_a_red_run_is_kept_found_in_the_list_and_repeated(ended: Path, tmp_path: Path, seamark: Seamark) -> None:
    before = tmp_path / "store" / "sweeps" / "nightly" / ended.name
    shutil.copytree(ended, before)
    outcome = seamark("sweep", config(tmp_path, RED), "--seed", "9")
    assert outcome.code == 1, outcome.err
    (folder,) = set(before.parent.iterdir()) - {before}
    sweep = read_sweep(folder)
    late = next(each for each in sweep.findings if each.anomaly == "late-event")
    assert (late.promise, late.is_new, late.cluster, late.rate) == ("TUT-2", True, "tutorial", 1.0)
    assert re.search(r"^  NEW +late event", outcome.out, re.IGNORECASE | re.MULTILINE)
    assert mark_of(replace(late, is_new=False)) == "ONGOING"
    assert mark_of(replace(late, promise=None)) == "PERMITTED"
    assert late.first_run is not None
    assert (tmp_path / late.first_run / "report.html").is_file()
    assert late.command == "seamark run --cluster tutorial --workload bank --seed 9 --time 8 --bug late-row"
    assert f"  seed 9  {late.command}" in outcome.out
    assert f"repeat it: {late.command}" in (folder / "junit.xml").read_text(encoding="utf-8")
    assert f"- seed 9, bank: `{late.command}`" in sweep_summary(sweep)
    assert late.first_run in seamark("list").out
    assert "Late event" in (folder / "page.html").read_text(encoding="utf-8")
    assert (folder / "page.html").read_text(encoding="utf-8").count("<rect") >= 2  # This night and the one before.


def test_bad_orders_are_refused_in_one_line(tmp_path: Path, seamark: Seamark, ended: Path) -> None:
    path = config(tmp_path)
    assert seamark("sweep").line.endswith("or --resume latest")
    assert "leave out the config" in seamark("sweep", path, "--resume", ended).line
    assert "holds no sweep yet" in seamark("sweep", "--resume", "latest").line
    assert "not a sweep's folder" in seamark("sweep", "--resume", tmp_path).line
    assert "cannot be read" in seamark("sweep", "nowhere.toml").line
    assert seamark("sweep", "nowhere.toml").code == 64
    assert not (tmp_path / "store").exists()


def died(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


def test_a_task_whose_process_dies_takes_no_other_with_it() -> None:
    tasks, found = [1, 2, 3, 4], dict[int, int | Exception]()
    with LocalPool(died, 2) as pool:
        for task, result in results(pool, lambda: tasks.pop(0) if tasks else None):
            found[task] = result
    assert isinstance(found.pop(2), TaskDied)
    assert found == {1: 10, 3: 30, 4: 40}


def test_on_github_an_idle_run_is_no_annotation_and_the_summary_states_the_verdict(
    ended: Path, seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    outcome = seamark("sweep", "--resume", ended)
    assert outcome.code == 0
    assert re.search(r"^::", outcome.out, re.MULTILINE) is None
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## PASS: 3 runs: ")
