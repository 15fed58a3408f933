"""The files of a history, as every check reads them: what counts as damage, and integer columns as arrays."""

from pathlib import Path
from typing import Final, cast

import pyarrow as pa

from harness.core.columns import Int64s
from harness.core.errors import HistoryError

DAMAGE: Final = (OSError, KeyError, pa.ArrowException)


def damaged(path: Path, problem: Exception) -> HistoryError:
    """What to raise where a file of a history cannot be read."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return HistoryError(f"{path}: cannot be read ({line}); if its run has a journal, remove it and check again")


def ints_of(column: pa.ChunkedArray, missing: int) -> Int64s:
    """An integer column as int64, with `missing` for null."""
    whole = column.cast(pa.int64())
    filled = whole.fill_null(missing) if whole.null_count else whole
    return cast("Int64s", filled.to_numpy())
