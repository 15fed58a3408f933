"""Processes of a harness: each ends with the process that started it, and those that were left are recognized.

A harness puts its name into its environment, in the form that names of temporary files have, and every process below
inherits it. A process is ended only if that harness is dead and the process runs our own code, or Spark: a server that
a user's code started stays.
"""

import ctypes
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from harness.record.ownership import Fate, temporary_fate, temporary_pid, temporary_prefix

MARK: Final = "SEAMARK_PROCESS"
PATIENCE_S: Final = 10.0  # A process that removes containers may need that long after SIGTERM.
_PR_SET_PDEATHSIG: Final = 1
_OURS: Final = re.compile(
    rb"\0-m\0harness\.|multiprocessing[. ](?:spawn|resource_tracker)|org\.apache\.spark|\0pyspark\."
)


class Left(NamedTuple):
    """A process whose harness is dead. `command` has its arguments, with spaces between them."""

    pid: int
    command: str


def mark_processes() -> None:
    """Put the name of this process into the environment of all processes that it starts from now on."""
    os.environ[MARK] = temporary_prefix("process")


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel send this process signal `number` when its parent dies: no run outlives its harness."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if _is_orphan():
            sys.exit("the harness died before its run began")


def _is_orphan() -> bool:
    """True if the parent died already, and process 1 took its place. In a container process 1 may be the harness."""
    import multiprocessing  # noqa: PLC0415  Only a child asks: the start of a command needs none of its 20 modules.

    started_by = multiprocessing.parent_process()
    if started_by is not None:
        return os.getppid() != started_by.pid
    return os.getppid() == 1 and temporary_pid(os.environ.get(MARK, "")) != 1


def processes_left_behind() -> tuple[Left, ...]:
    """This user's processes whose harnesses are dead."""
    return tuple(left for path in Path("/proc").glob("[0-9]*") if (left := _left(int(path.name))) is not None)


def end_left_behind() -> tuple[Left, ...]:
    """End this user's processes whose harnesses are dead, with SIGTERM or else SIGKILL; returns those ended."""
    with ExitStack() as stack:
        found = list(_held(stack))
        for number, patience_s in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, 1.0)):
            running = [each for each, descriptor in found if not _has_ended(descriptor, 0)]
            ends_s = time.monotonic() + patience_s
            for each, descriptor in found:
                if each in running:
                    with suppress(ProcessLookupError):
                        signal.pidfd_send_signal(descriptor, number)
            for _, descriptor in found:
                _has_ended(descriptor, max(0.0, ends_s - time.monotonic()))
        return tuple(each for each, descriptor in found if _has_ended(descriptor, 0))


def _held(stack: ExitStack) -> Iterator[tuple[Left, int]]:
    """The processes left behind, each with a descriptor: another process may get a number, but not a descriptor."""
    for each in processes_left_behind():
        with suppress(OSError):
            descriptor = os.pidfd_open(each.pid)
            stack.callback(os.close, descriptor)
            if _left(each.pid) == each:
                yield each, descriptor


def _left(pid: int) -> Left | None:
    try:
        folder = Path("/proc", str(pid))
        if folder.stat().st_uid != os.getuid():
            return None
        environment = (folder / "environ").read_bytes().split(b"\0")
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    marks = [each.partition(b"=")[2].decode(errors="replace") for each in environment if each.startswith(_MARKED)]
    is_left = any(temporary_fate(each) is Fate.GONE for each in marks) and _OURS.search(command) is not None
    return Left(pid, command.replace(b"\0", b" ").decode(errors="replace").strip()) if is_left else None


def _has_ended(descriptor: int, timeout_s: float) -> bool:
    poll = select.poll()  # Unlike `select`, it works for descriptors above 1,023.
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


_MARKED: Final = f"{MARK}=".encode()
