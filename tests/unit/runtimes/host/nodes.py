"""Starts nodes as processes on loopback, and speaks to them as the harness and as clients do."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import Self, TypeVar

from harness.core.machine import Answer, Call, Message, NodeId, Settings
from harness.runtimes.host.config import VARIABLE, NodeConfig, encode_config
from harness.runtimes.host.control import (
    FROM_NODE,
    Acknowledge,
    AskCounters,
    Counters,
    Delivered,
    Evidence,
    FromNode,
    Item,
    Open,
    Ready,
)
from harness.runtimes.host.frames import (
    CONTROL_MAX,
    DATA_MAX,
    WELCOME,
    Codec,
    Hello,
    Splitter,
    codec_of,
    decode_as,
    encode_frame,
)
from tests.unit.runtimes.host.scripted import Ask, Do, Seen, Step

ROOT = Path(__file__).parents[4]
SCRIPTED = "tests.unit.runtimes.host.scripted:Scripted"
TOKEN = "the token of the run"  # noqa: S105
HOST = "127.0.0.1"
PATIENCE_S = 10.0
T = TypeVar("T")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def until(condition: Callable[[], T | None]) -> T:
    """What `condition` says once it says something true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        assert time.monotonic() < deadline, "that never happened"
        await asyncio.sleep(0.002)
    return answer


class Nodes:
    """The processes of one run. `via` leads a directed link through another port."""

    def __init__(self, folder: Path, names: Sequence[str] = ("a", "b"), cluster: str = SCRIPTED) -> None:
        self.folder, self.cluster = folder, cluster
        self.ports = {name: free_port() for name in names}
        self.control_ports = {name: free_port() for name in names}
        self.via: dict[tuple[str, str], int] = {}
        self.settings = Settings()
        self.codec: Codec = codec_of(cluster)
        self.epoch_ns, self.epoch_realtime_ns = time.monotonic_ns(), time.time_ns()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._connections: list[asyncio.StreamWriter] = []
        self.at_end: list[Callable[[], None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for end in self.at_end:
            end()
        for connection in self._connections:
            connection.transport.abort()
        await asyncio.sleep(0)
        for name in list(self._processes):
            self.kill(name)

    def start(self, name: str) -> subprocess.Popen[str]:
        """A node's process."""
        peers = {
            NodeId(peer): (HOST, self.via.get((name, peer), port)) for peer, port in self.ports.items() if peer != name
        }
        config = NodeConfig(
            node=NodeId(name),
            cluster=self.cluster,
            settings=self.settings,
            seed=7,
            token=TOKEN,
            epoch_ns=self.epoch_ns,
            epoch_realtime_ns=self.epoch_realtime_ns,
            peers=peers,
            listen_host=HOST,
            listen_port=self.ports[name],
            control_port=self.control_ports[name],
            folder=str(self.folder / name),
        )
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-m", "harness.runtimes.host"],
            cwd=ROOT,
            env={**os.environ, VARIABLE: encode_config(config)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self._processes[name]

    def signal(self, name: str, number: Signals) -> None:
        """A signal for all of a node's processes."""
        os.killpg(self._processes[name].pid, number)

    def kill(self, name: str) -> str:
        """SIGKILL for the node's processes, as for a container. What they had written to standard error."""
        process = self._processes.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, SIGKILL)
        _, log = process.communicate()
        return log

    async def control(self, name: str, token: str = TOKEN, *, acknowledges: bool = True) -> "Control":
        """A control channel to that node, which need not listen yet."""
        reader, writer = await self.dialled(self.control_ports[name])
        writer.write(encode_frame(Open(token)))
        return Control(reader, writer, acknowledges=acknowledges)

    async def ready(self, *names: str) -> "list[Control]":
        """The control channels of these nodes, which are started."""
        for name in names:
            self.start(name)
        controls = [await self.control(name) for name in names]
        for control in controls:
            await control.first(Ready)
        return controls

    async def returned(self, name: str) -> "Control":
        """The control channel of the next life of a node that is ending."""
        while True:
            control = await self.control(name)
            if await control.is_served():
                return control

    async def client(self, name: str, address: str = "client-1", number: int = 0) -> "Client":
        """A client's connection to that node."""
        reader, writer = await self.dialled(self.ports[name])
        writer.write(encode_frame(Hello(NodeId(address), 0, number)))
        frames = Frames(reader, DATA_MAX)
        decode_as(WELCOME, await frames.take())
        return Client(frames, writer, self.codec)

    async def dialled(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to that port, as soon as somebody listens."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                reader, writer = await asyncio.open_connection(HOST, port)
            except ConnectionError:
                assert time.monotonic() < deadline, "nobody ever listened"
                await asyncio.sleep(0.01)
            else:
                self._connections.append(writer)
                return reader, writer


def run(
    folder: Path,
    scenario: Callable[[Nodes], Awaitable[None]],
    names: Sequence[str] = ("a", "b"),
    cluster: str = SCRIPTED,
) -> None:
    """Carry out a scenario with nodes of those names; their processes end with it."""

    async def with_nodes() -> None:
        async with Nodes(folder, names, cluster) as nodes:
            await scenario(nodes)

    asyncio.run(with_nodes())


class Frames:
    """The frames that arrive on a connection."""

    def __init__(self, reader: asyncio.StreamReader, limit: int) -> None:
        self._reader, self._splitter = reader, Splitter(limit)

    async def take(self) -> bytes:
        """The next; raises EOFError when the connection has ended."""
        while (payload := self._splitter.take()) is None:
            received = await asyncio.wait_for(self._reader.read(1 << 16), PATIENCE_S)
            if not received:
                raise EOFError
            self._splitter.feed(received)
        return payload


class Control:
    """The harness's end: keeps all that it is told, acknowledges evidence unless told not to."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, acknowledges: bool = True
    ) -> None:
        self.told: list[FromNode] = []
        self.has_ended = False
        self.acknowledges = acknowledges
        self._reader, self._writer = reader, writer
        self._task = asyncio.get_running_loop().create_task(self._listen())

    def tell(self, message: Message) -> None:
        self._writer.write(encode_frame(message))

    async def first(self, kind: type[T], number: int = 1) -> T:
        """The first message of that type (or the nth), as soon as it is there."""

        def found() -> T | None:
            told = next(iter([each for each in self.told if isinstance(each, kind)][number - 1 :]), None)
            assert told or not self.has_ended, f"the connection has ended after {self.told}"
            return told

        return await until(found)

    async def is_served(self) -> bool:
        """Whether the node says anything before it goes."""
        await until(lambda: self.told or self.has_ended)
        return bool(self.told)

    async def carried_out(self, *orders: Message) -> None:
        """Give orders, and wait until they are obeyed."""
        for order in orders:
            self.tell(order)
        await self.counters()

    async def counters(self) -> Counters:
        """What the node has counted by now."""
        asked = len([each for each in self.told if isinstance(each, Counters)]) + 1
        self.tell(AskCounters(asked))
        return await self.first(Counters, asked)

    def items(self) -> list[Item]:
        """All evidence."""
        return [item for each in self.told if isinstance(each, Evidence) for item in each.items]

    def delivered(self) -> list[object]:
        """What was delivered."""
        return [item.delivery.value for item in self.items() if isinstance(item, Delivered)]

    def close(self) -> None:
        self._task.cancel()
        self._writer.transport.abort()

    async def _listen(self) -> None:
        splitter = Splitter(CONTROL_MAX)
        try:
            while received := await self._reader.read(1 << 16):
                splitter.feed(received)
                while (payload := splitter.take()) is not None:
                    message = decode_as(FROM_NODE, payload)
                    self.told.append(message)
                    if self.acknowledges and isinstance(message, Evidence):
                        self.tell(Acknowledge(message.sequence))
        except ConnectionError:
            pass
        self.has_ended = True


class Client:
    """A client's connection."""

    def __init__(self, frames: Frames, writer: asyncio.StreamWriter, codec: Codec) -> None:
        self._frames, self._writer, self._codec = frames, writer, codec
        self._number = 0

    def ask(self, body: Message) -> None:
        """A call whose answer nobody waits for yet."""
        self._number += 1
        self._writer.write(encode_frame(Call(self._number, body)))

    async def answer(self) -> Message:
        """The next answer."""
        answer = self._codec.decode(await self._frames.take())
        assert isinstance(answer, Answer)
        return answer.body

    async def call(self, body: Message) -> Message:
        self.ask(body)
        return await self.answer()

    async def do(self, *steps: Step) -> Message:
        """Let the machine carry these out; it must answer."""
        return await self.call(Do(steps))

    def begin(self, *steps: Step) -> None:
        """Let the machine carry these out."""
        self.ask(Do(steps))

    async def seen(self) -> Seen:
        seen = await self.call(Ask())
        assert isinstance(seen, Seen)
        return seen

    async def sees(self, *events: str) -> Seen:
        """What the machine has seen, as soon as these are among it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            seen = await self.seen()
            if all(event in seen.events for event in events):
                return seen
            assert time.monotonic() < deadline, f"not all of {events} among {seen.events}"
            await asyncio.sleep(0.005)

    def close(self) -> None:
        self._writer.transport.abort()


def step(what: str, name: str = "", number: int = 0) -> Step:
    """One step."""
    return Step(what, name, number)


ANSWER = Step("answer")
