"""Subscribers in the harness: sessions, crashes, pauses and slowness."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from harness.core.machine import Delivery, NodeId
from harness.core.seams import Deliver
from harness.runtimes.containers.subscribers import Subscribers
from harness.runtimes.host.control import Slow

S1 = NodeId("s1")


class Counting:
    """Delivers the numbers behind the one that it has kept; keeps every third; after ten its connection breaks."""

    def __init__(self, kept: dict[str, object]) -> None:
        self._kept = kept

    async def receive(self, deliver: Deliver) -> None:
        number = self._kept.get("number", 0)
        assert isinstance(number, int)
        for following in range(number + 1, number + 11):
            await deliver(Delivery(session=0, kind="row", position=following))
            if following % 3 == 0:
                self._kept["number"] = following
            await asyncio.sleep(0)
        raise ConnectionResetError


class Broken:
    async def receive(self, deliver: Deliver) -> None:
        raise ValueError("not a number")


Recorded = list[tuple[int, int | None]]


def with_subscribers(test: Callable[[Subscribers, Recorded], Awaitable[None]]) -> Recorded:
    recorded: Recorded = []

    async def run() -> None:
        def record(_: NodeId, delivery: Delivery) -> None:
            recorded.append((delivery.session, delivery.position))

        subscribers = Subscribers(lambda node, kept: Counting(kept), record, lambda node, text: None)
        subscribers.start(S1)
        try:
            async with asyncio.timeout(5):
                await test(subscribers, recorded)
        finally:
            await subscribers.close()

    asyncio.run(run())
    return recorded


async def until(recorded: Recorded, count: int) -> None:
    while len(recorded) < count:
        await asyncio.sleep(0)


def test_a_broken_connection_is_followed_by_another_session() -> None:
    async def test(subscribers: Subscribers, recorded: Recorded) -> None:
        await until(recorded, 12)

    recorded = with_subscribers(test)
    assert recorded[:10] == [(0, number) for number in range(1, 11)]
    assert recorded[10:12] == [(1, 10), (1, 11)]  # Nine was the last that it had kept.


def test_a_crash_forgets_what_was_not_kept_and_a_start_is_a_new_session() -> None:
    async def test(subscribers: Subscribers, recorded: Recorded) -> None:
        await until(recorded, 5)
        await subscribers.kill(S1)
        before = len(recorded)
        await asyncio.sleep(0.02)
        assert len(recorded) == before
        assert subscribers.places[S1].is_down
        subscribers.start(S1)
        await until(recorded, before + 1)
        kept = recorded[before - 1][1]
        assert kept is not None
        assert recorded[before] == (1, kept - kept % 3 + 1)
        assert subscribers.places[S1].control.life == 1

    with_subscribers(test)


def test_standing_still_it_handles_nothing_and_says_that_something_waits() -> None:
    async def test(subscribers: Subscribers, recorded: Recorded) -> None:
        await until(recorded, 2)
        subscribers.pause(S1)
        await asyncio.sleep(0.02)
        before = len(recorded)
        await asyncio.sleep(0.02)
        assert len(recorded) == before
        assert subscribers.places[S1].control.total().deferred == 1
        subscribers.unpause(S1)
        await until(recorded, before + 1)

    with_subscribers(test)


def test_a_slow_one_is_counted_as_such() -> None:
    async def test(subscribers: Subscribers, recorded: Recorded) -> None:
        subscribers.places[S1].control.tell(Slow(10_000_000))
        await until(recorded, 3)
        assert subscribers.places[S1].control.total().delayed >= 2
        subscribers.places[S1].control.tell(Slow(0))

    with_subscribers(test)


def test_one_that_fails_by_itself_is_told_by_name() -> None:
    result: list[tuple[NodeId, str]] = []

    async def run() -> None:
        subscribers = Subscribers(
            lambda node, kept: Broken(), lambda node, delivery: None, lambda node, text: result.append((node, text))
        )
        subscribers.start(S1)
        await asyncio.sleep(0.02)
        await subscribers.close()

    asyncio.run(run())
    assert result == [(S1, "subscriber s1 failed: ValueError: not a number")]


def test_a_library_that_swallows_a_cancellation_does_not_outlive_a_crash() -> None:
    class Stubborn:
        async def receive(self, deliver: Deliver) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(60)

    async def run() -> None:
        subscribers = Subscribers(lambda node, kept: Stubborn(), lambda node, delivery: None, lambda node, text: None)
        subscribers.start(S1)
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await subscribers.kill(S1)

    asyncio.run(run())
