import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest

from harness.core.generators.combinators import Limit, Repeat
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import Complete, Evidence, Invoke, Mark, Outcome
from harness.core.seams import Cluster, Completion, Invocation, Workload
from harness.interpreter.interpreter import SECOND, Interpreter, Runtime
from harness.interpreter.settling import Settling
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.world import VirtualClock
from nemesis.plan import FaultRuntime, Plan
from tests.unit.generator_simulator import invocation

SETTLE_S, THREADS = 15, 2
Answer = Callable[[object, float], tuple[float, Outcome]]  # Of a value at that second: after how many, and how it ends.


@dataclass(frozen=True)
class FakeClient:
    answer: Answer
    clock: VirtualClock
    swallows: bool

    async def invoke(self, asked: Invocation, timeout_ns: int) -> Completion:
        takes_s, outcome = self.answer(asked.value, self.clock.now_ns() / SECOND)
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            if not self.swallows:
                raise
        return Completion(outcome=outcome, value=asked.value, error=None if outcome == "ok" else "refused")


@dataclass(frozen=True)
class Quiet:
    """A cluster without a change stream."""

    settle_ns: int = SETTLE_S * SECOND
    stream: None = None


def end_of_run(answer: Answer, *, items: int = 8, swallows: bool = False) -> tuple[str, float]:
    """Why the run ended, and the second; each of `items` is read after healing at second 0.

    A client that `swallows` answers although its task was cancelled.
    """
    loop, recorded = VirtualLoop(), list[Evidence]()
    clock = VirtualClock(loop)

    @asynccontextmanager
    async def opened(_: int) -> AsyncIterator[FakeClient]:
        yield FakeClient(answer, clock, swallows)

    async def dump() -> None:
        pass

    runtime = Runtime(
        clock=clock,
        open_client=opened,
        faults=cast("FaultRuntime", None),  # The plan is empty.
        record=recorded.append,
        mark=lambda phase, note: Mark(clock.now_ns(), phase, {}, {}, {}, note),
        dump=dump,
    )
    reads = tuple(Invocation(f="read", value=number) for number in range(items))
    workload = Workload(
        name="reads",
        load=Limit(Repeat(invocation("read")), 0),
        final=EachUntilOk(reads, FINAL_PAUSE_NS),
        types=("read",),
        checks=(),
    )
    interpreter = Interpreter(
        runtime,
        cluster=cast("Cluster", Quiet()),
        workload=workload,
        plan=Plan(steps=()),
        threads=THREADS,
        timeout_ns=SECOND,
    )
    reason = loop.run(interpreter.run())
    return reason, recorded[-1].time_ns / SECOND


def test_final_operations_may_take_longer_than_the_bound_if_each_succeeds() -> None:
    assert end_of_run(lambda _, __: (3.5, "ok"), items=40) == ("completed", 40 / THREADS * 3.5 + 1)


def test_a_system_that_answers_nothing_has_not_settled() -> None:
    reason, end_s = end_of_run(lambda _, __: (0.5, "fail"))
    assert reason == "stall: 15 s after healing, a final operation had not succeeded: the last answer was fail, refused"
    assert end_s == SETTLE_S


def test_a_client_that_swallows_the_end_of_its_task_does_not_keep_the_run_from_ending() -> None:
    reason, end_s = end_of_run(lambda _, __: (0.7, "fail"), swallows=True)
    assert reason.startswith("stall")
    assert end_s == pytest.approx(SETTLE_S, abs=1)


@pytest.mark.parametrize(("available_s", "expected"), [(15, "completed"), (16, "stall"), (60, "stall")])
def test_a_part_that_comes_back_must_do_so_within_the_bound(available_s: int, expected: str) -> None:
    def answer(value: object, now_s: float) -> tuple[float, Outcome]:
        return 0.5, "fail" if value == 3 and now_s < available_s else "ok"

    reason, end_s = end_of_run(answer)
    assert reason.partition(":")[0] == expected
    assert end_s < SETTLE_S + 3


def test_a_part_that_never_answers_is_a_stall_however_long_the_others_succeed() -> None:
    reason, end_s = end_of_run(lambda value, _: (1.0, "info" if value == 0 else "ok"), items=100)
    assert reason.startswith("stall")
    assert end_s == pytest.approx(50, abs=1)  # All are tried once before any is tried again.


def test_one_failure_after_the_bound_is_no_stall_if_the_next_attempt_succeeds() -> None:
    failed: set[object] = set()

    def answer(value: object, now_s: float) -> tuple[float, Outcome]:
        if now_s >= SETTLE_S and value not in failed:
            failed.add(value)
            return 0.5, "fail"
        return 0.5, "ok"

    assert end_of_run(answer, items=70)[0] == "completed"
    assert len(failed) == 10


def test_what_begins_after_the_bound_has_the_bound_to_succeed() -> None:
    settling = Settling(0, SETTLE_S * SECOND)

    def fails(tried_s: int) -> bool:
        invoke = Invoke(tried_s, tried_s * SECOND, tried_s * SECOND, 0, "read", 1)
        settling.observe(invoke, Complete(tried_s, (tried_s + 1) * SECOND, "fail"))
        ok = Invoke(100 + tried_s, tried_s * SECOND, tried_s * SECOND, 1, "read", 2)
        settling.observe(ok, Complete(100 + tried_s, (tried_s + 1) * SECOND, "ok"))
        return settling.has_failed((tried_s + 1) * SECOND)

    assert [fails(tried_s) for tried_s in (20, 27, 33, 34)] == [False, False, False, True]
