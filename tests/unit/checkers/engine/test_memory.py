"""What a task frees stays with the process, and goes back to the system when the task is done."""

from pathlib import Path

import numpy as np

from checkers.engine.memory import kept

MB = 1 << 20
PIECE_MB = 100


def resident_mb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 // MB


def test_what_is_freed_stays_until_the_task_is_done() -> None:
    before = resident_mb()
    with kept():
        for _ in range(3):
            np.ones(PIECE_MB * MB, np.int8)
        during = resident_mb()
        assert before + PIECE_MB * 0.9 < during < before + PIECE_MB * 2
    assert resident_mb() < during - PIECE_MB * 0.9


def test_what_is_held_outlives_the_task() -> None:
    with kept():
        held = np.arange(PIECE_MB * MB // 8)
    assert int(held.sum()) == len(held) * (len(held) - 1) // 2
