"""Connections between nodes: what arrives, what is lost, and who hears of it."""

import signal
from contextlib import suppress
from pathlib import Path

from harness.core.machine import Message, NodeId
from harness.runtimes.host.control import (
    Arm,
    LinkCounters,
    Probe,
    ProbeFailed,
    ProbeSeen,
    Reached,
    Release,
)
from harness.runtimes.host.frames import DATA_MAX, WELCOME, Hello, decode_as, encode_frame
from harness.runtimes.host.pipes import BUFFER, WINDOW
from tests.unit.runtimes.host.nodes import ANSWER, Client, Control, Frames, Nodes, run, step
from tests.unit.runtimes.host.proxies import proxy
from tests.unit.runtimes.host.scripted import Note


async def links_of(control: Control, peer: str) -> LinkCounters:
    """What a node has counted of a peer by now."""
    return (await control.counters()).links[peer]


async def sends_until(client: Client, control: Control, peer: str, received: int) -> None:
    """Let a node send to its peer until that has received so many: what is sent before a new connection is lost."""
    number = 1000
    while (await links_of(control, peer)).received < received:
        number += 1
        await client.do(step("send", "b", number), ANSWER)


def numbers(events: list[str], peer: str) -> list[int]:
    return [int(event.split()[2]) for event in events if event.startswith(f"received {peer}")]


def test_a_cut_loses_a_tail_and_both_ends_hear_of_it_before_anything_new(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        link = await proxy(nodes, "a", "b")
        _, control = await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        for _ in range(3):
            received = (await links_of(control, "a")).received
            await sends_until(client, control, "a", received + 5)
            closed = (await other.seen()).events.count("closed a")
            client.begin(step("burst", "b", 400), ANSWER)
            link.cut()
            await client.answer()
            while (await other.seen()).events.count("closed a") == closed:
                pass
            await link.restore()
        received = (await links_of(control, "a")).received
        await sends_until(client, control, "a", received + 1)

        events = (await other.seen()).events
        assert events.count("closed a") == 3
        connections = [numbers(part.split("\n"), "a") for part in "\n".join(events).split("closed a")]
        for place, connection in enumerate(connections):
            assert connection, "nothing came on a connection"
            burst = [number for number in connection if number < 1000]
            assert burst == list(range(len(burst))), f"connection {place} is no prefix: {connection}"
            assert "closed b" in (await client.seen()).events

    run(tmp_path, scenario)


def test_a_peer_that_is_down_is_one_end_for_each_dial(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        for count in range(1, 6):
            await client.do(step("burst", "b", 3), ANSWER)
            while (await client.seen()).events != ["closed b"] * count:
                assert (await links_of(control, "b")).refused <= count
        links = await links_of(control, "b")
        assert (links.refused, links.opened, links.closed) == (5, 0, 0)

        (other,) = await nodes.ready("b")
        await sends_until(client, other, "a", 1)
        assert (await links_of(control, "b")).opened == 1

    run(tmp_path, scenario)


def test_a_proxy_without_a_node_behind_it_is_a_refusal(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await proxy(nodes, "a", "b")
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        await client.do(step("send", "b", 1), ANSWER)
        await client.sees("closed b")
        links = await links_of(control, "b")
        assert (links.refused, links.opened, links.closed) == (1, 0, 0)

    run(tmp_path, scenario)


def test_both_directions_that_end_together_are_one_end(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        there, back = await proxy(nodes, "a", "b"), await proxy(nodes, "b", "a")
        await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await client.do(step("send", "b", 1), ANSWER)
        await other.do(step("send", "a", 2), ANSWER)
        await client.sees("received b 2")
        await other.sees("received a 1")
        there.cut()
        back.cut()
        await client.sees("closed b")
        await other.sees("closed a")
        await there.restore()
        await back.restore()
        await client.do(step("send", "b", 3), ANSWER)
        await other.do(step("send", "a", 4), ANSWER)
        assert (await client.sees("received b 4")).events == ["received b 2", "closed b", "received b 4"]
        assert (await other.sees("received a 3")).events == ["received a 1", "closed a", "received a 3"]

    run(tmp_path, scenario)


def test_a_peer_that_starts_again_has_a_new_connection(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await client.do(step("send", "b", 1), ANSWER)
        await other.do(step("send", "a", 2), ANSWER)
        await client.sees("received b 2")
        await other.sees("received a 1")
        nodes.kill("b")
        await nodes.ready("b")
        other = await nodes.client("b")
        await other.do(step("send", "a", 3), ANSWER)
        events = (await client.sees("received b 3")).events
        assert list(dict.fromkeys(events)) == ["received b 2", "closed b", "received b 3"]
        await client.do(step("send", "b", 4), ANSWER)
        assert (await other.sees("received a 4")).events == ["received a 4"]

    run(tmp_path, scenario)


def test_a_stopped_peer_fills_the_buffer_and_an_overflow_ends_the_connection(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        control, other_control = await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await client.do(step("send", "b", 1), ANSWER)
        await other.sees("received a 1")
        await other_control.carried_out(Arm(1, "here"))
        await other.do(ANSWER, step("point", "here"))
        await other_control.first(Reached)
        await client.do(step("fill", "b", BUFFER), ANSWER)
        while (await links_of(other_control, "a")).received < 1 + WINDOW:
            pass
        assert (await links_of(control, "b")).queued > BUFFER // 2
        assert (await links_of(other_control, "a")).received == 1 + WINDOW
        assert "drained b" not in (await client.seen()).events

        other_control.tell(Release(1))
        await client.sees("drained b")
        assert "closed b" not in (await client.seen()).events

        await other_control.carried_out(Arm(2, "here"))
        await other.do(ANSWER, step("point", "here"))
        await other_control.first(Reached, 2)
        await client.do(step("fill", "b", BUFFER + WINDOW + 100), step("send", "b", 5), ANSWER)
        await client.sees("closed b")
        other_control.tell(Release(2))
        events = (await other.sees("closed a")).events
        assert "received a 5" not in events

    run(tmp_path, scenario)


def test_a_node_that_sends_too_much_to_itself_hears_of_it(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a")
        client = await nodes.client("a")
        count = WINDOW + BUFFER
        await client.do(step("burst", "a", count + 50), ANSWER)
        seen = await client.sees("closed a")
        assert seen.events == [*(f"received a {number}" for number in range(count)), "closed a"]
        await client.do(step("send", "a", 77), ANSWER)
        assert (await client.seen()).events[-1] == "received a 77"

    run(tmp_path, scenario, ["a"])


class Impostor:
    """Speaks to a node as one of its peers."""

    def __init__(self, nodes: Nodes, life: int, number: int) -> None:
        self._nodes, self._hello = nodes, Hello(NodeId("a"), life, number)

    async def dial(self) -> "Impostor":
        reader, self._writer = await self._nodes.dialled(self._nodes.ports["b"])
        self._frames = Frames(reader, DATA_MAX)
        self.send(self._hello)
        return self

    async def is_welcome(self) -> bool:
        try:
            decode_as(WELCOME, await self._frames.take())
        except (EOFError, ConnectionError):
            return False
        return True

    async def is_closed(self) -> bool:
        return not await self.is_welcome()

    def send(self, message: Message) -> None:
        self._writer.write(encode_frame(message))


def test_a_connection_that_comes_too_late_is_sent_away(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("b")
        client = await nodes.client("b")
        first = await Impostor(nodes, 5, 3).dial()
        assert await first.is_welcome()
        first.send(Note(1))
        await client.sees("received a 1")
        for life, number in ((5, 2), (5, 3), (4, 9)):
            late = await Impostor(nodes, life, number).dial()
            late.send(Note(100))
            assert not await late.is_welcome()
        second = await Impostor(nodes, 5, 4).dial()
        first.send(Note(2))  # Whether this is taken or not: it is never behind what the second brings.
        assert await second.is_welcome()
        assert await first.is_closed()
        second.send(Note(3))
        await client.sees("received a 3")
        third = await Impostor(nodes, 6, 0).dial()
        assert await third.is_welcome()
        third.send(Note(4))
        seen = await client.sees("received a 4")
        events = [event for event in seen.events if event != "received a 2"]
        assert events == ["received a 1", "closed a", "received a 3", "closed a", "received a 4"]
        assert seen.events.index("closed a") > 0

    run(tmp_path, scenario)


def test_garbage_ends_its_connection_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("b")
        client = await nodes.client("b")
        peer = await Impostor(nodes, 1, 1).dial()
        assert await peer.is_welcome()
        hello = encode_frame(Hello(NodeId("somebody")))
        bad = [b"\xff\xff\xff\xff", b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\1\xc1", encode_frame(Note(1))]
        for garbage in (*bad, *(hello + each for each in bad[:3])):
            reader, writer = await nodes.dialled(nodes.ports["b"])
            writer.write(garbage)
            with suppress(ConnectionError):
                while await reader.read(1 << 10):
                    pass
        peer.send(Note(5))
        await client.sees("received a 5")
        assert (await control.counters()).bad_frames == len(bad) + 3

    run(tmp_path, scenario)


def test_a_client_that_leaves_is_an_end_and_may_come_back(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a")
        observer, client = await nodes.client("a", "observer"), await nodes.client("a", "leaver")
        await client.do(ANSWER)
        client.close()
        await observer.sees("closed leaver")
        again = await nodes.client("a", "leaver")
        await again.do(ANSWER)
        await observer.do(step("send", "stranger", 1), ANSWER)
        seen = await observer.sees("closed stranger")
        assert seen.events == ["closed leaver", "closed stranger"]

    run(tmp_path, scenario, ["a"])


def test_probes_go_the_way_of_messages(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        link = await proxy(nodes, "a", "b")
        control, other = await nodes.ready("a", "b")
        client = await nodes.client("a")
        control.tell(Probe(NodeId("b"), 11))
        assert await other.first(ProbeSeen) == ProbeSeen(NodeId("a"), 11)
        await client.do(step("send", "b", 1), ANSWER)
        control.tell(Probe(NodeId("b"), 12))
        assert (await other.first(ProbeSeen, 2)).nonce == 12
        assert (await links_of(other, "a")).opened == 1
        link.cut()
        await client.sees("closed b")
        control.tell(Probe(NodeId("b"), 13))
        failed = await control.first(ProbeFailed)
        assert (failed.to, failed.nonce) == ("b", 13)
        control.tell(Probe(NodeId("nobody"), 14))
        assert (await control.first(ProbeFailed, 2)).reason == "there is no such peer"

    run(tmp_path, scenario)


def test_a_paused_process_keeps_its_connections(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        await nodes.ready("a", "b")
        client, other = await nodes.client("a"), await nodes.client("b")
        await client.do(step("send", "b", 1), ANSWER)
        await other.sees("received a 1")
        nodes.signal("b", signal.SIGSTOP)
        await client.do(step("burst", "b", 20), ANSWER)
        nodes.signal("b", signal.SIGCONT)
        seen = await other.sees("received a 19")
        assert seen.events == ["received a 1", *(f"received a {number}" for number in range(20))]

    run(tmp_path, scenario)
