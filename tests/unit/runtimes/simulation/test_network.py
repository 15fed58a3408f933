import pytest

from harness.core.errors import ScenarioError
from harness.core.machine import Answer, Call, Closed, Context, Durable, Event, NodeId, Received, TimerFired
from harness.core.seams import CallFailed, Connection
from harness.runtimes.simulation.links.links import Links
from nemesis.plan import Step
from tests.unit.runtimes.simulation.small import MS, A, Actor, B, Stage, Text

SECOND = 1000 * MS


def answer(event: Event, context: Context) -> None:
    """Give the number back; a negative one is never answered."""
    match event:
        case Received(sender=sender, message=Call(number=number, body=Text(number=asked))) if asked >= 0:
            context.send(sender, Answer(number, Text(asked)))


def stage() -> Stage:
    return Stage(lambda _: Actor(answer))


def step(fault: str, *targets: str) -> Step:
    return Step(fault=fault, package="partition", at_ns=0, until_ns=SECOND, targets=targets)


async def failure(connection: Connection, node: NodeId, number: int = 1) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await connection.call(node, Text(number), SECOND)
    return caught.value


def test_calls_get_their_own_answers() -> None:
    subject = stage()

    async def main() -> list[object]:
        connection = subject.world.network.connect("client-0")
        other = subject.world.network.connect("client-1")
        return [await each.call(node, Text(3), SECOND) for each in (connection, other) for node in (A, B)]

    assert subject.run(main()) == [Text(3)] * 4


def test_a_call_without_answer_times_out_and_is_not_definite() -> None:
    subject = stage()

    async def main() -> None:
        failed = await failure(subject.world.network.connect("client-0"), A, -1)
        assert str(failed) == "timed out"
        assert not failed.is_definite
        assert subject.world.clock.now_ns() == SECOND

    subject.run(main())


@pytest.mark.parametrize("fault", [step("crash", "a"), step("cut", "client>a")])
def test_a_refused_call_is_definite(fault: Step) -> None:
    subject = stage()

    async def main() -> None:
        connection = subject.world.network.connect("client-0")
        await subject.world.faults.apply(fault)
        assert (await failure(connection, A)).is_definite
        await subject.world.faults.undo(fault)
        assert await connection.call(A, Text(1), SECOND) == Text(1)

    subject.run(main())


@pytest.mark.parametrize("fault", [step("crash", "a"), step("cut", "client>a"), step("cut", "a>client")])
def test_a_call_whose_connection_breaks_is_not_definite_even_if_it_was_made_after_the_break(fault: Step) -> None:
    subject = stage()

    async def main() -> None:
        connection = subject.world.network.connect("client-0")
        await connection.call(A, Text(1), SECOND)
        await subject.world.faults.apply(fault)
        failed = await failure(connection, A, -1)
        assert "ended" in str(failed)
        assert not failed.is_definite

    subject.run(main())


def test_a_lost_answer_is_no_definite_failure() -> None:
    subject = stage()

    async def main() -> None:
        await subject.world.faults.apply(step("cut", "a>client"))
        failed = await failure(subject.world.network.connect("client-0"), A)
        assert not failed.is_definite

    subject.run(main())
    assert Received(NodeId("client-0"), Call(0, Text(1))) in subject.events(A)


def test_a_closed_connection_gives_its_address_back_and_its_calls_up() -> None:
    subject = stage()

    async def main() -> None:
        connection = subject.world.network.connect("client-0")
        await connection.call(A, Text(1), SECOND)
        with pytest.raises(ScenarioError, match="the address 'client-0' is taken"):
            subject.world.network.connect("client-0")
        await connection.close()
        await connection.close()
        assert (await failure(connection, A)).is_definite
        await subject.world.clock.sleep_ns(SECOND)
        assert subject.events(A)[-1] == Closed(NodeId("client-0"))
        again = subject.world.network.connect("client-0")
        assert await again.call(A, Text(2), SECOND) == Text(2)

    subject.run(main())


def test_an_answer_that_comes_too_late_or_from_nobody_asked_is_dropped() -> None:
    def late(event: Event, context: Context) -> None:
        match event:
            case Received(sender=sender, message=Call(number=number)) if context.node == A:
                context.send(B, Answer(number, Text(int(sender[-1]))))
            case Received(message=Answer() as given):
                context.send(NodeId("client-0"), given)
                context.send(NodeId("client-0"), Text(0))

    subject = Stage(lambda _: Actor(late))

    async def main() -> None:
        failed = await failure(subject.world.network.connect("client-0"), A)
        assert str(failed) == "timed out"

    subject.run(main())


def test_an_end_that_left_leaves_nothing_behind() -> None:
    """A long run has many clients, one after the other: the network must not grow with them."""

    def start(_: Durable, context: Context) -> None:
        context.set_timer("idle", MS)

    def talk(event: Event, context: Context) -> None:
        answer(event, context)
        if isinstance(event, TimerFired):
            context.set_timer("idle", MS)

    subject = Stage(lambda _: Actor(talk, start))

    async def main() -> None:
        for number in range(50):
            connection = subject.world.network.connect(f"client-{number}")
            await connection.call(A, Text(1), SECOND)
            await connection.close()
            await subject.world.clock.sleep_ns(100 * MS)

    subject.run(main())
    links = subject.world.network._links
    assert isinstance(links, Links)
    assert len(links._ports) == 2
    assert [len(links.path("a", "client").pipes), len(links.path("client", "a").pipes)] == [0, 0]
    assert links._ports[A].outgoing == {}
    assert links._ports[A].incoming == {}
    assert links._ports[A].first_ns == {}
