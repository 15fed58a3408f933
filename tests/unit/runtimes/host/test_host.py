"""The host as a whole: machines that do what they are told, in processes of their own."""

from pathlib import Path

from harness.core.machine import Settings
from harness.runtimes.host.control import (
    AskClocks,
    AskCounters,
    AskDump,
    Clocks,
    Counters,
    Dumped,
    Failed,
    Slow,
    Stated,
)
from tests.unit.runtimes.host.nodes import ANSWER, Nodes, run, step
from tests.unit.runtimes.host.scripted import Did


def test_nodes_send_to_each_other_and_to_themselves(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await client.do(step("burst", "b", 3), step("send", "a", 9), ANSWER)
        assert "received a 9" in (await client.seen()).events
        seen = await other.sees("received a 2")
        assert seen.events == ["received a 0", "received a 1", "received a 2"]

    run(tmp_path, scenario)


def test_timers_fire_once_unless_they_are_cancelled(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a")
        client = await nodes.client("a")
        await client.do(
            step("timer", "again", 5_000_000),
            step("timer", "cancelled", 1_000_000),
            step("timer", "late", 20_000_000),
            step("timer", "again", 1_000_000),
            step("no timer", "cancelled"),
            step("no timer", "unknown"),
            ANSWER,
        )
        seen = await client.sees("timer late")
        assert seen.events == ["timer again", "timer late"]

    run(tmp_path, scenario, ["a"])


def test_questions_on_the_control_channel_are_answered(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        control, _ = await nodes.ready("a", "b")
        client = await nodes.client("a")
        await client.do(step("send", "b", 1), step("goal", "g"), step("point", "here"), ANSWER)
        control.tell(AskCounters(3))
        counters = await control.first(Counters)
        assert (counters.number, counters.handled) == (3, 1)
        assert counters.goals == {"g": 1, "point:here": 1}
        assert counters.links["b"].sent == 1
        assert counters.links["client"].received == 1

        control.tell(AskClocks(4))
        clocks = await control.first(Clocks)
        assert abs(clocks.now_ns - (clocks.monotonic_ns - nodes.epoch_ns)) < 1_000_000_000
        assert abs(clocks.local_ns - clocks.now_ns) < 1_000_000_000

        await client.do(step("send", "a", 5), ANSWER)
        await client.sees("received a 5")
        control.tell(AskDump(5))
        assert (await control.first(Dumped)).number == 5
        states = [item.dump.value for item in control.items() if isinstance(item, Stated)]
        assert states == ["received a 5"]

    run(tmp_path, scenario)


def test_each_life_draws_otherwise_and_the_same_life_alike(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        drawn: list[tuple[int, ...]] = []
        for folder in ("one", "one", "two"):
            nodes.folder = tmp_path / folder
            await nodes.ready("a")
            answer = await (await nodes.client("a")).do(step("answer", "", 20))
            assert isinstance(answer, Did)
            drawn.append(answer.draws)
            nodes.kill("a")
        assert drawn[0] == drawn[2]
        assert drawn[0] != drawn[1]

    run(tmp_path, scenario, ["a"])


def test_a_slow_node_takes_longer_for_messages_only(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        await control.carried_out(Slow(20_000_000))
        for _ in range(3):
            client.begin(ANSWER)
        for _ in range(3):
            await client.answer()
        await control.carried_out(Slow(0))
        await client.do(ANSWER)
        counters = await control.counters()
        assert (counters.handled, counters.delayed) == (4, 3)

    run(tmp_path, scenario, ["a"])


def test_a_machine_that_raises_is_told_to_everyone_who_connects(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        client.begin(step("no such step"))
        failed = await control.first(Failed)
        assert "node a" in failed.text
        assert "no such step" in failed.text
        later = await nodes.control("a")
        assert await later.first(Failed) == failed
        client.begin(ANSWER)
        assert (await later.counters()).handled == 1
        assert "no such step" in nodes.kill("a")

    run(tmp_path, scenario, ["a"])


def test_a_machine_that_cannot_recover_is_told(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        nodes.settings = Settings(bugs=frozenset({"recover"}))
        nodes.start("a")
        failed = await (await nodes.control("a")).first(Failed)
        assert "a bug in recover" in failed.text

    run(tmp_path, scenario, ["a"])


def test_a_message_that_is_too_large_is_a_failure_and_not_lost(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        control, _ = await nodes.ready("a", "b")
        client = await nodes.client("a")
        client.begin(step("huge", "b", 17 << 20))
        failed = await control.first(Failed)
        assert "passes the limit of 16,777,216 bytes" in failed.text

    run(tmp_path, scenario)
