"""Plain Python work on many items, spread over several processes: Spark's, or our own pool.

Threads would not help: such work holds the interpreter's lock.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Final, TypeVar

from checkers.engine.datasets import Engine

T = TypeVar("T")
R = TypeVar("R")

_AHEAD: Final = 4  # Items per process that are in progress, or done and not yet taken.


def spread(engine: Engine, kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The kernel's results, in the order of the items; only a few are in memory at a time."""
    if engine.name == "local":
        yield from _in_pool(engine.parallelism, kernel, items)
    else:
        yield from _in_rounds(engine, kernel, items)


def _in_pool(process_count: int, kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    waiting = deque[Future[R]]()
    following = iter(items)
    with ProcessPoolExecutor(process_count, mp_context=get_context("spawn")) as pool:
        try:
            while True:
                for item in islice(following, process_count * _AHEAD - len(waiting)):
                    waiting.append(_submitted(pool, kernel, item))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, kernel: Callable[[T], R], item: T) -> "Future[R]":
    """Submit an item. Ctrl-C goes to the first process only: processes started here ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(kernel, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_rounds(engine: Engine, kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results in order, from one job for each few items; while one job's results are taken, the next one runs."""
    following = iter(items)
    with ThreadPoolExecutor(1) as ahead:
        waiting: Future[list[R]] | None = None
        while True:
            part = list(islice(following, engine.parallelism * _AHEAD))
            job = ahead.submit(_round, engine, kernel, part) if part else None
            if waiting is not None:
                yield from waiting.result()
            if job is None:
                return
            waiting = job


def _round(engine: Engine, kernel: Callable[[T], R], items: list[T]) -> list[R]:
    """The kernel's results in order, which a dataset does not keep."""
    numbered = engine.over(list(enumerate(items))).map(partial(_numbered, kernel)).collect()
    return [result for _, result in sorted(numbered, key=lambda each: each[0])]


def _numbered(kernel: Callable[[T], R], item: tuple[int, T]) -> tuple[int, R]:
    return item[0], kernel(item[1])
