"""Damage of a history's files, as every check reports it."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from harness.core.errors import HistoryError

DAMAGE: Final = (OSError, KeyError, pa.ArrowException)


def damaged(path: Path, problem: Exception) -> HistoryError:
    """The error to raise if a file of a history cannot be read."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return HistoryError(f"{path}: cannot be read ({line}); if its run has a journal, remove it and check again")
