"""Small histories as one task each: their kernels run in the task's threads, so that Spark jobs stay few.

Cut into tasks of its own, a history takes Spark a dozen jobs for a check. Of a small one each of them takes longer than
all its kernels, and what a task has read and sorted must be moved. All small parts of a history are one job.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from checkers.columns.files import footer
from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context

# By the name of the engine. Five million take some seconds of one core, and some hundred megabytes; threads share the
# work inside a part without a cost, so that a small part is a task only beside others.
VALUES_OF_A_TASK: Final = {"local": 500_000, "spark": 5_000_000}
_TINY: Final = 50_000  # Parts of together less than so many values are one task.
_OPERATIONS: Final = ("ops.parquet", "mops.parquet")
_EVENTS: Final = "events.parquet"


R = TypeVar("R")


def judged(judge: Callable[[Path, Context], R], parts: Sequence[tuple[Path, Context]]) -> list[R]:
    """The result of `judge` for each part of a history, in order. Raises HistoryError if it is damaged.

    `judge` is an importable function, or `functools.partial` of one.
    """
    sizes = [size(part, context) for part, context in parts]
    small = [place for place, (_, context) in enumerate(parts) if sizes[place] <= VALUES_OF_A_TASK[context.engine.name]]
    found = dict[int, R]()
    if small:
        one, engine = LocalEngine(1), parts[0][1].engine
        tasks = [
            [(place, judge, parts[place][0], replace(parts[place][1], engine=one)) for place in group]
            for group in _grouped(small, sizes)
        ]
        found = dict(chain.from_iterable(engine.over(tasks).map(_alone).collect()))
    return [found[place] if place in found else judge(*each) for place, each in enumerate(parts)]


def size(part: Path, context: Context) -> int:
    """The number of values that a check of that part looks at. Raises HistoryError if a file cannot be read."""
    return _values(context.home(part) / _EVENTS) + sum(_values(part / name) for name in _OPERATIONS)


def _grouped(places: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """The places in groups of neighbours: tiny parts are one task, as handing one over costs more than judging it."""
    groups, values = list[list[int]](), _TINY
    for place in places:
        values += sizes[place]
        if values >= _TINY:
            groups.append([])
            values = sizes[place]
        groups[-1].append(place)
    return groups


def value_count(history: Path) -> int:
    """The number of values in that history's folder. Raises HistoryError if a file cannot be read."""
    return sum(_values(history / name) for name in (*_OPERATIONS, _EVENTS))


def _values(path: Path) -> int:
    """The number of values in the longest column of each row group, summed; each element of a list counts."""
    if not path.is_file():
        return 0
    described = footer(path)
    groups = (described.row_group(number) for number in range(described.num_row_groups))
    return sum(max(group.column(place).num_values for place in range(group.num_columns)) for group in groups)


def _alone(task: Sequence[tuple[int, Callable[[Path, Context], R], Path, Context]]) -> list[tuple[int, R]]:
    return [(place, judge(part, context)) for place, judge, part, context in task]
