from collections import Counter
from itertools import pairwise

import pytest

from harness.core.errors import ScenarioError
from harness.core.generators.combinators import (
    Counted,
    Delay,
    EachThread,
    Filter,
    FlipFlop,
    Limit,
    Listed,
    Mix,
    Phases,
    Repeat,
    Reserve,
    Stagger,
    TimeLimit,
)
from harness.core.generators.dice import Dice
from harness.core.generators.generator import Generator
from harness.core.record import Invoke
from harness.core.seams import Invocation
from tests.unit.generator_simulator import MS, imperfect, invocation, perfect, perfect_info, quick, simulate

SECOND = 1000 * MS
READ, WRITE = Repeat(invocation("read")), Repeat(invocation("write"))


def dice(name: str = "test") -> Dice:
    return Dice.named(1, name)


def test_repeat_keeps_every_thread_busy() -> None:
    trace = simulate(READ, perfect, threads=3, most=9)
    assert [invoke.time_ns for invoke in trace.invokes] == [
        0,
        0,
        0,
        10 * MS,
        10 * MS,
        10 * MS,
        20 * MS,
        20 * MS,
        20 * MS,
    ]
    assert trace.threads[:3] == [0, 1, 2]


def test_listed_operations_come_once_each_in_order() -> None:
    trace = simulate(Listed(tuple(invocation(f) for f in "abcd")), quick)
    assert trace.fs == list("abcd")
    assert trace.is_exhausted


def test_counted_operations_are_a_function_of_their_number() -> None:
    trace = simulate(Limit(Counted(lambda number: Invocation(f="n", value=number * number)), 5))
    assert [invoke.value for invoke in trace.invokes] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_limit_ends_after_that_many_operations(count: int) -> None:
    trace = simulate(Limit(READ, count))
    assert len(trace.invokes) == count
    assert trace.is_exhausted


def test_time_limit_is_respected_and_reached() -> None:
    trace = simulate(TimeLimit(READ, 100 * MS))
    assert max(invoke.time_ns for invoke in trace.invokes) == 90 * MS
    assert trace.is_exhausted


def test_time_limit_gives_up_what_is_late() -> None:
    paced = Stagger(READ, MS, dice())
    trace = simulate(TimeLimit(paced, 100 * MS), perfect, threads=1)
    assert len(trace.invokes) == 10
    assert all(invoke.time_ns < 100 * MS for invoke in trace.invokes)


def test_stagger_meets_its_rate() -> None:
    trace = simulate(TimeLimit(Stagger(READ, 10 * MS, dice()), 10 * SECOND), perfect, threads=10, most=5000)
    assert 900 < len(trace.invokes) < 1100
    assert all(invoke.time_ns == invoke.intended_ns for invoke in trace.invokes)


def test_stagger_plans_alike_whether_or_not_a_thread_is_free() -> None:
    """An open loop: slow clients make operations late, and do not make them fewer or move when they were due."""
    idle = simulate(Stagger(READ, 4 * MS, dice()), quick, threads=10, most=100)
    busy = simulate(Stagger(READ, 4 * MS, dice()), perfect, threads=1, most=100)
    assert [invoke.intended_ns for invoke in idle.invokes] == [invoke.intended_ns for invoke in busy.invokes]
    assert all(invoke.intended_ns <= invoke.time_ns for invoke in busy.invokes)
    assert busy.invokes[-1].time_ns > 2 * busy.invokes[-1].intended_ns


def test_delay_keeps_its_distance_from_what_really_began() -> None:
    trace = simulate(Delay(READ, 7 * MS), perfect, threads=1, most=20)
    times = [invoke.time_ns for invoke in trace.invokes]
    assert all(later - earlier >= 7 * MS for earlier, later in pairwise(times))
    many = simulate(Delay(READ, 7 * MS), perfect, threads=5, most=20)
    assert [invoke.time_ns for invoke in many.invokes] == [7 * MS * number for number in range(20)]


def test_mix_draws_from_all_and_goes_on_when_one_is_exhausted() -> None:
    trace = simulate(Mix((Limit(READ, 5), Limit(WRITE, 60)), dice()), quick)
    assert Counter(trace.fs) == {"read": 5, "write": 60}
    assert trace.fs != sorted(trace.fs)
    assert trace.is_exhausted


def test_mix_does_not_depend_on_how_busy_the_threads_are() -> None:
    orders = [simulate(Mix((READ, WRITE), dice()), clients, threads=2, most=50).fs for clients in (quick, perfect)]
    assert orders[0] == orders[1]


def test_flip_flop_alternates_until_one_has_no_more() -> None:
    assert simulate(FlipFlop(Limit(READ, 3), WRITE)).fs == ["read", "write", "read", "write", "read", "write"]


def test_filter_keeps_what_the_predicate_likes() -> None:
    numbers = Counted(lambda number: Invocation(f="n", value=number))
    even = Filter(Limit(numbers, 10), lambda planned: isinstance(planned.value, int) and planned.value % 2 == 0)
    assert [invoke.value for invoke in simulate(even).invokes] == [0, 2, 4, 6, 8]


def test_filter_that_refuses_everything_says_so() -> None:
    with pytest.raises(ScenarioError, match="never met"):
        simulate(Filter(READ, lambda planned: False))


def test_phases_do_not_overlap() -> None:
    trace = simulate(Phases((Limit(READ, 5), Limit(WRITE, 4), Limit(READ, 2))), imperfect)
    assert trace.fs == ["read"] * 5 + ["write"] * 4 + ["read"] * 2
    open_ops: set[int] = set()
    for event in trace.events:
        if isinstance(event, Invoke):
            if event.index in (5, 9):
                assert open_ops == set()
            open_ops.add(event.index)
        else:
            open_ops.discard(event.index)
    assert trace.is_exhausted


def test_each_thread_runs_its_own_copy() -> None:
    trace = simulate(EachThread(Listed((invocation("a"), invocation("b")))), imperfect, threads=4)
    by_thread = [[f for f, its in zip(trace.fs, trace.threads, strict=True) if its == thread] for thread in range(4)]
    assert by_thread == [["a", "b"]] * 4
    assert trace.is_exhausted


def test_phases_in_a_copy_wait_for_its_own_thread_only() -> None:
    slow_first = simulate(
        EachThread(Phases((Limit(READ, 1), Limit(WRITE, 1)))),
        lambda invoke: (1000 * MS if invoke.process == 0 else MS, "ok"),
        threads=2,
    )
    writes = [invoke for invoke in slow_first.invokes if invoke.f == "write"]
    assert [invoke.time_ns for invoke in writes] == [MS, 1000 * MS]


def test_reserve_keeps_its_threads() -> None:
    parts: tuple[Generator, ...] = (READ, WRITE, Repeat(invocation("else")))
    trace = simulate(Reserve(parts, (2, 1)), imperfect, threads=5, most=200)
    where: dict[str, set[int]] = {}
    for f, thread in zip(trace.fs, trace.threads, strict=True):
        where.setdefault(f, set()).add(thread)
    assert where == {"read": {0, 1}, "write": {2}, "else": {3, 4}}


def test_reserve_ends_when_all_its_parts_have() -> None:
    trace = simulate(Reserve((Limit(READ, 3), Limit(WRITE, 9)), (1,)), perfect)
    assert Counter(trace.fs) == {"read": 3, "write": 9}
    assert trace.is_exhausted


def test_a_process_that_got_info_never_acts_again() -> None:
    trace = simulate(READ, perfect_info, threads=2, most=20)
    processes = [invoke.process for invoke in trace.invokes]
    assert len(set(processes)) == len(processes)
