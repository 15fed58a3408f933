"""Plain Python work on many items, distributed to a pool of processes.

Threads would not help: such work holds the interpreter's lock. Nor would the tasks of Spark: its workers would have to
see the file, and it starts meanwhile.

A result's columns come through a file that the consumer maps into its memory. Through a pipe, pickled, they would be
copied several times more: a tenth of the time of an import.
"""

import mmap
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from checkers.engine.memory import one_heap
from harness.core.arrow import leave_out_pandas
from harness.record.ownership import temporary_folder
from harness.record.processes import die_with_parent

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

_PROCESSES_MAX: Final = 8  # The most processes: more would wait for the consumer, and each holds some results.
_AHEAD: Final = 4  # The most items per process that are in progress, or done and not yet consumed.
_ALIGNED: Final = 64  # Columns begin at multiples of so many bytes, as Arrow recommends.


class _Stored(NamedTuple):
    """A result whose columns are in a file: its pickle without them, the file, and where each column is in it."""

    head: bytes
    file: Path
    columns: list[slice]


class ProcessEnded(Exception):
    """One of the processes was ended: by the system, for want of memory, or by a user."""


@contextmanager
def spread(kernel: Callable[[T], R], items: Iterable[T]) -> Iterator[Iterator[R]]:
    """The kernel's results, in the order of the items; only a few are in memory at a time.

    Raises OSError where there is no room for their files, and ProcessEnded. The processes end with the `with` block,
    also where the consumer fails. A generator that held the pool could be left to the garbage collector, which may
    close it in any thread, even in one of the pool's own.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  A small file needs no pool.
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415
    from multiprocessing import get_context  # noqa: PLC0415

    process_count = min(cpu_count() or 1, _PROCESSES_MAX)
    with temporary_folder("spread") as folder:
        pool = ProcessPoolExecutor(process_count, mp_context=get_context("spawn"), initializer=_begin)
        try:
            stored = _results(pool, partial(_stored, kernel, folder), iter(items), process_count * _AHEAD)
            yield map(_restored, stored)
        except BrokenProcessPool:
            raise ProcessEnded from None
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


def _stored(kernel: Callable[[T], object], folder: Path, item: T) -> _Stored:
    """The kernel's result for that item, with its columns in a new file."""
    result, columns = kernel(item), list[pickle.PickleBuffer]()
    head = pickle.dumps(result, protocol=5, buffer_callback=columns.append)
    file, places, end = folder / os.urandom(8).hex(), list[slice](), 0
    with file.open("wb") as out:
        for column in columns:
            with column.raw() as content:
                places.append(slice(end, end + len(content)))
                out.write(content)
                end = out.seek(-len(content) % _ALIGNED, os.SEEK_CUR)
    return _Stored(head, file, places)


def _restored(stored: _Stored) -> Any:
    """The result. Its columns stay in the file, which has no name any more, and lasts as long as they do."""
    content = memoryview(b"")
    if stored.file.stat().st_size:  # An empty file cannot be mapped.
        with stored.file.open("rb") as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    stored.file.unlink()
    columns = [content[each] for each in stored.columns]
    return pickle.loads(stored.head, buffers=columns)  # noqa: S301  Made by `_stored`.


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
