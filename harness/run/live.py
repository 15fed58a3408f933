"""The live line of a run: a summary of its journal so far; and notes about servers that start slowly."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct

from harness.core.record import Complete, Fault, Mark, Record, StreamEvent
from harness.record.journal import RECORD_MAX, JournalTail
from harness.runtimes.child import NOTE

SECOND: Final = 1_000_000_000
SOON_NS: Final = 10_000_000  # The lag is shown in tenths of a second.
COMMITS_MAX: Final = 10_000
NAMES_MAX: Final = 100
NAME_MAX: Final = 100  # The most characters of a name.
WIDTH: Final = 78  # Characters: a terminal has 80, of which a sign of life takes two.
PHASES: Mapping[str, str] = MappingProxyType(
    {"set-up": "starting", "load": "load", "healing": "healing", "final": "final reads", "end": "stopping"}
)


class Watcher(Protocol):
    """A display for the progress of a run, with `columns` columns."""

    @property
    def width(self) -> int: ...

    def line(self, text: str) -> None:
        """Show one line in place of the previous one."""

    def work(self, what: str, since_s: float) -> None:
        """Show what is at work, in place of the last line: its seconds go on from that time of `time.monotonic`."""

    def note(self, text: str) -> None:
        """Show a line that stays."""


def activity(watcher: Watcher | None) -> Callable[[str], None]:
    """A function that shows the watcher what is at work, with the seconds since this call."""
    started_s = time.monotonic()

    def tell(what: str) -> None:
        if watcher is not None:
            watcher.work(what, started_s)

    return tell


def at_work(what: str, since_s: float) -> str:
    """A line that names what is at work, with the seconds since `since_s`, a time of `time.monotonic`."""
    return f"  {time.monotonic() - since_s:.1f} s  {what}"


class Progress(Struct, frozen=True, kw_only=True):
    """The state of a run. `phase` is a value of PHASES, or empty before the first; seconds are the run's own."""

    elapsed_s: float
    phase: str
    counts: Mapping[str, int]  # Completed operations: ok, fail, info.
    per_s: float | None  # Completed operations per second of load; None before the load.
    faults: tuple[str, ...]  # The kinds of faults in force, each once.
    slowest: tuple[str, float] | None  # The subscriber that lags most, and its lag in seconds.


class LiveLine:
    """A follower of one journal. `text` reads the new records and summarizes the run's state.

    Memory is bounded, whatever the journal holds: records of more than `record_max` bytes are left out, the lag counts
    at most COMMITS_MAX commits, and at most NAMES_MAX faults and subscribers have a name, of NAME_MAX characters.
    """

    def __init__(self, journal: Path, record_max: int = RECORD_MAX, *, load_s: float | None = None) -> None:
        self._load_s = load_s  # The length of the whole load, if it is known.
        self._tail = JournalTail(journal, record_max)
        self._began_s = time.monotonic()
        self._counts = {"ok": 0, "fail": 0, "info": 0}
        self._active: dict[int, str] = {}
        self._watermarks: dict[str, int] = {}
        self._commits: deque[tuple[int, int]] = deque(maxlen=COMMITS_MAX)  # Position and time, in order of time.
        self._now_ns = self._load_ns = 0
        self._phase = ""

    def text(self, width: int = WIDTH) -> str:
        """The run's time and phase, operations by outcome, active faults, and the subscriber that lags most.

        At most `width` characters: the rate is dropped first, then the names of faults, then the end of the line.
        """
        while self.step():
            pass
        now = self.progress()
        if not now.phase:
            return f"  {time.monotonic() - self._began_s:.1f} s  starting"
        ok, fail, info = now.counts.values()
        rate = "" if now.per_s is None else f"{now.per_s:.0f} op/s"
        counts = f"ok {ok:,}  fail {fail:,}  unknown {info:,}" if ok + fail + info else ""
        named = ", ".join(now.faults)
        counted = f"{len(now.faults)} fault{'s' if len(now.faults) > 1 else ''}" if now.faults else ""
        begin = f"  {self._share()}{now.elapsed_s:.1f} s  {now.phase}"
        lag = "" if now.slowest is None else "{} {:.1f} s behind".format(*now.slowest)
        lines = [
            "  ".join(filter(None, parts))
            for parts in (
                (begin, rate, counts, named, lag),
                (begin, counts, named, lag),
                (begin, counts, counted, lag),
                (begin, counts, named),
                (begin, counts, counted),
            )
        ]
        return next((line for line in lines if len(line) <= width), lines[-1][: width - 1] + "…")

    def _share(self) -> str:
        """The share of the load that is over, and the real time left; empty if the length is not known."""
        if self._load_s is None or not self._load_ns:
            return ""
        share = min(1.0, max(0.01, (self._now_ns - self._load_ns) / SECOND / self._load_s))
        left_s = (time.monotonic() - self._began_s) * (1 - share) / share
        return f"{share:.0%}, {left_s:.0f} s left  " if share < 1 else ""

    def step(self) -> bool:
        """Read the next new records, about a megabyte; False if there were none."""
        return self._tail.step(self._take)

    def progress(self) -> Progress:
        """The run's state after all records that were read."""
        seconds = (self._now_ns - self._load_ns) / SECOND
        return Progress(
            elapsed_s=self._now_ns / SECOND,
            phase=PHASES.get(self._phase, self._phase),
            counts=dict(self._counts),
            per_s=sum(self._counts.values()) / seconds if seconds > 0 else None,
            faults=tuple(dict.fromkeys(self._active.values())),
            slowest=self._slowest(),
        )

    def _slowest(self) -> tuple[str, float] | None:
        """The subscriber that lags most, and its lag: the age of the oldest commit above its watermark."""
        if not self._watermarks:
            return None
        slowest = min(self._watermarks, key=lambda name: (self._watermarks[name], name))
        while self._commits and self._commits[0][0] <= self._watermarks[slowest]:
            self._commits.popleft()
        behind_ns = self._now_ns - self._commits[0][1] if self._commits else 0
        return slowest, behind_ns / SECOND

    def _take(self, record: Record) -> None:
        match record:
            case Complete(outcome=outcome, time_ns=time_ns, commit_ts=position):
                self._now_ns = time_ns
                self._counts[outcome] += 1
                if position is not None:
                    self._commit(position, time_ns)
            case Fault(step=step, phase="begin", kind=kind) if len(self._active) < NAMES_MAX:
                self._active[step] = kind[:NAME_MAX]
            case Fault(step=step, phase="end"):
                self._active.pop(step, None)
            case StreamEvent(kind="watermark", subscriber=subscriber, position=int(position)):
                if (name := subscriber[:NAME_MAX]) in self._watermarks or len(self._watermarks) < NAMES_MAX:
                    self._watermarks[name] = position
            case Mark(phase="tick", time_ns=time_ns):
                self._now_ns = time_ns
            case Mark(phase=phase, time_ns=time_ns):
                self._phase, self._now_ns = phase[:NAME_MAX], time_ns
                self._load_ns = time_ns if phase == "load" else self._load_ns
            case _:
                pass

    def _commit(self, position: int, time_ns: int) -> None:
        """Add a commit; one soon after the last counts as that one."""
        if self._commits and time_ns - self._commits[-1][1] < SOON_NS:
            last, time_ns = self._commits.pop()
            position = max(position, last)
        self._commits.append((position, time_ns))


class Notes:
    """Notes in the log of a run's child process, for a watcher. `read` gives the new ones."""

    def __init__(self, log: Path) -> None:
        self._log, self._offset = log, 0

    def read(self) -> Iterator[str]:
        """The new whole notes; none while there is no log."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return
        whole, end, _ = new.rpartition(b"\n")
        self._offset += len(whole) + len(end)
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.startswith(NOTE):
                yield line.removeprefix(NOTE)
