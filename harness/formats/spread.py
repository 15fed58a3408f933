"""Work of plain Python on many items, in several processes: those of Spark, or a pool of our own.

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

_AHEAD: Final = 4  # Items for each process that are under way, or done and not taken yet.


def spread(engine: Engine, kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The kernel's results, in the order of the items, a few of which are in memory at a time."""
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
    """Hand out an item. Processes that begin here never see Ctrl-C: only the first one answers to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(kernel, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_rounds(engine: Engine, kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """A job for each few items; while its results are taken, the next is under way."""
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
    """The kernel's results in order; a dataset has none."""
    numbered = engine.over(list(enumerate(items))).map(partial(_numbered, kernel)).collect()
    return [result for _, result in sorted(numbered, key=lambda each: each[0])]


def _numbered(kernel: Callable[[T], R], item: tuple[int, T]) -> tuple[int, R]:
    return item[0], kernel(item[1])
