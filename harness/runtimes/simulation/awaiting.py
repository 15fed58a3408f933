"""The text for a simulation that cannot go on: its tasks, and what each awaits."""

import asyncio
from collections.abc import Sequence
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Final

_TASKS_NAMED: Final = 10


def awaited(tasks: Sequence[asyncio.Task[object]]) -> str:
    """One line with the thing that each unfinished task awaits, for at most ten tasks."""
    waiting = [task for task in tasks if not task.done()]
    named = [f"{task.get_name()} awaits {_chain(task)}" for task in waiting[:_TASKS_NAMED]]
    more = len(waiting) - len(named)
    return "; ".join([*named, f"and {more} more"] if more else named) or "no task is left"


def _chain(task: asyncio.Task[object]) -> str:
    """The coroutines of a task from the outermost to the innermost, each with the line at which it waits."""
    links: list[str] = []
    current: object = task.get_coro()
    while current is not None:
        code = _first(current, "cr_code", "gi_code")
        if not isinstance(code, CodeType):
            break
        frame = _first(current, "cr_frame", "gi_frame")
        line = frame.f_lineno if isinstance(frame, FrameType) else code.co_firstlineno
        links.append(f"{code.co_qualname} ({PurePath(code.co_filename).name}:{line})")
        current = _first(current, "cr_await", "gi_yieldfrom")
    return " > ".join(links) or "an object that is not a coroutine"


def _first(holder: object, *names: str) -> object:
    """The first of those attributes that exists: coroutines and generators name them differently."""
    return next((getattr(holder, name) for name in names if hasattr(holder, name)), None)
