"""Runs `seamark ARGUMENTS`, and writes how much memory its process had at most: `python -m tests.peak FILE ARGUMENTS`.

The parent cannot tell: the kernel gives a child the peak of the process that started it.
"""

import re
import sys
from pathlib import Path

from harness.cli.main import main


def peak_mb() -> int:
    """The most memory that this process has held."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) // 1024


if __name__ == "__main__":
    to, sys.argv = Path(sys.argv[1]), ["seamark", *sys.argv[2:]]
    try:
        main()
    finally:
        to.write_text(str(peak_mb()), encoding="ascii")
