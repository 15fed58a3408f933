from collections import Counter

from harness.core.generators.combinators import EachThread, Limit, Mix, Phases, Repeat
from harness.core.generators.dice import Dice
from harness.core.generators.until_ok import EachUntilOk, UntilOk
from harness.core.record import Invoke, Outcome
from harness.core.seams import Invocation
from tests.unit.generator_simulator import MS, imperfect, invocation, perfect, perfect_info, simulate

READ, WRITE = Repeat(invocation("read")), Repeat(invocation("write"))
ITEMS = tuple(Invocation(f="read", value=number) for number in range(10))


def test_until_ok_stops_at_the_first_success() -> None:
    def third_succeeds(invoke: Invoke) -> tuple[int, Outcome]:
        return MS, "ok" if invoke.index == 2 else "fail"

    trace = simulate(UntilOk(READ), third_succeeds, threads=1)
    assert [complete.outcome for complete in trace.completes] == ["fail", "fail", "ok"]
    assert trace.is_exhausted


def test_until_ok_goes_on_after_info_under_a_new_process() -> None:
    trace = simulate(Limit(UntilOk(READ), 6), perfect_info, threads=1)
    assert [invoke.process for invoke in trace.invokes] == [0, 1, 2, 3, 4, 5]


def test_until_ok_is_not_ended_by_the_success_of_others() -> None:
    """The writes succeed; the reads, which never do, must not stop for that."""

    def only_writes_succeed(invoke: Invoke) -> tuple[int, Outcome]:
        return MS, "ok" if invoke.f == "write" else "fail"

    trace = simulate(Mix((UntilOk(READ), WRITE), Dice.named(3, "mix")), only_writes_succeed, most=60)
    assert Counter(trace.fs)["read"] > 10


def test_until_ok_works_for_each_thread_on_its_own() -> None:
    trace = simulate(EachThread(UntilOk(READ)), imperfect, threads=3)
    ok = [complete for complete in trace.completes if complete.outcome == "ok"]
    assert len(ok) == 3
    assert trace.is_exhausted


def test_each_item_succeeds_once_whatever_fails_before() -> None:
    trace = simulate(EachUntilOk(ITEMS, pause_ns=5 * MS), imperfect)
    values = {invoke.index: invoke.value for invoke in trace.invokes}
    succeeded = [values[complete.index] for complete in trace.completes if complete.outcome == "ok"]
    assert sorted(str(value) for value in succeeded) == [str(number) for number in range(10)]
    assert trace.is_exhausted


def test_an_item_is_tried_again_after_its_pause() -> None:
    def first_fails(invoke: Invoke) -> tuple[int, Outcome]:
        return MS, "fail" if invoke.index == 0 else "ok"

    trace = simulate(EachUntilOk(ITEMS[:1], pause_ns=50 * MS), first_fails)
    assert [invoke.time_ns for invoke in trace.invokes] == [0, 51 * MS]


def test_what_comes_after_waits_for_every_item() -> None:
    first = EachUntilOk(ITEMS, pause_ns=MS)
    trace = simulate(Phases((first, Limit(WRITE, 1))), imperfect)
    assert trace.fs[-1] == "write"
    assert trace.fs.count("write") == 1
    assert trace.invokes[-1].time_ns >= max(c.time_ns for c in trace.completes[:-1])


def test_all_items_are_tried_before_any_is_tried_again() -> None:
    trace = simulate(EachUntilOk(ITEMS, pause_ns=0), perfect_info, threads=3, most=10)
    assert [invoke.value for invoke in trace.invokes] == list(range(10))


def test_no_item_means_exhausted_at_once() -> None:
    assert simulate(EachUntilOk((), pause_ns=0), perfect).is_exhausted
