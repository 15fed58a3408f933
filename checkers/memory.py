"""Memory that a task frees stays with its process for what comes next, and goes back to the system if nothing does.

C's allocator gives a large piece back at once, and every page of the next one comes anew, zeroed: of rules over columns
of ten million rows that was a third of the time. One check follows the other, and asks for the same again.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Final

import pyarrow as pa

_LIBC: Final = ctypes.CDLL(None)
# From glibc's malloc.h; other C libraries do what they do.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8
_MB: Final = 1 << 20
_IDLE_S: Final = 4.0  # Longer than from one check to the next, and short beside either.


class _Keeper:
    """Who keeps memory, in all threads of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks = 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """A task begins: what is freed is kept."""
        with self._lock:
            self._tasks += 1
            if self._timer is not None:
                self._timer.cancel()
            _set(_MMAP_MAX, 0)
            _set(_TRIM_THRESHOLD, 2**31 - 1)

    def end(self) -> None:
        """A task is over: what is free goes back, unless another one begins soon."""
        with self._lock:
            self._tasks -= 1
            if not self._tasks:
                self._timer = Timer(_IDLE_S, self._give_back)
                self._timer.daemon = True
                self._timer.start()

    def _give_back(self) -> None:
        with self._lock:
            if self._tasks:
                return
            # What glibc comes to by itself in a process that frees large pieces.
            _set(_MMAP_MAX, 1 << 16)
            _set(_MMAP_THRESHOLD, 32 * _MB)
            _set(_TRIM_THRESHOLD, 64 * _MB)
            if hasattr(_LIBC, "malloc_trim"):
                _LIBC.malloc_trim(0)


_KEEPER: Final = _Keeper()


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is freed for what is asked for next, by this task or by one that begins within seconds."""
    one_heap()
    _KEEPER.begin()
    try:
        yield
    finally:
        _KEEPER.end()


def one_heap() -> None:
    """One heap for Arrow, and for all threads that begin from now on: other ones give back what is freed, or hold it
    where nobody else can use it, whatever is set.
    """
    _set(_ARENA_MAX, 1)
    pa.set_memory_pool(pa.system_memory_pool())


def _set(option: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(option, value)
