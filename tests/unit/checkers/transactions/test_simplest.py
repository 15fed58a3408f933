"""A stale read is explained by two operations, whatever class its cycle belongs to."""

from checkers.history.names import Names
from checkers.transactions.options import Options
from tests.unit.checkers.transactions.test_check import judged, only, shown
from tests.worlds.small_language import sequential

# Process 3 saw what process 2 had done after it read 2; then it did not see 2.
STALE = ("1:ax1", "1:ax2", "2:rx12", "2:az1", "3:rz1", "3:rx1")


def test_a_stale_read_is_explained_by_two_operations_though_its_cycle_needs_no_clock() -> None:
    finding = only(sequential(*STALE))
    assert (finding.anomaly, len(finding.cycle)) == ("G-single-process", 5)
    assert finding.sentence == (
        "T5 read x as [1], without 2, which T1 appended next (as T2 saw), although T1 had finished before T5 began."
    )


def test_a_promise_without_real_time_is_not_explained_by_it() -> None:
    options = Options(model="strong-session-serializable", name=Names(shown))
    (finding,) = judged(sequential(*STALE), options).findings
    assert finding.sentence.endswith("So T1 before T2 before T3 before T4 before T5 before T1: no order allows that.")
