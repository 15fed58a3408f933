"""Progress where no terminal is: a line now and then; and a SIGTERM that says what it does and leaves nothing."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from checkers.catalogue import CHECKS
from harness.cli import output
from harness.run.live import PHASES, activity
from tests.command.conftest import SEED, SMALL, Seamark

LIMIT_S = 60.0


def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let progress in a log come every millisecond."""
    for name in ("EVERY_S", "EVERY_MAX_S"):
        monkeypatch.setattr(output, name, 0.001)


def test_lines_in_a_log_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    class Over:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return len(waits) == 8

    monkeypatch.setattr(output, "EVERY_S", 10.0)
    log = output._InLog(Console(file=io.StringIO()))
    monkeypatch.setattr(log, "_is_over", Over())
    log._print()
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_log_gets_a_line_now_and_then_with_the_check_at_work(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch
) -> None:
    often(monkeypatch)
    outcome = seamark("run", "--seed", str(SEED), *SMALL)
    lines = outcome.err.splitlines()
    assert outcome.code == 0
    assert any(phase in line for phase in PHASES.values() for line in lines)  # A short phase may pass unseen.
    assert any("  judging: " in line for line in lines)
    assert all(len(line) <= 80 and "\r" not in line for line in lines)


def test_a_check_and_a_replay_say_what_is_at_work(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch, run_copy: Path, tmp_path: Path
) -> None:
    often(monkeypatch)
    edn = tmp_path / "history.edn"
    assert seamark("export", run_copy, "--output", edn).code == 0
    checks = {f"judging: {check.name}" for check in CHECKS}
    for arguments, first in (
        (("check", run_copy), checks),
        (("check", edn), {"reading history.edn"}),
        (("replay", run_copy), {"repeating the run"}),
    ):
        outcome = seamark(*arguments, "--engine", "local")
        shown = {line.partition(" s  ")[2] for line in outcome.err.splitlines()}
        assert shown & first, outcome.err
        assert shown & checks, outcome.err  # Which ones depends on how long each takes.
        assert seamark(*arguments, "--engine", "local", "--quiet").err == ""


def test_the_seconds_of_what_is_at_work_go_on_though_nobody_tells_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(output, "standard_error", lambda: Console(file=shown))
    often(monkeypatch)
    with output.watched(is_shown=True) as watcher:
        activity(watcher)("judging")
        until = time.monotonic() + LIMIT_S
        while len(set(shown.getvalue().splitlines())) < 2 and time.monotonic() < until:
            time.sleep(0.001)
    lines = sorted(set(shown.getvalue().splitlines()))
    assert len(lines) > 1
    assert all(line.endswith(" s  judging") for line in lines)


def test_a_dumb_terminal_counts_as_a_log_which_gets_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = io.StringIO()
    monkeypatch.setattr(output, "standard_error", lambda: Console(file=shown, force_terminal=True))
    often(monkeypatch)
    with output.watched(is_shown=True) as watcher:
        assert watcher is not None
        for text in ("one", "two"):
            watcher.line(text)
            until = time.monotonic() + LIMIT_S
            while f"{text}\n" not in shown.getvalue() and time.monotonic() < until:
                time.sleep(0.001)
        time.sleep(0.05)
    assert shown.getvalue().splitlines() == ["one", "two"]  # A line that has not changed is not printed again.


def test_whoever_is_quiet_hears_nothing() -> None:
    with output.watched(is_shown=False) as watcher:
        assert watcher is None


@pytest.mark.spark
def test_sigterm_while_spark_starts_says_what_it_does_and_leaves_no_folder_and_no_java(
    tmp_path: Path, run_copy: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    on_spark = ("check", str(run_copy), "--engine", "spark", "--quiet")
    command = [sys.executable, "-c", "from harness.cli.entry import main; main()", *on_spark]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL
    ) as run:
        until = time.monotonic() + LIMIT_S
        while not any(temporary.glob("*/spark.log")) and time.monotonic() < until:  # Java is starting.
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        try:
            _, result = run.communicate(timeout=LIMIT_S)
        finally:
            run.kill()
    assert run.returncode == 143
    first, *_, last = result.splitlines()
    assert first == "seamark: SIGTERM: stopping, and removing what was started"
    assert last == "seamark: terminated"
    assert list(temporary.iterdir()) == []
    until = time.monotonic() + LIMIT_S
    while workers_in(tmp_path) and time.monotonic() < until:  # What was killed takes a moment to be gone.
        time.sleep(0.01)
    assert workers_in(tmp_path) == []


def workers_in(folder: Path) -> list[int]:
    """The processes whose working directory that is."""
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if works_in(pid, folder)]


def works_in(pid: int, folder: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")) == folder
    except OSError:
        return False
