"""What the harness fails at is tried once more, is never green, and is not held against a run if the disk is full."""

import shutil
from collections import namedtuple
from pathlib import Path

import msgspec
import pytest

import checkers
from harness.campaign import sweep as sweeping
from harness.campaign import task as tasks
from harness.campaign.evidence import kept_in
from harness.campaign.ledger.rows import Row, row_of
from harness.campaign.sweep import Begun, StoreFull, begin, resumed
from harness.campaign.task import Task, done
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.run import code
from harness.run.pool import TaskDied
from harness.scenario.consent import installed
from harness.scenario.registry import package_of
from tests.unit.campaign.made import carried_out, config
from tests.unit.campaign.reports import report

Usage = namedtuple("Usage", "total used free")


def begun(folder: Path, count: int = 3) -> Begun:
    return begin(config(count=count), folder / "store")


def passed(task: Task) -> Row:
    return row_of(report(history_sha256="as ever"), cell=task.cell, seed=task.scenario.seed, attempt=task.attempt)


def test_a_run_whose_process_died_is_tried_again_and_listed(tmp_path: Path) -> None:
    def work(task: Task) -> Row:
        if (task.scenario.seed, task.attempt) == (1, 1):
            raise TaskDied("its process died")
        return passed(task)

    sweep = carried_out(begun(tmp_path), work)
    assert (sweep.verdict, sweep.runs, sweep.counts["valid"]) == ("valid", 3, 3)
    (trouble,) = sweep.trouble
    assert (trouble.seed, trouble.attempt, trouble.is_recovered) == (1, 1, True)
    assert "its process died" in trouble.reason


def test_a_run_that_fails_twice_is_never_green(tmp_path: Path) -> None:
    def work(task: Task) -> Row:
        if task.scenario.seed == 1:
            return row_of(report(Verdict.ERROR, reason="a bug of ours"), cell=0, seed=1, attempt=task.attempt)
        return passed(task)

    sweep = carried_out(begun(tmp_path), work)
    assert (sweep.verdict, sweep.exit_code, sweep.counts["error"], sweep.counts["valid"]) == ("error", 4, 1, 2)
    assert [(each.attempt, each.is_recovered) for each in sweep.trouble] == [(1, False), (2, False)]
    assert "a bug of ours" in sweep.reason


def test_a_full_disk_ends_the_sweep_in_one_line_and_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = begun(tmp_path)

    def work(task: Task) -> Row:
        if task.scenario.seed == 2:
            raise OSError(28, "No space left on device")
        return passed(task)

    monkeypatch.setattr(sweeping.shutil, "disk_usage", lambda _: Usage(1, 1, 0))  # type: ignore[attr-defined]
    with pytest.raises(StoreFull) as raised:
        carried_out(order, work)
    assert "no space left on the device); 2 runs are kept; make room, then seamark sweep --resume" in str(raised.value)
    assert [row.seed for row in kept_in(order.folder)[1].rows] == [0, 1]
    monkeypatch.undo()

    done = list[int]()

    def rest(task: Task) -> Row:
        done.append(task.scenario.seed)
        return passed(task)

    sweep = carried_out(resumed(order.folder, tmp_path / "store"), rest)
    assert (done, sweep.verdict, sweep.runs, sweep.trouble) == ([2], "valid", 3, ())


def test_a_second_attempt_is_all_that_a_resumed_sweep_owes_a_run_that_failed(tmp_path: Path) -> None:
    order = begun(tmp_path, count=1)

    def work(task: Task) -> Row:
        if task.attempt == 1:
            raise TaskDied("killed")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carried_out(order, work)
    attempts = list[int]()

    def again(task: Task) -> Row:
        attempts.append(task.attempt)
        return passed(task)

    assert carried_out(resumed(order.folder, tmp_path / "store"), again).verdict == "valid"
    assert attempts == [2]


def test_a_red_run_whose_row_a_kill_prevented_is_in_the_store_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    order = begin(config(count=2, time=8.0, bug=["late-row"]), store)
    cell, place = order.config.cells[0], tmp_path / "in progress"
    place.mkdir()
    task = Task(cell=0, attempt=1, scenario=cell.scenario, code=order.config.code_of(cell), folder=place, store=store)
    row = done(msgspec.structs.replace(task, campaign=order.order.id))  # Its row is not appended: a kill.
    assert row.report.verdict == "invalid"
    left = list[int]()

    def work(task: Task) -> Row:
        left.append(task.scenario.seed)
        return passed(task)

    sweep = carried_out(resumed(order.folder, store), work)
    assert (left, sweep.verdict, sweep.counts["invalid"]) == ([1], "invalid", 1)
    assert sweep.findings[0].first_run == row.report.run
    assert [str(each) for each in (store / "tutorial").iterdir()] == [row.report.run]
    assert kept_in(order.folder)[1].rows[0].report.history_sha256 == row.report.history_sha256
    assert carried_out(resumed(order.folder, store), work).counts == sweep.counts


def test_a_red_run_that_a_kill_cut_off_from_its_page_is_in_the_store_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    store = tmp_path / "store"
    order = begin(config(count=1, time=8.0, bug=["late-row"]), store)
    place = tmp_path / "in progress"
    place.mkdir()
    cell = order.config.cells[0]
    task = Task(cell=0, attempt=1, scenario=cell.scenario, code=order.config.code_of(cell), folder=place, store=store)
    monkeypatch.setattr(tasks, "store_report", killed)
    with pytest.raises(KeyboardInterrupt):
        done(msgspec.structs.replace(task, campaign=order.order.id))
    monkeypatch.undo()
    assert carried_out(resumed(order.folder, store), done).counts["invalid"] == 1
    assert len(list((store / "tutorial").iterdir())) == 1


def test_an_error_in_a_scenario_is_one_of_the_whole_sweep(tmp_path: Path) -> None:
    def work(task: Task) -> Row:
        raise ScenarioError("no such thing")

    with pytest.raises(ScenarioError, match="no such thing"):
        carried_out(begun(tmp_path), work)


def test_a_sweep_whose_config_was_changed_is_not_resumed(tmp_path: Path) -> None:
    order = begun(tmp_path)
    path = order.folder / "order.json"
    path.write_bytes(path.read_bytes().replace(b"count = 3", b"count = 4"))
    with pytest.raises(ScenarioError, match="has changed since: begin a new sweep"):
        resumed(order.folder, tmp_path / "store")


def test_a_sweep_goes_on_only_with_the_code_of_its_clusters_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, package = begun(tmp_path), tmp_path / "tutorial"
    shutil.copytree(package_of(installed("tutorial")), package)
    monkeypatch.setattr(code, "package_of", lambda _: package)
    assert resumed(order.folder, tmp_path / "store").order == order.order
    (package / "machine.py").write_text("# Another one.\n")
    with pytest.raises(ScenarioError, match="the code of its clusters or of Seamark has changed since"):
        resumed(order.folder, tmp_path / "store")
    monkeypatch.undo()
    monkeypatch.setattr(checkers, "__path__", [str(package)])
    with pytest.raises(ScenarioError, match="the code of its clusters or of Seamark has changed since"):
        resumed(order.folder, tmp_path / "store")
