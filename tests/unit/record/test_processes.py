"""A process of a dead harness is recognized and ended; one that lives, or that is not ours, never is."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.record.ownership import temporary_prefix, this_process
from harness.record.processes import MARK, Left, die_with_parent, end_left_behind, mark_processes, processes_left_behind

ALIVE = temporary_prefix("process")
DEAD = ALIVE.replace(f"-{this_process().start}-", f"-{this_process().start - 1}-")
WAITS = "print(flush=True); input()"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"
WORKER = ("--multiprocessing-fork", "multiprocessing.spawn")  # As the command line of a worker has it.


@contextmanager
def started(mark: str | None, *arguments: str, code: str = WAITS) -> Iterator[subprocess.Popen[bytes]]:
    """A process with that mark, which waits."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment | ({} if mark is None else {MARK: mark}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def among(found: tuple[Left, ...], *processes: subprocess.Popen[bytes]) -> list[bool]:
    numbers = {each.pid for each in found}
    return [each.pid in numbers for each in processes]


def test_a_worker_of_a_dead_harness_is_ended_and_no_other_process() -> None:
    with ExitStack() as stack:
        left = stack.enter_context(started(DEAD, *WORKER))
        others = [
            stack.enter_context(started(mark, *arguments))
            for mark, arguments in ((ALIVE, WORKER), (None, WORKER), ("seamark-process-else-", WORKER), (DEAD, ()))
        ]
        assert among(processes_left_behind(), left, *others) == [True, False, False, False, False]
        assert among(end_left_behind(), left, *others) == [True, False, False, False, False]
        assert left.wait() == -signal.SIGTERM
        assert [each.poll() for each in others] == [None] * 4
        assert among(processes_left_behind(), left) == [False]


def test_a_worker_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.record.processes.PATIENCE_S", 0.05)
    with started(DEAD, *WORKER, code=DEAF) as left:
        assert among(end_left_behind(), left) == [True]
        assert left.wait() == -signal.SIGKILL


def test_what_a_harness_starts_has_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "before")
    mark_processes()
    assert os.environ[MARK] == ALIVE


@pytest.mark.parametrize(("harness", "is_orphan"), [(1, False), (7, True), (None, True)])
def test_a_harness_that_is_process_1_of_a_container_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch, harness: int | None, is_orphan: bool
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: 1)
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(prctl=lambda *_: 0))
    monkeypatch.setenv(MARK, "" if harness is None else ALIVE.replace(f"-{os.getpid()}-", f"-{harness}-"))
    with pytest.raises(SystemExit) if is_orphan else nullcontext():
        die_with_parent()


SPREADING = """
import os, sys
from harness.record.formats.spread import spread
from tests.unit.record.test_processes import holds
if __name__ == "__main__":
    with spread(holds, [sys.argv[1]] * 2) as results:
        list(results)
"""


def holds(fifo: str) -> None:
    """Hold the pipe open until this process is ended."""
    held = os.open(fifo, os.O_WRONLY)
    os.write(held, b".")
    signal.pause()


def test_the_workers_of_an_import_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    fifo, script = tmp_path / "fifo", tmp_path / "spreading.py"
    os.mkfifo(fifo)
    script.write_text(SPREADING)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, script, fifo], env=environment, stderr=subprocess.DEVNULL) as process:
        for _ in range(min(2, os.cpu_count() or 1)):
            assert comes(reader, select.POLLIN), "no worker begins"
            os.read(reader, 1)
        process.kill()
    assert comes(reader, select.POLLHUP), "a worker still holds the pipe"
    os.close(reader)


def comes(reader: int, event: int) -> bool:
    """True once the pipe has that event, False if it does not come for a minute."""
    poll = select.poll()
    poll.register(reader, event)
    return bool(poll.poll(60_000))
