import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ScenarioError, SeamarkError, Stalled
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.refused import Secluded

ROOT = Path(__file__).resolve().parents[4]
Main = Coroutine[Any, Any, Any]


def run(main: Main) -> Any:
    return VirtualLoop().run(main)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 3), max_size=40))
def test_timers_fire_by_time_and_equal_ones_in_order_of_creation(delays: list[int]) -> None:
    fired: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for number, delay in enumerate(delays):
            loop.call_later(delay, fired.append, number)
        await asyncio.sleep(10)

    run(main())
    assert fired == sorted(range(len(delays)), key=lambda number: delays[number])


def test_raw_timers_and_handles_share_one_order() -> None:
    fired: list[str] = []
    loop = VirtualLoop()

    async def main() -> None:
        loop.schedule(1_000, fired.append, "first")
        loop.call_at(1e-6, fired.append, "second")
        loop.schedule(1_000, fired.append, "third")
        await asyncio.sleep(1)

    loop.run(main())
    assert fired == ["first", "second", "third"]


def test_time_jumps_and_is_exact() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        for _ in range(10):
            await asyncio.sleep(0.1)

    loop.run(main())
    assert loop.now_ns == 1_000_000_000


def test_a_cancelled_timer_does_not_fire() -> None:
    fired: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        handle = loop.call_later(1, fired.append, 1)
        soon = loop.call_soon(fired.append, 2)
        handle.cancel()
        soon.cancel()
        assert handle.cancelled()
        await asyncio.sleep(5)

    run(main())
    assert fired == []


def test_what_asyncio_offers_over_the_loop_works() -> None:
    async def main() -> list[object]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        event = asyncio.Event()
        seen: list[object] = []

        async def consumer() -> None:
            seen.append(await queue.get())
            event.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(consumer())
            await queue.put(7)
            await event.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(4)
        seen.append(await asyncio.gather(asyncio.sleep(1, "one"), asyncio.sleep(0, "two")))
        seen.append(asyncio.get_running_loop().time())
        return seen

    assert run(main()) == [7, ["one", "two"], 6.0]


def abort_order(hash_seed: str, *options: str) -> list[str]:
    command = [sys.executable, "-m", "tests.unit.runtimes.simulation.abort", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_an_aborted_task_group_cancels_in_the_same_order_in_every_process() -> None:
    one, other = abort_order("1"), abort_order("2", "allocate")
    assert one == other
    assert len(set(one)) == 1, "the runs of one process differ"
    assert one[0].count("child") == 40
    assert one[0].count("sleeper") == 40


def test_a_deadlock_is_stalled_and_says_who_awaits_what() -> None:
    async def consumer(queue: asyncio.Queue[int]) -> None:
        await queue.get()

    async def main() -> None:
        task = asyncio.create_task(consumer(asyncio.Queue()), name="the consumer")
        await asyncio.sleep(2)
        await task

    with pytest.raises(
        Stalled, match=r"at 2000000000 ns: main awaits .*main.*the consumer awaits .*consumer .*test_loop.* > Queue.get"
    ):
        run(main())


def test_a_livelock_is_stalled_and_says_who_turns() -> None:
    async def turning() -> None:
        while True:
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.create_task(turning(), name="the busy one")

    with pytest.raises(Stalled, match=r"no time passes at 0 ns: main awaits .*the busy one awaits .*turning"):
        run(main())


def test_a_livelock_of_raw_timers_is_stalled() -> None:
    loop = VirtualLoop()

    def again(_: None) -> None:
        loop.schedule(loop.now_ns, again, None)

    async def main() -> None:
        loop.schedule(5, again, None)
        await asyncio.sleep(1)

    with pytest.raises(Stalled, match="no time passes at 5 ns"):
        loop.run(main())


def test_a_busy_run_that_goes_on_in_time_is_no_livelock() -> None:
    async def main() -> int:
        for turn in range(3):
            for _ in range(60_000):
                await asyncio.sleep(0)
            await asyncio.sleep(1 + turn)
        return 3

    assert run(main()) == 3


def test_each_refused_method_says_what_to_use_instead() -> None:
    loop = VirtualLoop()
    names = [name for name in vars(Secluded) if not name.startswith("_")]
    assert len(names) > 30
    for name in names:
        with pytest.raises(ScenarioError, match=rf"refuses {name}: \w+ .*\w"):
            getattr(loop, name)()


def test_no_method_of_a_loop_is_left_without_an_answer() -> None:
    stock = {name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")}
    ours = {name for kind in (VirtualLoop, Secluded) for name in vars(kind)}
    assert stock - ours == set()


def test_what_reaches_outside_through_asyncio_is_refused() -> None:
    async def thread() -> None:
        await asyncio.to_thread(threading.active_count)

    async def connection() -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    async def process() -> None:
        await asyncio.create_subprocess_exec("true")

    async def completed() -> None:
        waiting = [asyncio.sleep(1)]
        try:
            for first in asyncio.as_completed(waiting):
                await first
        finally:
            waiting[0].close()

    async def receive() -> None:
        with socket.socket() as unconnected:
            await asyncio.get_running_loop().sock_recv(unconnected, 1)

    for main, name in (
        (thread, "run_in_executor"),
        (connection, "create_connection"),
        (process, "subprocess_exec"),
        (completed, "as_completed"),
        (receive, "sock_recv"),
    ):
        with pytest.raises(ScenarioError, match=f"refuses {name}.*: "):
            run(main())


def test_as_completed_over_tasks_is_in_order_of_creation_at_one_instant() -> None:
    async def main() -> list[int]:
        tasks = [asyncio.create_task(asyncio.sleep(1, number)) for number in range(20)]
        return [await first for first in asyncio.as_completed(tasks)]

    assert run(main()) == list(range(20))


def test_an_exception_out_of_a_callback_ends_the_run() -> None:
    def broken() -> None:
        raise KeyError("ours")

    async def main() -> None:
        asyncio.get_running_loop().call_later(1, broken)
        await asyncio.sleep(5)

    with pytest.raises(KeyError, match="ours"):
        run(main())


def test_an_exception_of_a_task_that_nobody_awaits_ends_the_run() -> None:
    async def broken() -> None:
        raise KeyError("ours")

    loop = VirtualLoop()

    async def main() -> None:
        asyncio.create_task(broken())  # noqa: RUF006  Nobody is to await it.
        await asyncio.sleep(5)
        for _ in range(200):  # So many that the loop forgets those which have ended.
            await asyncio.create_task(asyncio.sleep(0))

    with pytest.raises(SeamarkError, match=r"nobody took up.*KeyError\('ours'\)"):
        loop.run(main())


def test_tasks_that_are_left_at_the_end_are_cancelled_in_order() -> None:
    ended: list[int] = []

    async def endless(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    async def main() -> None:
        for number in range(5):
            asyncio.create_task(endless(number))  # noqa: RUF006  The loop keeps it.
        await asyncio.sleep(1)

    run(main())
    assert ended == [0, 1, 2, 3, 4]
