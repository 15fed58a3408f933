"""Freed memory stays in glibc's heap during a task, and returns to the system after it.

C's allocator returns a large piece at once, and every page of the next one comes anew, zeroed: for rules over columns
of ten million rows that was a third of the time.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

_LIBC: Final = ctypes.CDLL(None)
# From glibc's malloc.h; other C libraries keep their defaults.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8
_MB: Final = 1 << 20


@contextmanager
def kept() -> Iterator[None]:
    """Keep freed memory in glibc's heap within this context; return it to the system afterwards."""
    one_heap()
    _set(_MMAP_MAX, 0)
    _set(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        # The values that glibc itself reaches in a process that frees large pieces.
        _set(_MMAP_MAX, 1 << 16)
        _set(_MMAP_THRESHOLD, 32 * _MB)
        _set(_TRIM_THRESHOLD, 64 * _MB)
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)


def one_heap() -> None:
    """Use one heap for Arrow, and for all threads that start from now on.

    Other heaps return what is freed, or hold it where no other thread can use it, whatever the settings.
    """
    _set(_ARENA_MAX, 1)
    pa.set_memory_pool(pa.system_memory_pool())


def _set(option: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(option, value)
