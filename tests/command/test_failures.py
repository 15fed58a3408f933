"""An exception in any layer: never exit 0, never 1, one line and no traceback on the terminal; details in a log."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

import harness.run.batch
import harness.run.running
from checkers.catalogue import CHECKS
from checkers.engine.protocol import Check
from harness.record.store import read_run_file
from tests.command.broken import BROKEN_CHILD
from tests.command.conftest import SEED, SMALL, Outcome, Seamark

RUN = ("run", "--seed", str(SEED), *SMALL)


def raises(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("spoiled for a test")


def only_run(folder: Path) -> Path:
    (run,) = (folder / "store" / "tutorial").iterdir()
    return run


def assert_one_line(outcome: Outcome, *, message: str) -> None:
    """An error of the harness, told in one line: on standard error, or as the verdict of a report."""
    assert outcome.code == 4
    assert "Traceback" not in outcome.out + outcome.err
    lines = [
        line for line in (outcome.out + outcome.err).splitlines() if "HARNESS ERROR" in line or "seamark: " in line
    ]
    assert len(lines) == 1, outcome
    assert message in lines[0]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("machine", "raised ZeroDivisionError: spoiled for a test"),
        ("client", "ZeroDivisionError: spoiled for a test"),
        ("generator", "ZeroDivisionError: spoiled for a test"),
        ("nemesis", "ZeroDivisionError: spoiled for a test"),
        ("probe", "ZeroDivisionError: spoiled for a test"),
        ("cluster", "ZeroDivisionError: spoiled for a test"),
        ("journal", "No space left on device"),
        ("import", "harness.interpreter.interpreter"),
        ("exit-1", "exited with 1"),
        ("SIGKILL:load:50", "signal 9"),
        ("SIGSEGV:load:50", "signal 11"),
        ("SIGTERM:healing:1", "signal 15"),
    ],
)
def test_a_simulation_that_fails_is_an_error_in_one_line_and_stays_one(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, message: str
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, what)})
    outcome = seamark(*RUN, "--quiet")
    assert_one_line(outcome, message=message)
    run = only_run(tmp_path)
    assert (run / "logs" / "run.log").exists()
    for _ in range(2):
        checked = seamark("check", run, "--engine", "local", "--json")
        assert (checked.code, checked.json["incomplete"]) == (4, True)  # What was recorded had no finding.
        assert str(checked.json["reason"]) in outcome.out
    assert message in seamark("list").out


def test_a_simulation_that_ends_without_a_word_is_no_pass(seamark: Seamark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "exit-0")})
    outcome = seamark(*RUN, "--json")
    assert (outcome.code, outcome.json["incomplete"]) == (3, True)


def with_broken_check(name: str) -> Callable[[object], tuple[Check, ...]]:
    """The table of checks, in which one fails."""
    assert name in {check.name for check in CHECKS}
    table = tuple(replace(check, judge=raises) if check.name == name else check for check in CHECKS)
    return lambda _: table


@pytest.mark.parametrize(
    ("place", "broken"),
    [
        ("harness.run.carry_out.finish", raises),
        ("checkers.catalogue.checks_of", with_broken_check("serializability")),
        ("checkers.catalogue.checks_of", with_broken_check("streams")),
    ],
)
def test_what_fails_after_the_simulation_is_an_error_and_the_log_has_the_details(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, broken: object
) -> None:
    monkeypatch.setattr(place, broken)
    outcome = seamark(*RUN, "--quiet")
    assert_one_line(outcome, message="ZeroDivisionError: spoiled for a test")
    log = only_run(tmp_path) / "logs" / "harness.log"
    assert str(log.relative_to(tmp_path)) in outcome.out
    assert "in raises" in log.read_text(encoding="utf-8")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert seamark("check", only_run(tmp_path), "--engine", "local", "--quiet").code == 0  # The run itself was whole.


def test_a_report_page_that_fails_leaves_no_report_that_says_otherwise(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.page.page", raises)
    outcome = seamark(*RUN, "--quiet")
    assert_one_line(outcome, message="store/seamark-error.log")
    assert "in raises" in (tmp_path / "store" / "seamark-error.log").read_text(encoding="utf-8")
    assert not (only_run(tmp_path) / "report.json").exists()


def test_a_finding_outranks_a_check_that_fails(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.catalogue.checks_of", with_broken_check("streams"))
    lossy = ("--cluster", "tutorial", "--bug", "lost-ack", "--nemesis", "partition", "--time", "12", "--seed", "1")
    outcome = seamark("run", *lossy, "--engine", "local", "--json")
    assert (outcome.code, outcome.json["verdict"]) == (1, "invalid")
    assert "the check streams failed" in str(outcome.json["facts"])


def test_a_store_that_takes_nothing_any_more_is_an_error(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.run.single.write_atomically", full)
    assert_one_line(seamark(*RUN, "--quiet"), message="No space left on device")


def test_an_engine_that_does_not_start_is_an_error_with_a_way_out(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch, run_copy: Path
) -> None:
    monkeypatch.setattr("checkers.engine.spark.start_session", raises)
    outcome = seamark("check", run_copy, "--engine", "spark")
    assert_one_line(outcome, message="--engine local")


def test_a_process_of_a_batch_that_dies_is_an_error_of_its_run_and_the_others_go_on(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.batch, "_one", _dies_on_seed_two)
    outcome = seamark("run", "--seed", "1", "--count", "4", "--jobs", "1", *SMALL)
    assert outcome.code == 4
    assert "Traceback" not in outcome.out + outcome.err
    assert outcome.err == ""
    assert "its process died before it was judged" in outcome.out
    verdict, opened = outcome.out.splitlines()[-2:]
    assert "1 HARNESS ERROR, 3 PASS" in verdict
    assert opened.startswith("  open ")


def _dies_on_seed_two(orders: harness.run.batch.Orders, seed: int) -> object:
    """In a process of the pool: a run, or the end of the process."""
    if seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return _ONE(orders, seed)


_ONE = harness.run.batch._one  # What a process of the pool is asked to do.


def test_the_header_of_a_failed_run_still_repeats_it(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "machine")})
    outcome = seamark(*RUN)
    assert f"seed {SEED}" in outcome.out.splitlines()[0]
    assert read_run_file(only_run(tmp_path) / "run.json").seed == SEED
    assert sys.executable not in outcome.out
