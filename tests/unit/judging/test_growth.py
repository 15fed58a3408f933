"""Judging looks at rows in proportion to a run's length, whatever its shape: rows are counted, not time.

A row is looked at when it is in an array that a function of `checkers.columns` gets, or read from a file: that is where
all sorting, joining, grouping and searching is done. Four times the run may cost 4 * 1.2 times the rows.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest

from checkers import columns
from checkers.engine.datasets import LocalEngine
from harness.core.record import Evidence
from harness.judging.checks import chosen, judgement_of
from harness.judging.generations import generations
from harness.record.formats.parquet.parquet import write_history
from tests.bench.soak import BITS, CONTRACT, invented, snapshots
from tests.worlds.contexts import EPOCHS, context

FOLDER = str(Path(columns.__file__ or "").parent)


Shape = Callable[[], Iterator[Evidence]]


def shape(generation_count: int, sessions: int, subscribers: int, keys: int) -> Shape:
    """A run of so many generations, sessions in each of them, subscribers, and keys of each session."""
    return partial(invented, generation_count, sessions, subscribers, keys=keys, operations=24)


@contextmanager
def looking() -> Iterator[list[int]]:
    """A list that grows by a number of rows for each call of a function of checkers/columns, in all new threads."""
    counts: list[int] = []

    def hook(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
            rows = [len(value) for value in frame.f_locals.values() if isinstance(value, np.ndarray | pa.Table)]
            counts.append(max(rows, default=0))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        yield counts
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def rows(evidence: Shape, folder: Path) -> int:
    folder.mkdir()
    write_history(evidence(), folder / "history")
    what = context(*EPOCHS, bits=BITS, contract=CONTRACT, engine=LocalEngine(1))
    with looking() as counts, generations(folder / "history", what) as known:
        found = [judgement_of(check, known) for check in chosen(what)]
    assert not any(judgement.findings or judgement.unknown for judgement in found)
    assert sum(sum(judgement.witnesses.values()) for judgement in found) > 100
    return sum(counts)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        pytest.param(shape(8, 2, 2, 8), shape(32, 2, 2, 2), id="generations"),
        pytest.param(shape(8, 2, 2, 4), shape(32, 2, 2, 4), id="generations, each with keys of its own"),
        pytest.param(shape(1, 40, 2, 8), shape(1, 160, 2, 2), id="sessions"),
        pytest.param(shape(1, 40, 2, 8), shape(1, 160, 2, 8), id="sessions, each with keys of its own"),
        pytest.param(shape(1, 40, 4, 4), shape(1, 40, 16, 4), id="subscribers"),
        pytest.param(
            partial(snapshots, 10, keys=20), partial(snapshots, 40, keys=20), id="sessions that begin with all keys"
        ),
    ],
)
def test_four_times_a_run_costs_four_times_the_rows(small: Shape, large: Shape, tmp_path: Path) -> None:
    one, four = rows(small, tmp_path / "small"), rows(large, tmp_path / "large")
    assert one > 10_000
    assert four < 1.2 * 4 * one, f"{one} rows, then {four}"
