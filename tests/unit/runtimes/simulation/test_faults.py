import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.core.machine import Context, Durable, Event, Received, Settings, TimerFired
from harness.runtimes.simulation.world import World
from nemesis.plan import Effect, Step
from tests.scenario.simulation.toy import Toy
from tests.unit.runtimes.simulation.small import MS, A, Actor, B, Stage, Text


def step(fault: str, *targets: str, until_ns: int = 1000 * MS, **args: int | str) -> Step:
    return Step(fault=fault, package="partition", at_ns=0, until_ns=until_ns, targets=targets, args=args)


def chatter() -> Stage:
    """a reads its clock, reaches the failpoint and sends b a message each millisecond. b reads no clock."""

    def start(_: Durable, context: Context) -> None:
        if context.node == A:
            context.set_timer("next", MS)

    def talk(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            context.local_clock_ns()
            context.point("here")
            context.send(B, Text(1))
            context.set_timer("next", MS)

    return Stage(lambda _: Actor(talk, start))


def effect_of(subject: Stage, fault: Step, before_ns: int = 0, during_ns: int = 50 * MS) -> Effect:
    faults, clock = subject.world.faults, subject.world.clock

    async def main() -> Effect:
        await clock.sleep_ns(before_ns)
        await faults.apply(fault)
        await clock.sleep_ns(during_ns)
        await faults.undo(fault)
        await faults.undo(fault)
        found = await faults.effect(fault)
        await clock.sleep_ns(100 * MS)
        assert await faults.effect(fault) == found or fault.fault in ("cut", "reset"), "the count went on after the end"
        return found

    return subject.run(main())


@pytest.mark.parametrize(
    ("fault", "low", "high", "words"),
    [
        (step("cut", "a>b"), 2, 60, "connections closed, messages refused or lost"),
        (step("reset", "a>b"), 2, 60, "connections reset, messages refused or lost"),
        (step("limit-data", "a>b", bytes=100), 2, 20, "connections closed"),
        (step("stall", "a>b"), 40, 60, "messages held back"),
        (step("delay", "a>b", latency_ns=MS, jitter_ns=MS), 40, 60, "messages delayed"),
        (step("bandwidth", "a>b", bytes_per_s=1000), 30, 60, "messages held back"),
        (step("pause", "b"), 40, 60, "events had to wait"),
        (step("consumer", "b", delay_ns=5 * MS), 8, 12, "messages took longer"),
        (step("crash", "b"), 1, 1, "b went down, 0 unsynced writes lost"),
        (step("crash", "a", "b"), 2, 2, "a, b went down"),
        (step("clock", "a", step_ns=-5200 * MS), 50, 50, "50 readings of a clock that was up to 5.2 s wrong"),
        (step("clock", "a", drift_ppm=1000), 49, 49, "a clock that was up to 4.9e-05 s wrong"),
        (step("clock", "a", freeze=1), 49, 49, "a clock that was up to 0.049 s wrong"),
        (step("clock", "a", "b", step_ns=1), 50, 50, "readings of a clock"),
    ],
)
def test_the_effect_is_measured(fault: Step, low: int, high: int, words: str) -> None:
    effect = effect_of(chatter(), fault, before_ns=20 * MS)
    assert low <= effect.count <= high
    assert words in effect.note


@pytest.mark.parametrize(
    "fault",
    [
        step("stall", "b>a"),
        step("delay", "b>a", latency_ns=MS),
        step("cut", "b>a"),
        step("reset", "b>a"),
        step("limit-data", "b>a", bytes=1),
        step("limit-data", "a>b", bytes=10**6),
        step("pause", "a"),
        step("consumer", "a", delay_ns=MS),
        step("clock", "a", step_ns=0),
        step("clock", "b", step_ns=5, drift_ppm=1000),
    ],
)
def test_a_fault_that_nothing_felt_had_no_effect(fault: Step) -> None:
    """b sends nothing and reads no clock, and a receives nothing."""
    during_ns = 0 if fault.fault == "pause" else 50 * MS
    assert effect_of(chatter(), fault, before_ns=20 * MS + 1, during_ns=during_ns).count == 0


def test_a_cut_loses_nothing_of_what_was_sent_to_a_node_that_is_down() -> None:
    subject = chatter()
    faults, clock = subject.world.faults, subject.world.clock
    crash, cut = step("crash", "b"), step("cut", "a>b")

    async def main() -> None:
        await faults.apply(crash)
        await clock.sleep_ns(100 * MS)
        await faults.apply(cut)
        await clock.sleep_ns(100 * MS)
        assert (await faults.effect(cut)).count == 0
        await faults.undo(crash)
        await clock.sleep_ns(100 * MS)
        assert (await faults.effect(cut)).count > 0
        await faults.undo(cut)

    subject.run(main())


def test_a_step_that_was_never_applied_had_no_effect() -> None:
    subject = chatter()

    async def main() -> Effect:
        await subject.world.faults.undo(step("crash", "a"))
        return await subject.world.faults.effect(step("crash", "a"))

    assert subject.run(main()) == Effect(0, "it was never applied")


def test_a_crash_of_a_node_that_is_down_has_no_effect_and_holds_it_down_until_its_own_end() -> None:
    subject = chatter()
    faults, clock = subject.world.faults, subject.world.clock
    one, other = step("crash", "b"), step("crash", "b", disk="kept")

    async def main() -> None:
        await faults.apply(one)
        await faults.apply(other)
        assert (await faults.effect(other)).note == "no node went down, 0 unsynced writes lost"
        await faults.undo(one)
        await clock.sleep_ns(50 * MS)
        assert len(subject.lives[B]) == 1
        await faults.undo(other)
        assert len(subject.lives[B]) == 2

    subject.run(main())


def test_overlapping_cuts_end_with_the_last() -> None:
    subject = chatter()
    faults, clock = subject.world.faults, subject.world.clock
    one, other = step("cut", "a>b"), step("cut", "a>b", "b>a")

    async def main() -> None:
        await faults.apply(one)
        await faults.apply(other)
        await faults.undo(one)
        await clock.sleep_ns(50 * MS)
        assert subject.events(B) == []
        await faults.undo(other)
        await clock.sleep_ns(100 * MS)
        assert Received(A, Text(1)) in subject.events(B)

    subject.run(main())


def test_equal_steps_are_undone_one_by_one() -> None:
    subject = chatter()
    faults, clock = subject.world.faults, subject.world.clock

    async def main() -> None:
        await faults.apply(step("stall", "a>b"))
        await faults.apply(step("stall", "a>b"))
        await faults.undo(step("stall", "a>b"))
        await clock.sleep_ns(50 * MS)
        assert subject.events(B) == []
        await faults.undo(step("stall", "a>b"))
        await clock.sleep_ns(50 * MS)
        assert subject.events(B)

    subject.run(main())


def test_a_failpoint_strikes_the_first_target_that_reaches_it_and_no_other() -> None:
    subject = chatter()
    fault = step("crash", "b", "a", point="here")
    effect = effect_of(subject, fault)
    assert effect.note.startswith("a went down")
    assert effect.count == 1
    assert (len(subject.lives[A]), len(subject.lives[B])) == (2, 1)


def test_a_failpoint_that_nobody_reaches_strikes_the_first_target_at_half_of_the_window() -> None:
    subject = chatter()
    fault = step("pause", "b", point="here", until_ns=40 * MS)
    faults, clock = subject.world.faults, subject.world.clock

    async def main() -> None:
        await faults.apply(fault)
        await clock.sleep_ns(40 * MS)
        await faults.undo(fault)
        assert 15 <= (await faults.effect(fault)).count <= 25
        await clock.sleep_ns(40 * MS)

    subject.run(main())
    handled = [when for when, _ in subject.lives[B][0].events]
    assert [when for when in handled if 20 * MS < when < 40 * MS] == []
    assert max(handled) > 40 * MS


def test_a_failpoint_is_forgotten_when_its_step_ends() -> None:
    subject = chatter()
    faults, clock = subject.world.faults, subject.world.clock
    fault = step("crash", "a", point="here")

    async def main() -> None:
        await faults.apply(fault)
        await faults.undo(fault)
        await clock.sleep_ns(1000 * MS)

    subject.run(main())
    assert len(subject.lives[A]) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (step("melt", "n1"), "fault 'melt' is unknown"),
        (step("crash", "n9"), "target 'n9' is not a node"),
        (step("crash", "n1", disk="wet"), "args disk is 'wet': it must be one of lost, torn, kept"),
        (step("crash", "n1", point="nowhere"), "args point is 'nowhere': it must be one of before-sync, before-answer"),
        (step("cut", "n1"), "target 'n1' is not a link"),
        (step("bandwidth", "n1>n2"), "args lacks 'bytes_per_s'"),
        (step("drop", "n1>n2", permille=1), "'n1>n2' is a fifo link: a connection cannot drop"),
        (step("duplicate", "client>n2", permille=1), "'client>n2' is a fifo link: a connection cannot duplicate"),
        (step("disk-full", "n1"), "a simulated disk has no size: use --runtime docker"),
        (step("limit-data", "n1>n2"), "args lacks 'bytes'"),
        (step("reorder", "n1>s1", permille=1), "'n1>s1' is a fifo link: a connection cannot reorder"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fault: Step, why: str) -> None:
    world = World(Toy(), Settings(), Draw(0), lambda _: None)
    refusal = world.faults.refusal(fault)
    assert refusal is not None
    assert why in refusal
    with pytest.raises(ScenarioError) as caught:
        world.loop.run(world.faults.apply(fault))
    assert str(caught.value) == refusal


@pytest.mark.parametrize(
    "fault",
    [
        step("drop", "n1>b1", permille=1000),
        step("cut", "n1>s1", "client>n2", "n3>client"),
        step("crash", "n1", disk="torn", point="before-sync"),
        step("clock", "n1", step_ns=-5, drift_ppm=7, freeze=0),
    ],
)
def test_what_can_be_done_is_not_refused(fault: Step) -> None:
    assert World(Toy(), Settings(), Draw(0), lambda _: None).faults.refusal(fault) is None
