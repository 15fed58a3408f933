"""The process keeps freed memory, returns larger pieces to the system, and has no huge pages."""

from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np
from numpy._core import multiarray

from checkers.engine.memory import one_heap

MB = 1 << 20
PAGE = 4096


def resident_mb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 // MB


def new_pages(size_mb: int) -> int:
    """The pages that the system gives for a column of that size, which is freed again."""
    before = getrusage(RUSAGE_SELF).ru_minflt
    np.ones(size_mb * MB, np.int8)
    return getrusage(RUSAGE_SELF).ru_minflt - before


def test_what_is_freed_is_used_for_the_next_column() -> None:
    one_heap()
    new_pages(20)
    assert new_pages(20) < 20 * MB // PAGE / 10


def test_a_large_piece_goes_back_to_the_system() -> None:
    one_heap()
    before = resident_mb()
    held = np.ones(100 * MB, np.int8)
    assert resident_mb() > before + 90
    del held
    assert resident_mb() < before + 20


def test_numpy_asks_for_no_huge_pages() -> None:
    set_advice = getattr(multiarray, "_set_madvise_hugepage")  # noqa: B009  It is not public, so that no stub has it.
    set_advice(True)
    one_heap()
    assert not set_advice(False)  # What was set before.
