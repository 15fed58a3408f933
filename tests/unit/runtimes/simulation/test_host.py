import itertools
import re

import pytest

from harness.core.errors import Stalled
from harness.core.machine import Closed, Context, Delivery, Durable, Event, NodeId, Received, Synced, TimerFired
from harness.core.record import Probe, StreamEvent
from harness.runtimes.simulation.host import MachineFailed
from harness.runtimes.simulation.links.fifo import WINDOW
from nemesis.plan import Step
from tests.unit.runtimes.simulation.small import MS, A, Actor, B, Handler, Stage, Text


def stage(on_a: Handler | None = None, on_b: Handler | None = None) -> Stage:
    """a is woken by a timer after 1 ms at each start."""

    def wake(_: Durable, context: Context) -> None:
        if context.node == A:
            context.set_timer("wake", MS)

    return Stage(lambda node: Actor({A: on_a, B: on_b}[node], wake))


def step(fault: str, *targets: str, until_ns: int = 1000 * MS, **args: int | str) -> Step:
    return Step(fault=fault, package="partition", at_ns=0, until_ns=until_ns, targets=targets, args=args)


async def passing(world: Stage, duration_ns: int) -> None:
    await world.world.clock.sleep_ns(duration_ns)


def go(world: Stage, duration_ns: int) -> None:
    world.run(passing(world, duration_ns))


def test_effects_are_carried_out_in_order_after_handle_has_returned() -> None:
    def on_a(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            context.probe("one", 1)
            context.deliver(Delivery(session=5, kind="row", value=7))
            context.probe("two", 2)
            assert subject.records == []

    subject = stage(on_a)
    go(subject, 5 * MS)
    first, second, third = subject.records
    assert first == Probe(MS, "a", "one", 1)
    assert second == StreamEvent(MS, "a", 5, 0, "row", value=7)
    assert third == Probe(MS, "a", "two", 2)


def test_messages_and_what_is_sent_to_oneself_arrive() -> None:
    def on_a(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            context.send(B, Text(1))
            context.send(A, Text(2))

    subject = stage(on_a)
    go(subject, 50 * MS)
    assert subject.events(B) == [Received(A, Text(1))]
    assert subject.events(A) == [TimerFired("wake"), Received(A, Text(2))]


def test_a_timer_that_is_set_again_fires_once_at_the_later_time() -> None:
    def start(_: Durable, context: Context) -> None:
        context.set_timer("wake", MS)
        context.set_timer("wake", 3 * MS)
        context.set_timer("never", MS)
        context.cancel_timer("never")
        context.cancel_timer("unknown")

    subject = Stage(lambda _: Actor(None, start))
    go(subject, 10 * MS)
    assert subject.lives[A][0].events == [(3 * MS, TimerFired("wake"))]


def test_a_timer_that_is_cancelled_while_it_waits_in_the_inbox_does_not_fire() -> None:
    def on_a(event: Event, context: Context) -> None:
        if isinstance(event, Received):
            context.cancel_timer("late")
        elif event == TimerFired("wake"):
            context.send(A, Text(1))
            context.set_timer("late", 20 * MS)

    subject = stage(on_a)

    async def main() -> None:
        await passing(subject, 2 * MS)
        pause = step("pause", "a")
        await subject.world.faults.apply(pause)
        await passing(subject, 50 * MS)
        await subject.world.faults.undo(pause)
        await passing(subject, 50 * MS)

    subject.run(main())
    assert subject.events(A) == [TimerFired("wake"), Received(A, Text(1))]


def test_synced_comes_after_the_writes_are_durable_and_a_restart_reads_them() -> None:
    found: list[int] = []

    def start(durable: Durable, context: Context) -> None:
        found.append(len(durable.log("log")))
        context.append("log", Text(1))
        context.sync(1)
        context.append("log", Text(2))

    subject = Stage(lambda node: Actor(None, start if node == A else None))

    async def main() -> None:
        crash = step("crash", "a")
        await passing(subject, 20 * MS)
        assert subject.events(A) == [Synced(1)]
        await subject.world.faults.apply(crash)
        await subject.world.faults.undo(crash)
        assert (await subject.world.faults.effect(crash)).note == "a went down, 1 unsynced writes lost"

    subject.run(main())
    assert found == [0, 1]
    assert len(subject.lives[A]) == 2


def test_nothing_of_an_earlier_life_reaches_a_later_one() -> None:
    def start(_: Durable, context: Context) -> None:
        if context.now_ns() == 0:
            context.set_timer("old", 3 * MS)
            context.append("log", Text(1))
            context.sync(1)

    def on_b(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            context.send(A, Text(1))

    subject = Stage(lambda node: Actor(on_b if node == B else None, start))

    async def main() -> None:
        crash = step("crash", "a")
        await passing(subject, 1)
        await subject.world.faults.apply(crash)
        await subject.world.faults.undo(crash)
        await passing(subject, 50 * MS)

    subject.run(main())
    assert subject.events(A) == [Received(B, Text(1))]


@pytest.mark.parametrize("mode", ["lost", "torn", "kept"])
def test_a_crash_at_a_failpoint_carries_out_exactly_the_effects_before_it(mode: str) -> None:
    def on_a(event: Event, context: Context) -> None:
        if event == TimerFired("wake") and context.now_ns() == MS:
            context.send(B, Text(1))
            context.probe("before", 1)
            context.sometimes("before")
            context.point("here")
            context.probe("after", 1)
            context.sometimes("after")
            context.send(B, Text(2))

    subject = stage(on_a)

    async def main() -> None:
        crash = step("crash", "a", point="here", disk=mode)
        await subject.world.faults.apply(crash)
        await passing(subject, 100 * MS)
        assert (await subject.world.faults.effect(crash)).count == 1
        await subject.world.faults.undo(crash)
        await passing(subject, 100 * MS)

    subject.run(main())
    assert [record.name for record in subject.records if isinstance(record, Probe)] == ["before"]
    assert subject.world.goals() == {"before": 1, "point:here": 1}
    assert Received(A, Text(2)) not in subject.events(B)
    assert subject.events(B)[-1] == Closed(A)
    assert len(subject.lives[A]) == 2


def test_a_pause_at_a_failpoint_carries_out_the_rest_when_it_ends() -> None:
    def on_a(event: Event, context: Context) -> None:
        context.probe("before", 1)
        context.point("here")
        context.probe("after", 1)

    subject = stage(on_a)

    async def main() -> None:
        pause = step("pause", "a", point="here")
        await subject.world.faults.apply(pause)
        await passing(subject, 30 * MS)
        assert [record.name for record in subject.records if isinstance(record, Probe)] == ["before"]
        await subject.world.faults.undo(pause)

    subject.run(main())
    assert subject.records == [Probe(MS, "a", "before", 1), Probe(30 * MS, "a", "after", 1)]


@pytest.mark.parametrize("first", ["pause", "crash"])
def test_what_a_crash_dropped_at_a_failpoint_never_comes_back(first: str) -> None:
    def on_a(event: Event, context: Context) -> None:
        if context.now_ns() == MS:
            context.point("here")
            context.probe("after", 1)

    subject = stage(on_a)

    async def main() -> None:
        fault, crash, pause = step(first, "a", point="here"), step("crash", "a"), step("pause", "a")
        await subject.world.faults.apply(fault)
        await passing(subject, 10 * MS)
        if first == "pause":
            await subject.world.faults.apply(crash)
            await subject.world.faults.undo(crash)
        await subject.world.faults.undo(fault)
        await subject.world.faults.apply(pause)
        await subject.world.faults.undo(pause)

    subject.run(main())
    assert len(subject.lives[A]) == 2
    assert subject.world.goals() == {"point:here": 1}
    assert subject.records == []


def test_a_crash_ends_a_pause_and_empties_the_inbox() -> None:
    def on_a(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            context.send(A, Text(context.now_ns()))

    subject = stage(on_a)

    async def main() -> None:
        pause, crash = step("pause", "a"), step("crash", "a")
        await passing(subject, MS + 1)
        await subject.world.faults.apply(pause)
        await passing(subject, 10 * MS)
        await subject.world.faults.apply(crash)
        await subject.world.faults.undo(crash)
        await passing(subject, 10 * MS)
        assert subject.events(A) == [TimerFired("wake"), Received(A, Text(12 * MS + 1))]
        await subject.world.faults.undo(pause)
        assert (await subject.world.faults.effect(pause)).note == "1 events had to wait"

    subject.run(main())


def test_a_paused_node_handles_everything_later_in_the_same_order() -> None:
    def on_b(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            for number in range(300):
                context.send(A, Text(number))

    def start(_: Durable, context: Context) -> None:
        if context.node == B:
            context.set_timer("go", 5 * MS)

    subject = Stage(lambda node: Actor(on_b if node == B else None, start))

    async def main() -> None:
        pause = step("pause", "a")
        await subject.world.faults.apply(pause)
        await passing(subject, 500 * MS)
        assert subject.events(A) == []
        await subject.world.faults.undo(pause)
        await passing(subject, 100 * MS)
        assert (await subject.world.faults.effect(pause)).note == "128 events had to wait"

    subject.run(main())
    assert subject.events(A) == [Received(B, Text(number)) for number in range(300)]


def test_a_consumer_delay_spaces_messages_out() -> None:
    def on_a(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            for number in range(4):
                context.send(B, Text(number))

    subject = stage(on_a)

    async def main() -> None:
        slow = step("consumer", "b", delay_ns=20 * MS)
        await subject.world.faults.apply(slow)
        await passing(subject, 65 * MS)
        await subject.world.faults.undo(slow)
        assert (await subject.world.faults.effect(slow)).count == 4
        await passing(subject, 65 * MS)

    subject.run(main())
    times = [when for when, _ in subject.lives[B][0].events]
    assert len(times) == 4
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [20 * MS] * 3


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_machine_that_sends_until_its_buffer_holds_ten_comes_to_an_end(is_cut: bool) -> None:
    sent: list[int] = []

    def on_a(event: Event, context: Context) -> None:
        count = 0
        while isinstance(event, TimerFired) and context.queued(B) < 10:
            context.send(B, Text(1))
            count += 1
        if isinstance(event, TimerFired):
            sent.append(count)
            context.set_timer("again", MS)

    subject = stage(on_a)

    async def main() -> None:
        if is_cut:
            await subject.world.faults.apply(step("cut", "a>b"))
        await passing(subject, 5 * MS)

    subject.run(main())
    assert sent[0] == WINDOW + 10
    assert len(sent) == 4
    assert all(count == WINDOW + 10 if is_cut else count < WINDOW for count in sent[1:])


def test_each_node_draws_from_streams_of_its_own() -> None:
    drawn: dict[NodeId, list[int]] = {A: [], B: []}

    def start(_: Durable, context: Context) -> None:
        drawn[context.node] = [context.draw("dice").below(1_000_000) for _ in range(3)]

    subject = Stage(lambda _: Actor(None, start))
    assert drawn[A] != drawn[B]
    assert subject.world.positions()["node/a/dice"] >= 3


def test_unexpected_messages_are_counted() -> None:
    def on_b(event: Event, context: Context) -> None:
        if isinstance(event, Received):
            context.unexpected(event.message)

    def on_a(event: Event, context: Context) -> None:
        context.send(B, Text(1))

    subject = stage(on_a, on_b)
    go(subject, 20 * MS)
    assert subject.world.unexpected() == {"a": 0, "b": 1}
    assert subject.world.handled() == {"a": 1, "b": 1}


def test_an_exception_out_of_a_machine_ends_the_run_and_names_node_and_event() -> None:
    def on_b(event: Event, context: Context) -> None:
        raise KeyError("no such row")

    def on_a(event: Event, context: Context) -> None:
        context.send(B, Text(10**200))

    place = rf"{re.escape(__file__)}:{on_b.__code__.co_firstlineno + 1}"
    told = rf"node b raised KeyError: 'no such row' at \d+ ns, on Received.{{112}} \.\.\. \(at {place}\)"
    with pytest.raises(MachineFailed, match=told):
        go(stage(on_a, on_b), 20 * MS)


def test_a_machine_whose_timer_takes_no_time_is_stalled_and_named() -> None:
    def on_a(event: Event, context: Context) -> None:
        context.set_timer("again", 0)

    with pytest.raises(
        Stalled, match=r"no time passes at 1000000 ns: .*; last came node a Host._fire \('again', \d+\)"
    ):
        go(stage(on_a), 20 * MS)


def test_an_exception_out_of_recover_names_the_node() -> None:
    def start(_: Durable, context: Context) -> None:
        raise ValueError("bad disk")

    with pytest.raises(MachineFailed, match="node a raised ValueError: bad disk at 0 ns, on recover"):
        Stage(lambda _: Actor(None, start))


def test_a_clock_fault_is_seen_by_its_node_only() -> None:
    seen: list[tuple[NodeId, int]] = []

    def tell(event: Event, context: Context) -> None:
        seen.append((context.node, context.local_clock_ns() - context.now_ns()))

    def start(_: Durable, context: Context) -> None:
        context.set_timer("tell", 500 * MS)

    subject = Stage(lambda _: Actor(tell, start))

    async def main() -> None:
        skew = step("clock", "b", step_ns=77 * MS)
        await subject.world.faults.apply(skew)
        await passing(subject, 600 * MS)
        await subject.world.faults.undo(skew)
        assert (await subject.world.faults.effect(skew)).note == "1 readings of a clock that was up to 0.077 s wrong"

    subject.run(main())
    errors = dict(seen)
    assert 0 <= errors[A] < MS
    assert 77 * MS <= errors[B] < 78 * MS
