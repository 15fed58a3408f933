"""The order inside each process of a file without usable times, read for some of its operations."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from checkers.columns import sessions

ROWS = 8


def test_each_choice_of_operations_gets_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = np.arange(ROWS)
    table = pa.table({"index": index, "process": index * 10, "after": index * 100})
    assert not sessions.has_sessions(tmp_path)
    with monkeypatch.context() as small:  # The reader takes the size of row groups from the file.
        small.setattr(sessions, "_GROUP_ROWS", 3)
        sessions.write_sessions(tmp_path, table)
    assert sessions.has_sessions(tmp_path)
    for size in range(ROWS + 1):
        for chosen in combinations(range(ROWS), size):
            process, after = sessions.sessions_of(tmp_path, np.array(chosen, np.int64))
            assert process.tolist() == [10 * each for each in chosen]
            assert after.tolist() == [100 * each for each in chosen]
