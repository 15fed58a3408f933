"""Small histories as one task each: their kernels run in the task's threads, so that Spark jobs stay few.

Cut into tasks of its own, a history of some thousand operations takes Spark a dozen jobs for a check, and each of them
takes longer than all its kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from checkers.columns.files import footer
from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from harness.core.verdict import Judgement

VALUES_OF_A_TASK: Final = 100_000  # This many take a second of one core, and some tens of megabytes.
_FILES: Final = ("ops.parquet", "mops.parquet", "events.parquet")


Judge = Callable[[Path, Context], Judgement]  # An importable function, or `functools.partial` of one.


def judged(judge: Judge, parts: Sequence[Path], context: Context) -> list[Judgement]:
    """The judgement of each part of a history, in order. Raises HistoryError if it is damaged."""
    if not parts or not is_small(context.home(parts[0])):
        return [judge(part, context) for part in parts]
    alone = [(place, judge, part, replace(context, engine=LocalEngine(1))) for place, part in enumerate(parts)]
    found = context.engine.over(alone).map(_alone).collect()
    return [judgement for _, judgement in sorted(found, key=lambda one: one[0])]


def is_small(history: Path) -> bool:
    """True if that history's folder is small enough for one task. Raises HistoryError if a file cannot be read."""
    return sum(map(_values, (history / name for name in _FILES))) <= VALUES_OF_A_TASK


def _values(path: Path) -> int:
    """The number of values in the longest column of each row group, summed; each element of a list counts."""
    if not path.is_file():
        return 0
    described = footer(path)
    groups = (described.row_group(number) for number in range(described.num_row_groups))
    return sum(max(group.column(place).num_values for place in range(group.num_columns)) for group in groups)


def _alone(task: tuple[int, Judge, Path, Context]) -> tuple[int, Judgement]:
    place, judge, part, context = task
    return place, judge(part, context)
