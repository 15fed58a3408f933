"""The process keeps freed memory, returns the end of the heap to the system, and has no huge pages."""

import subprocess
import sys
from resource import RUSAGE_SELF, getrusage

import numpy as np
from numpy._core import multiarray

from checkers.engine.memory import one_heap

MB = 1 << 20
PAGE = 4096


def new_pages(size_mb: int) -> int:
    """The pages that the system gives for a column of that size, which is freed again."""
    before = getrusage(RUSAGE_SELF).ru_minflt
    np.ones(size_mb * MB, np.int8)
    return getrusage(RUSAGE_SELF).ru_minflt - before


def test_what_is_freed_is_used_for_the_next_column() -> None:
    one_heap()
    new_pages(20)
    assert new_pages(20) < 20 * MB // PAGE / 10


# In a process of its own, whose heap has no piece that another test has freed.
LARGE = """
from resource import RUSAGE_SELF, getrusage
import numpy as np
from checkers.engine.memory import one_heap
one_heap()
MB = 1 << 20

def resident():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmRSS:"))

start = resident()
large = np.ones(100 * MB, np.int8)
behind = np.ones(MB, np.int8)
assert resident() > start + 90, "it is in use"
del large
faults = getrusage(RUSAGE_SELF).ru_minflt
again = np.ones(100 * MB, np.int8)
assert getrusage(RUSAGE_SELF).ru_minflt - faults < 100 * MB // 4096 / 10, "it was kept for the next column"
del behind, again
assert resident() < start + 70, "the end of the heap went back"
"""


def test_a_large_piece_is_used_again_and_the_end_of_the_heap_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_numpy_asks_for_no_huge_pages() -> None:
    set_advice = getattr(multiarray, "_set_madvise_hugepage")  # noqa: B009  It is not public, so that no stub has it.
    set_advice(True)
    one_heap()
    assert not set_advice(False)  # What was set before.
