"""The process that follows runs: it reads their journals, and keeps the state of each watcher's run."""

from collections import OrderedDict
from pathlib import Path

from harness.record.store import JOURNAL
from harness.report.screen import visible
from harness.run.live import LiveLine, Progress
from harness.serve.decoding.child import RECORD_MAX, answer_all
from harness.serve.decoding.requests import WATCHERS_MAX, Look, Seen, Shown


class Follower:
    """Answers each Look with what its run has done so far. `lines` are the watched runs, the last used last."""

    def __init__(self) -> None:
        self.lines = OrderedDict[int, LiveLine]()

    def answered(self, request: Look) -> Seen:
        """The answer, after the next step through the run's journal."""
        lines = self.lines
        line = lines.pop(request.watcher, None) or LiveLine(Path(request.run, JOURNAL), RECORD_MAX)
        lines[request.watcher] = line
        while len(lines) > WATCHERS_MAX:
            lines.popitem(last=False)
        return Seen(is_more=line.step(), shown=shown(line.progress()))


def shown(now: Progress) -> Shown:
    """The state of a run as texts."""
    return Shown(
        elapsed=f"{now.elapsed_s:.1f} s",
        phase=visible(now.phase or "starting"),
        ok=f"{now.counts['ok']:,}",
        fail=f"{now.counts['fail']:,}",
        unknown=f"{now.counts['info']:,}",
        per_s="–" if now.per_s is None else f"{now.per_s:,.0f}",
        faults=visible(", ".join(now.faults))[:200] or "none",
        slowest="–" if now.slowest is None else visible(f"{now.slowest[0][:80]} {now.slowest[1]:.1f} s"),
        seconds=now.elapsed_s,
        total=sum(now.counts.values()),
    )


if __name__ == "__main__":
    answer_all(Follower().answered, Look)
