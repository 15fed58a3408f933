"""Small histories as one task each: kernels run in its threads, as over many runs at once, and Spark jobs stay few.

Cut into tasks of its own, a history of some thousand operations takes Spark a dozen jobs for a check, and each of them
takes longer than all its kernels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import pyarrow.parquet as pq

from checkers.columns.files import DAMAGE, damaged
from checkers.engine.datasets import Engine, LocalEngine
from harness.core.verdict import Judgement

VALUES_OF_A_TASK: Final = 100_000  # A second of one core, and some tens of megabytes.
_FILES: Final = ("ops.parquet", "mops.parquet", "events.parquet")


class Judge(Protocol):
    """A check of one history, or of a part of it: an importable function, or `functools.partial` of one."""

    def __call__(self, *, engine: Engine) -> Judgement:
        """The judgement of that history, by kernels that run on that engine."""


def judged(history: Path, judges: Sequence[Judge], engine: Engine) -> list[Judgement]:
    """The judgement of each judge for its part of that history, in order. Raises HistoryError if it is damaged."""
    if not is_small(history):
        return [judge(engine=engine) for judge in judges]
    told = engine.over(tuple(enumerate(judges))).map(_alone).collect()
    return [judgement for _, judgement in sorted(told, key=lambda one: one[0])]


def is_small(history: Path) -> bool:
    """True if that history's folder is work for one task. Raises HistoryError if a file cannot be read."""
    return sum(map(_values, (history / name for name in _FILES))) <= VALUES_OF_A_TASK


def _values(path: Path) -> int:
    """The number of values in the longest column of each row group, summed; each element of a list counts."""
    if not path.is_file():
        return 0
    try:
        footer = pq.read_metadata(path)
    except DAMAGE as problem:
        raise damaged(path, problem) from problem
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return sum(max(group.column(place).num_values for place in range(group.num_columns)) for group in groups)


def _alone(task: tuple[int, Judge]) -> tuple[int, Judgement]:
    place, judge = task
    return place, judge(engine=LocalEngine(1))
