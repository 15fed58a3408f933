"""The files of a history, as every check reads them: what counts as damage."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from harness.core.errors import HistoryError

DAMAGE: Final = (OSError, KeyError, pa.ArrowException)


def damaged(path: Path, problem: Exception) -> HistoryError:
    """What to raise where a file of a history cannot be read."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return HistoryError(f"{path}: cannot be read ({line}); if its run has a journal, remove it and check again")
