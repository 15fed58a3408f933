"""What a task frees stays with the process, and goes back to the system when no task follows."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from checkers import memory
from checkers.memory import kept

MB = 1 << 20
PIECE_MB = 100
PATIENCE_S = 30.0


def resident_mb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 // MB


def came_back(down_to_mb: float) -> bool:
    """Does the process give back all but so much, sooner or later?"""
    end = monotonic() + PATIENCE_S
    while resident_mb() > down_to_mb:
        if monotonic() > end:
            return False
        sleep(0.01)
    return True


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(memory, "_IDLE_S", 0.05)
    before = resident_mb()
    yield
    assert came_back(before + PIECE_MB * 0.1)  # No test leaves its memory to the next.


def test_what_is_freed_stays_until_no_task_follows() -> None:
    before = resident_mb()
    with kept():
        for _ in range(3):
            np.ones(PIECE_MB * MB, np.int8)
        during = resident_mb()
        assert before + PIECE_MB * 0.9 < during < before + PIECE_MB * 2
    assert came_back(during - PIECE_MB * 0.9)


def test_what_one_task_frees_stays_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resident_mb()
    monkeypatch.setattr(memory, "_IDLE_S", PATIENCE_S)
    with kept():
        np.ones(PIECE_MB * MB, np.int8)
    assert resident_mb() > before + PIECE_MB * 0.9
    monkeypatch.setattr(memory, "_IDLE_S", 0.05)
    with kept():
        np.ones(PIECE_MB * MB, np.int8)
        assert resident_mb() < before + PIECE_MB * 1.1
        sleep(0.2)
        assert resident_mb() > before + PIECE_MB * 0.9  # It is not given back while a task goes on,
        with kept():
            pass
        sleep(0.2)
        assert resident_mb() > before + PIECE_MB * 0.9  # nor when another one ends meanwhile.


def test_what_is_held_outlives_the_task() -> None:
    with kept():
        held = np.arange(PIECE_MB * MB // 8)
    assert int(held.sum()) == len(held) * (len(held) - 1) // 2
