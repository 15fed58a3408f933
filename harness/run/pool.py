"""Pools that carry out tasks; a task is one run. If the process of a task dies, other tasks go on.

Every pool has slots. Results arrive in the order in which tasks end, and a task is drawn only when a slot is free, so
that a budget or a failure decides which is begun next.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from harness.core.errors import SeamarkError
from harness.record.processes import die_with_parent

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)


class TaskDied(SeamarkError):
    """The process of a task died before its end."""


class Pool(Protocol[T_contra, R]):
    """A place where tasks are carried out, `slots` at a time."""

    @property
    def slots(self) -> int: ...

    def submitted(self, task: T_contra) -> "Future[R]":
        """The future result of that task. The caller may have at most `slots` of them at a time."""
        ...


def results(pool: Pool[T, R], following: Callable[[], T | None]) -> Iterator[tuple[T, R | Exception]]:
    """Each task with its result or exception, in the order in which tasks end.

    `following` gives the next task, or None; after a None it is called again once another task has ended.
    """
    pending: dict[Future[R], T] = {}
    while True:
        while len(pending) < pool.slots and (task := following()) is not None:
            pending[pool.submitted(task)] = task
        if not pending:
            return
        ended = wait(pending, return_when=FIRST_COMPLETED).done
        for future in [each for each in pending if each in ended]:  # If several have ended, the one begun first.
            task, error = pending.pop(future), future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield task, future.result() if error is None else _plain(error)


def _plain(error: Exception) -> Exception:
    """The error of a task; TaskDied if its process died."""
    if isinstance(error, BrokenExecutor):
        return TaskDied("its process died before it was judged: killed, or out of memory")
    return error


class LocalPool(Generic[T, R]):
    """Processes on this machine that carry out `work`; each dies with this process. The context manager ends them."""

    def __init__(self, work: Callable[[T], R], jobs: int | None = None) -> None:
        self.slots = jobs or len(os.sched_getaffinity(0))
        self._work = work
        self._workers: list[tuple[ProcessPoolExecutor, Future[R] | None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | TracebackType | None, __: object) -> None:
        if kind is not None:  # The runs in progress are abandoned; their simulations die with them.
            for process in active_children():
                process.terminate()
        for worker, _future in self._workers:
            worker.shutdown(wait=True, cancel_futures=True)

    def submitted(self, task: T) -> "Future[R]":
        """The future result, from a process with no other task; waits while all are busy."""
        if len(self._workers) == self.slots:
            wait([future for _, future in self._workers if future is not None], return_when=FIRST_COMPLETED)
        idle = next((place for place, (_, future) in enumerate(self._workers) if future is None or future.done()), None)
        if idle is None:
            idle = len(self._workers)
            self._workers.append((_worker(), None))
        worker, last = self._workers[idle]
        if last is not None and isinstance(last.exception(), BrokenExecutor):
            worker.shutdown(wait=True)
            worker = _worker()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Only this process handles Ctrl-C.
        try:
            future = worker.submit(self._work, task)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._workers[idle] = worker, future
        return future


def _worker() -> ProcessPoolExecutor:
    """A pool of one process: a pool of several would lose the tasks of all when one of them dies."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=die_with_parent)
