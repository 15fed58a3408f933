"""What a subscriber saw is recorded before anything is done about it; and failpoints stop a node where they are."""

from pathlib import Path

from harness.runtimes.host.control import (
    Acknowledge,
    Arm,
    Counters,
    Delivered,
    Disarm,
    Evidence,
    Failed,
    Probed,
    Reached,
    Ready,
    Release,
)
from harness.runtimes.host.frames import CONTROL_MAX
from tests.unit.runtimes.host.nodes import ANSWER, Nodes, run, step, until


def test_nothing_is_sent_or_written_before_a_delivery_is_acknowledged(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        _, other_control = await nodes.ready("a", "b")
        control = await nodes.control("a", acknowledges=False)
        await control.first(Ready)
        client, other = await nodes.client("a"), await nodes.client("b")
        client.begin(
            step("probe", "p", 1), step("deliver", "k", 5), step("send", "b", 1), step("append", "log", 1), ANSWER
        )
        evidence = await control.first(Evidence)
        assert [type(item) for item in evidence.items] == [Probed, Delivered]
        client.begin(step("goal", "later"))

        control.close()  # The harness has lost it, and comes back.
        again = await nodes.control("a", acknowledges=False)
        assert await again.first(Evidence) == evidence
        counters = await again.counters()
        assert counters.goals == {}
        assert counters.links["b"].sent == 0
        assert (await other_control.counters()).links["a"].received == 0
        assert b"log" not in (tmp_path / "a" / "state.log").read_bytes()

        again.tell(Acknowledge(evidence.sequence))
        await client.answer()
        await other.sees("received a 1")
        again.close()
        third = await nodes.control("a")
        assert (await third.counters()).goals == {"later": 1}
        assert third.items() == [], "what was acknowledged has come again"

    run(tmp_path, scenario)


def test_deliveries_up_to_the_next_send_share_a_frame(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        delivered = [step("deliver", "k", number) for number in range(5)]
        await client.do(*delivered[:3], ANSWER)
        await client.do(*delivered[3:], step("put", "key", 1), step("deliver", "k", 5), ANSWER)
        frames = [each for each in control.told if isinstance(each, Evidence)]
        assert [len(frame.items) for frame in frames] == [3, 2, 1]
        assert control.delivered() == list(range(6))
        sequences = [frame.sequence for frame in frames]
        assert sequences == sorted(sequences)

    run(tmp_path, scenario, ["a"])


def test_metrics_and_states_are_recorded_before_what_follows_them(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        nodes.start("a")
        control = await nodes.control("a", acknowledges=False)
        await control.first(Ready)
        client = await nodes.client("a")
        client.begin(step("probe", "p", 1), step("put", "key", 1), ANSWER)
        evidence = await control.first(Evidence)
        assert evidence.items == (Probed("p", 1),)
        assert b"key" not in (tmp_path / "a" / "state.log").read_bytes()
        control.tell(Acknowledge(evidence.sequence))
        await client.answer()
        assert b"key" in (tmp_path / "a" / "state.log").read_bytes()

    run(tmp_path, scenario, ["a"])


def test_a_process_ends_with_its_evidence_acknowledged_and_sequences_grow_over_lives(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        nodes.start("a")
        control = await nodes.control("a", acknowledges=False)
        await control.first(Ready)
        client = await nodes.client("a")
        client.begin(step("deliver", "k", 1), step("exit", "", 0), step("send", "a", 1))
        first = await control.first(Evidence)
        await control.carried_out()
        control.tell(Acknowledge(first.sequence))
        last_word = await control.first(Counters, 2)
        assert last_word.number == 0
        assert last_word.handled == 1
        await until(lambda: control.has_ended)

        later = await nodes.returned("a")
        assert (await later.first(Ready)).life == 2
        client = await nodes.client("a")
        await client.do(step("deliver", "k", 2), ANSWER)
        assert later.delivered() == [2]
        assert (await later.first(Evidence)).sequence > first.sequence

    run(tmp_path, scenario, ["a"])


def test_evidence_that_no_frame_can_hold_is_a_failure(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        client.begin(*[step("deliver", "x" * (CONTROL_MAX // 3), number) for number in range(5)], ANSWER)
        await client.answer()
        assert control.delivered() == list(range(5))
        client.begin(step("deliver", "x" * CONTROL_MAX, 9), ANSWER)
        assert "passes the limit of 1,048,576 bytes" in (await control.first(Failed)).text

    run(tmp_path, scenario, ["a"])


def test_only_the_newest_connection_with_the_right_token_is_served(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        wrong = await nodes.control("a", token="guessed")  # noqa: S106
        await until(lambda: wrong.has_ended)
        assert wrong.told == []
        reader, writer = await nodes.dialled(nodes.control_ports["a"])
        writer.write(b"\x00\x10\x00\x00")  # Claims a mebibyte before it has said who it is.
        assert not await reader.read()
        assert (await control.counters()).bad_frames == 2
        newest = await nodes.control("a")
        await newest.first(Ready)
        await until(lambda: control.has_ended)

    run(tmp_path, scenario, ["a"])


def test_a_failpoint_freezes_between_two_effects_until_its_release(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        control, _ = await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await control.carried_out(Arm(1, "there"), Arm(2, "here"))
        client.begin(step("send", "b", 1), step("timer", "t", 0), step("point", "here"), step("send", "b", 2), ANSWER)
        assert await control.first(Reached) == Reached(2, "here")
        await other.sees("received a 1")
        control.tell(Release(1))  # Of another.
        control.close()
        control = await nodes.control("a")
        assert await control.first(Reached) == Reached(2, "here")
        counters = await control.counters()
        assert counters.links["b"].sent == 1
        assert (await other.seen()).events == ["received a 1"]
        control.tell(Release(2))
        await client.answer()
        await other.sees("received a 2")
        await client.sees("timer t")

    run(tmp_path, scenario)


def test_a_failpoint_that_is_not_armed_or_disarmed_only_counts(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        await control.carried_out(Arm(1, "here"), Disarm(1), Arm(2, "there"))
        await client.do(step("point", "here"), step("point", "here"), ANSWER)
        assert (await control.counters()).goals == {"point:here": 2}
        assert not [each for each in control.told if isinstance(each, Reached)]

    run(tmp_path, scenario, ["a"])


def test_a_kill_at_a_failpoint_has_what_came_before_it_and_nothing_after(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        await control.carried_out(Arm(1, "here"))
        client.begin(step("append", "log", 1), step("point", "here"), step("append", "log", 2), ANSWER)
        await control.first(Reached)
        nodes.kill("a")
        await nodes.ready("a")
        assert (await (await nodes.client("a")).seen()).logs["log"] == [1]

    run(tmp_path, scenario, ["a"])
