"""Pools that carry out tasks: one run is one task. A task whose process dies takes no other with it.

Every pool has slots; results arrive in the order in which tasks end, and tasks are drawn as slots become free, so that
a budget or a failure decides what is begun next.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import Protocol, Self, TypeVar

from harness.core.errors import SeamarkError
from harness.runtimes.child import die_with_parent

T = TypeVar("T")
R = TypeVar("R")


class TaskDied(SeamarkError):
    """The process of a task died before its end."""


class Pool(Protocol):
    """Where tasks are carried out, `slots` at a time."""

    slots: int

    def submitted(self, work: Callable[[T], R], task: T) -> "Future[R]":
        """The future result of that task. The caller has at most `slots` of them at a time."""
        ...


def results(pool: Pool, work: Callable[[T], R], following: Callable[[], T | None]) -> Iterator[tuple[T, R | Exception]]:
    """Each task with its result, or with what it raised, in order of their ends.

    `following` gives the next task, or None; after a None it is called again once another task has ended.
    """
    pending: dict[Future[R], T] = {}
    while True:
        while len(pending) < pool.slots and (task := following()) is not None:
            pending[pool.submitted(work, task)] = task
        if not pending:
            return
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            task, error = pending.pop(future), future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield task, future.result() if error is None else _plain(error)


def _plain(error: Exception) -> Exception:
    """The error of a task. That its process died is said in our words."""
    if isinstance(error, BrokenExecutor):
        return TaskDied("its process died before it was judged: killed, or out of memory")
    return error


class LocalPool:
    """Processes on this machine; each dies with this one. As a context manager it ends them all."""

    def __init__(self, jobs: int | None = None) -> None:
        self.slots = jobs or len(os.sched_getaffinity(0))
        self._workers: list[tuple[ProcessPoolExecutor, Future[object] | None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | TracebackType | None, __: object) -> None:
        if kind is not None:  # Nobody waits for the runs in progress; their simulations die with them.
            for process in active_children():
                process.terminate()
        for worker, _future in self._workers:
            worker.shutdown(wait=True, cancel_futures=True)

    def submitted(self, work: Callable[[T], R], task: T) -> "Future[R]":
        """The future result, from a process that has nothing else to do."""
        idle = next((place for place, (_, future) in enumerate(self._workers) if future is None or future.done()), None)
        if idle is None:
            idle = len(self._workers)
            self._workers.append((_worker(), None))
        worker, last = self._workers[idle]
        if last is not None and isinstance(last.exception(), BrokenExecutor):
            worker.shutdown(wait=True)
            worker = _worker()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C goes to this process only.
        try:
            future = worker.submit(work, task)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._workers[idle] = worker, future  # type: ignore[assignment]  # Only its state is looked at.
        return future


def _worker() -> ProcessPoolExecutor:
    """One process of its own: a pool of several would lose the tasks of all when one of them dies."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=die_with_parent)
