"""Plain Python work on many items, distributed to a pool of processes.

Threads would not help: such work holds the interpreter's lock. Nor would the tasks of Spark: its workers would have to
see the file, and it starts meanwhile.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from os import cpu_count
from typing import TYPE_CHECKING, Final, TypeVar

from checkers.engine.memory import one_heap
from harness.core.arrow import leave_out_pandas
from harness.record.processes import die_with_parent

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

_PROCESSES_MAX: Final = 8  # The most processes: more would wait for the consumer, and each holds some results.
_AHEAD: Final = 4  # The most items per process that are in progress, or done and not yet consumed.


@contextmanager
def spread(kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[Iterator[R]]:
    """The kernel's results, in the order of the items; only a few are in memory at a time.

    The processes end with the `with` block, also where the consumer fails. A generator that held the pool could be left
    to the garbage collector, which may close it in any thread, even in one of the pool's own.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  A small file needs no pool.
    from multiprocessing import get_context  # noqa: PLC0415

    process_count = min(cpu_count() or 1, _PROCESSES_MAX)
    pool = ProcessPoolExecutor(process_count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield _results(pool, kernel, iter(items), process_count * _AHEAD)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def in_turn(kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[Iterator[R]]:
    """The same as `spread` in this process."""
    yield map(kernel, items)


def _results(pool: "ProcessPoolExecutor", kernel: Callable[[T], R], following: Iterator[T], most: int) -> Iterator[R]:
    waiting = deque["Future[R]"]()
    while True:
        for item in islice(following, most - len(waiting)):
            waiting.append(_submitted(pool, kernel, item))
        if not waiting:
            return
        yield waiting.popleft().result()


def _begin() -> None:
    """Prepare a process of the pool."""
    die_with_parent()
    leave_out_pandas()
    one_heap()  # The columns of each part take the memory of the part before: a twentieth of the time.


def _submitted(pool: "ProcessPoolExecutor", kernel: Callable[[T], R], item: T) -> "Future[R]":
    """Submit an item. Ctrl-C goes to the first process only: processes started here ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(kernel, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
