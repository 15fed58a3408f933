"""A command with the time that it takes and the memory of all its processes: pages that they share count once."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

PERIOD_S: Final = 0.1
MB: Final = 1024  # Of the kernel's kB.


@dataclass(frozen=True, slots=True)
class Watched:
    """How a command ended, in how many seconds, of how many CPU seconds; and its peak of proportional set size."""

    code: int
    output: str
    took_s: float
    cpu_s: float
    peak_mb: float


class Watch:
    """The peak of the memory of a process and all its descendants, and their CPU seconds, while the context lasts."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._cpu_s: dict[int, float] = {}
        self.peak_mb = 0.0

    @property
    def cpu_s(self) -> float:
        """What all processes have used, up to a sample before the end of each: also those for which nobody waited."""
        return sum(self._cpu_s.values())

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def sample(self) -> float:
        """Look now; how many CPU seconds were used up to now."""
        pids = tree(self._root)
        self._cpu_s.update((pid, used) for pid in pids if (used := _cpu_s(pid)) is not None)
        self.peak_mb = max(self.peak_mb, sum(map(pss_kb, pids)) / MB)
        return self.cpu_s

    def _sample(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self.sample()


def watched(command: Sequence[str], *, env: dict[str, str] | None = None, niceness: int = 0) -> Watched:
    """Run a command to its end."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        ["nice", "-n", str(niceness), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )
    with Watch(process.pid) as watch:
        output, _ = process.communicate()
        took_s = time.perf_counter() - begin
    return Watched(process.returncode, output, took_s, watch.cpu_s, watch.peak_mb)


def measured(command: Sequence[str]) -> Watched:
    """The seconds and words of a command; then once more, for CPU seconds and memory: to look at that takes time."""
    begin = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    took_s = time.perf_counter() - begin
    again = watched(command)
    return replace(again, code=done.returncode or again.code, output=done.stdout, took_s=took_s)


def tree(root: int) -> list[int]:
    """That process and all its descendants, as far as they can be seen."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parent = _parent(entry)
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:  # Grows while it is walked.
        found += children.get(pid, [])
    return found


def pss_kb(pid: int) -> int:
    """The proportional set size of one process; 0 for one that has gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def _parent(entry: Path) -> int | None:
    fields = _fields(entry)
    return None if fields is None else int(fields[1])


def _cpu_s(pid: int) -> float | None:
    fields = _fields(Path(f"/proc/{pid}"))
    return None if fields is None else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fields(entry: Path) -> list[str] | None:
    """The fields of a process's line behind its name; None if it has gone."""
    try:
        return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
