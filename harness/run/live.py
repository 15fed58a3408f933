"""The live line of a run: a one-line summary of its journal so far."""

from pathlib import Path

from harness.core.record import Complete, Fault, Mark, Record, StreamEvent
from harness.record.journal import JournalTail

SECOND = 1_000_000_000


class LiveLine:
    """A follower of one journal. `text` reads the new records and summarizes the run's state."""

    def __init__(self, journal: Path) -> None:
        self._tail = JournalTail(journal)
        self._counts = {"ok": 0, "fail": 0, "info": 0}
        self._active: dict[int, str] = {}
        self._watermarks: dict[str, int] = {}
        self._position = 0
        self._now_ns = 0
        self._phase = "set-up"

    def text(self) -> str:
        """The run's time, operations per second and by outcome, active faults, and the subscriber that lags most."""
        for record in self._tail.read():
            self._take(record)
        seconds = self._now_ns / SECOND
        rate = sum(self._counts.values()) / seconds if seconds else 0.0
        ok, fail, info = self._counts.values()
        line = f"  {seconds:.1f} s  {self._phase}  {rate:.0f} op/s  ok {ok:,}  fail {fail:,}  unknown {info:,}"
        if self._active:
            line += f"   {', '.join(dict.fromkeys(self._active.values()))}"
        if self._watermarks:
            slowest = min(self._watermarks, key=lambda name: (self._watermarks[name], name))
            line += f"   {slowest} {max(0, self._position - self._watermarks[slowest]):,} positions behind"
        return line

    def _take(self, record: Record) -> None:
        match record:
            case Complete(outcome=outcome, time_ns=time_ns, commit_ts=position):
                self._now_ns = time_ns
                self._counts[outcome] += 1
                self._position = max(self._position, position or 0)
            case Fault(step=step, phase="begin", kind=kind):
                self._active[step] = kind
            case Fault(step=step, phase="end"):
                self._active.pop(step, None)
            case StreamEvent(kind="watermark", subscriber=subscriber, position=int(position)):
                self._watermarks[subscriber] = position
            case Mark(phase=phase, time_ns=time_ns) if phase != "tick":
                self._phase, self._now_ns = phase, time_ns
            case _:
                pass
