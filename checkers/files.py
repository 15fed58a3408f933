"""The files of a history, as every check reads them: what counts as damage, and integer columns as arrays."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from checkers.arrow import integers
from harness.core.columns import Int64s
from harness.core.errors import HistoryError

DAMAGE: Final = (OSError, KeyError, pa.ArrowException)


def damaged(path: Path, problem: Exception) -> HistoryError:
    """What to raise where a file of a history cannot be read."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return HistoryError(f"{path}: cannot be read ({line}); if its run has a journal, remove it and check again")


def ints_of(column: pa.ChunkedArray, missing: int) -> Int64s:
    """An integer column as int64, with `missing` for null."""
    return integers(column, missing)
