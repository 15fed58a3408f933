from hypothesis import given, settings
from hypothesis import strategies as st

from harness.runtimes.simulation.clocks import ClockFault, LocalClock

SECOND = 1_000_000_000


def test_a_clock_without_fault_is_constantly_off() -> None:
    clock = LocalClock(300)
    assert [clock.read_ns(now_ns) for now_ns in (0, 5, SECOND)] == [300, 305, SECOND + 300]
    assert clock.error_ns(SECOND) == 0


def test_a_step_is_taken_at_once_and_set_right_at_the_end() -> None:
    clock, fault = LocalClock(0), ClockFault(step_ns=-500)
    clock.begin(fault, 1000)
    assert clock.read_ns(1000) == 500
    assert clock.error_ns(2000) == -500
    clock.end(fault, 3000)
    assert clock.read_ns(3000) == 3000


def test_drift_is_in_millionths() -> None:
    clock = LocalClock(0)
    clock.begin(ClockFault(drift_ppm=100), 0)
    assert clock.read_ns(SECOND) == SECOND + 100_000


def test_a_frozen_clock_stands_still_until_the_end() -> None:
    clock, fault = LocalClock(7), ClockFault(is_frozen=True)
    clock.begin(fault, SECOND)
    assert clock.read_ns(SECOND) == clock.read_ns(9 * SECOND) == SECOND + 7
    clock.end(fault, 9 * SECOND)
    assert clock.read_ns(9 * SECOND) == 9 * SECOND + 7


def test_the_end_of_one_fault_leaves_the_other_in_force() -> None:
    clock, one, other = LocalClock(0), ClockFault(step_ns=10), ClockFault(drift_ppm=1_000_000)
    clock.begin(one, 0)
    clock.begin(other, 0)
    clock.end(one, 100)
    assert clock.read_ns(100) == 100
    assert clock.read_ns(200) == 300
    clock.end(one, 200)
    assert clock.read_ns(300) == 500


def test_readings_count_for_all_faults_in_force_but_only_those_that_are_wrong() -> None:
    clock, one, other = LocalClock(7), ClockFault(step_ns=-500), ClockFault(step_ns=500)
    assert clock.tell_ns(1000) == 1007
    clock.begin(one, 2000)
    assert clock.tell_ns(2000) == 1507
    clock.begin(other, 3000)
    assert clock.tell_ns(3000) == 3007  # They cancel out.
    clock.end(other, 4000)
    clock.end(one, 4000)
    assert clock.tell_ns(4000) == 4007
    assert (one.wrong_readings, one.error_ns_max) == (1, 500)
    assert (other.wrong_readings, other.error_ns_max) == (0, 0)


@settings(max_examples=100)
@given(drift=st.integers(-999_999, 10**6), times=st.lists(st.integers(0, 10**12), min_size=2))
def test_a_drifting_clock_never_runs_backwards(drift: int, times: list[int]) -> None:
    clock = LocalClock(0)
    clock.begin(ClockFault(drift_ppm=drift), 0)
    shown = [clock.read_ns(now_ns) for now_ns in sorted(times)]
    assert shown == sorted(shown)
