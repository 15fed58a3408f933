"""A run in progress: its state twice a second, as server-sent events, until its report exists."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from harness.core.errors import HistoryError
from harness.record.store import JOURNAL
from harness.report.screen import visible
from harness.run.live import LiveLine, Progress

EVERY_S: Final = 0.5
STREAMS_MAX: Final = 32  # The most open streams: each reads one journal.
RECORD_MAX: Final = 256 << 10  # The most bytes of a record that is counted: larger ones take too much memory.


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of one event, as plain texts without markup."""

    elapsed: str
    phase: str
    ok: str
    fail: str
    unknown: str
    per_s: str
    faults: str
    slowest: str
    seconds: float  # For the curve: the run's own time, and
    total: int  # the operations completed by then.


async def events(
    run: Path, is_over: Callable[[], bool], steps: CapacityLimiter, every_s: float = EVERY_S
) -> AsyncIterator[str]:
    """The events of one run: `state` on every change, and at the end `end`, or `broken`.

    A journal is read in steps, each in a thread that `steps` grants: so a long one holds no thread, and several take
    turns.
    """
    line, last = LiveLine(run / JOURNAL, RECORD_MAX), ""
    while True:
        is_last = await run_sync(is_over, limiter=steps)
        try:
            while await run_sync(line.step, limiter=steps):
                pass
        except (HistoryError, OSError):
            yield "event: broken\ndata: {}\n\n"
            return
        text = msgspec.json.encode(shown(line.progress())).decode()
        if text != last:
            last = text
            yield f"event: state\ndata: {text}\n\n"
        if is_last:
            yield "event: end\ndata: {}\n\n"
            return
        await asyncio.sleep(every_s)


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
