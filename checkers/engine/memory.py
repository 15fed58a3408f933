"""Memory that a task frees stays with its process while the task goes on, and goes back to the system behind it.

C's allocator gives a large piece back at once, and every page of the next one comes anew, zeroed: of rules over columns
of ten million rows that was a third of the time.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

_LIBC: Final = ctypes.CDLL(None)
# From glibc's malloc.h; other C libraries do what they do.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8
_MB: Final = 1 << 20


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is freed for what is asked for next; behind that, give it back."""
    one_heap()
    _set(_MMAP_MAX, 0)
    _set(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        # What glibc comes to by itself in a process that frees large pieces.
        _set(_MMAP_MAX, 1 << 16)
        _set(_MMAP_THRESHOLD, 32 * _MB)
        _set(_TRIM_THRESHOLD, 64 * _MB)
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)


def one_heap() -> None:
    """One heap for Arrow, and for all threads that begin from now on: other ones give back what is freed, or hold it
    where nobody else can use it, whatever is set.
    """
    _set(_ARENA_MAX, 1)
    pa.set_memory_pool(pa.system_memory_pool())


def _set(option: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(option, value)
