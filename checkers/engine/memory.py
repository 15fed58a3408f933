"""One glibc heap that keeps freed memory for the next column. Set once, where a process of an engine starts.

By default malloc returns a large block to the kernel at once, and every page of the next block is zeroed anew. glibc
would raise its limits by itself, but for each thread's heap alone, only after it has lost that time, and never above
32 MB, which a column of four million rows needs.

For arrays of 4 MB and more NumPy asks the kernel for huge pages. A virtual machine that gives free memory back to its
host must get each of them anew, while small pages are those that were freed last. That took a third of the time of
large histories (docs/scale.md), and their sorts and joins are no faster with huge pages.
"""

import ctypes
from typing import Final

import pyarrow as pa
from numpy._core import multiarray

_LIBC: Final = ctypes.CDLL(None)
# From glibc's malloc.h; other C libraries keep their defaults.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_MB: Final = 1 << 20


def one_heap() -> None:
    """Use one heap of small pages for Arrow and for all threads that start from now on.

    It keeps freed memory between what is in use, and up to 64 MB behind that.

    Heaps per thread would keep freed memory where no other thread can use it.
    """
    _set(_ARENA_MAX, 1)
    _set(_MMAP_MAX, 0)
    _set(_TRIM_THRESHOLD, 64 * _MB)
    pa.set_memory_pool(pa.system_memory_pool())
    # NumPy's public way is an environment variable that is read before any code of ours runs.
    getattr(multiarray, "_set_madvise_hugepage", bool)(False)


def _set(option: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(option, value)
