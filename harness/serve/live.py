"""A run in progress: its state twice a second, as server-sent events, until its report exists."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from anyio.to_thread import run_sync

from harness.core.errors import HistoryError
from harness.serve.decoding.requests import Look, Seen
from harness.serve.decoding.worker import OverLimit, Worker

EVERY_S: Final = 0.5
_DAMAGED: Final = "Its journal is damaged: run seamark check to find the place."
_watchers: Final = count()


async def events(
    run: Path, is_over: Callable[[], bool], worker: Worker, every_s: float = EVERY_S
) -> AsyncIterator[str]:
    """The events of one run: `state` on every change, and at the end `end`, or `broken` with the reason.

    A journal is read in steps, so that several runs take turns at the worker.
    """
    look, last = Look(str(run), next(_watchers)), ""
    while True:
        is_last = await run_sync(is_over, limiter=worker.turns)
        try:
            seen = await _seen(worker, look)
            while seen.is_more:
                seen = await _seen(worker, look)
        except HistoryError:
            yield _event("broken", {"why": _DAMAGED})
            return
        except OverLimit as error:
            yield _event("broken", {"why": f"It cannot be followed: {error}."})
            return
        text = _event("state", seen.shown)
        if text != last:
            last = text
            yield text
        if is_last:
            yield _event("end", {})
            return
        await asyncio.sleep(every_s)


async def _seen(worker: Worker, look: Look) -> Seen:
    seen = await run_sync(partial(worker.ask, look), limiter=worker.turns)
    assert isinstance(seen, Seen)
    return seen


def _event(name: str, content: object) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(content).decode()}\n\n"
