"""Operations are counted by the fault during which they were open, or completed."""

import numpy as np
from msgspec.structs import replace

from harness.core.columns import INFO, OK
from harness.record.exposure import FOREVER, Operations, Window

FAULT = Window(step=0, kind="crash", targets="a", note=None, begin_ns=10, end_ns=20, effect=1)
TIMES = [(0, 9), (0, 10), (5, 30), (12, 15), (0, FOREVER), (20, 21), (21, 25), (15, 20)]


def operations(*times: tuple[int, int]) -> Operations:
    """Operations that were invoked and completed at those times."""
    invoke_ns, complete_ns = np.array(times, np.int64).reshape(-1, 2).T
    outcome = np.where(complete_ns == FOREVER, INFO, OK).astype(np.int8)
    f = np.zeros(len(times), np.int32)
    return Operations(types=("txn",), f=f, outcome=outcome, invoke_ns=invoke_ns, complete_ns=complete_ns)


def test_an_operation_counts_if_it_was_open_at_some_moment_of_a_fault() -> None:
    assert operations(*TIMES).open_in(FAULT) == 6
    assert operations(*TIMES).open_in(replace(FAULT, end_ns=FOREVER)) == 7
    assert operations().open_in(FAULT) == 0


def test_an_operation_counts_as_completed_if_it_ended_during_a_fault() -> None:
    assert sorted(operations(*TIMES).completed_in(FAULT).tolist()) == [1, 3, 7]
    assert sorted(operations(*TIMES).completed_in(replace(FAULT, end_ns=FOREVER)).tolist()) == [1, 2, 3, 5, 6, 7]
    assert operations().completed_in(FAULT).tolist() == []
