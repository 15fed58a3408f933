"""glibc keeps freed memory in one heap for the next column: set once, where a process of an engine starts.

C's allocator returns a large piece at once, and every page of the next one comes anew, zeroed. It would raise its
limits by itself, but for each thread's heap alone, and only after it has lost that time.
"""

import ctypes
from typing import Final

import pyarrow as pa

_LIBC: Final = ctypes.CDLL(None)
# From glibc's malloc.h; other C libraries keep their defaults.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_MB: Final = 1 << 20


def one_heap() -> None:
    """Use one heap for Arrow, and for all threads that start from now on; it keeps what is freed, up to 64 MB.

    Other heaps hold it where no other thread can use it. Pieces above 32 MB, glibc's highest limit, are returned.
    """
    _set(_ARENA_MAX, 1)
    _set(_MMAP_THRESHOLD, 32 * _MB)
    _set(_TRIM_THRESHOLD, 64 * _MB)
    pa.set_memory_pool(pa.system_memory_pool())


def _set(option: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(option, value)
