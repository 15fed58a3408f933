"""The harness's end of a node's control channel. It reconnects automatically while the node may be up."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.host.control import (
    FROM_NODE,
    Acknowledge,
    Arm,
    AskClocks,
    AskCounters,
    AskDump,
    Clocks,
    Counters,
    Disarm,
    Dumped,
    Evidence,
    Failed,
    FromHarness,
    FromNode,
    LinkCounters,
    Open,
    Probe,
    ProbeFailed,
    ProbeSeen,
    Reached,
    Ready,
    Release,
)
from harness.runtimes.host.frames import CONTROL_MAX, BadFrame, Splitter, decode_as, encode_frame

RETRY_S: Final = 0.02
ANSWER_S: Final = 20.0  # On a busy machine a node may wait long for the CPU.
READ_BYTES: Final = 1 << 16
A = TypeVar("A", Clocks, Counters, Dumped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearers:
    """The receivers of a node's reports. Once `take` returns, the evidence is recorded, and the node may continue."""

    take: Callable[[NodeId, Evidence], None]
    failed: Callable[[NodeId, str], None]
    probes: "Probes"


class Probes:
    """Probes in progress between nodes: sent by one, seen by another."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[str | None]] = {}

    @contextlib.contextmanager
    def expected(self) -> "Iterator[tuple[int, asyncio.Future[str | None]]]":
        """A nonce and a future for its outcome: None once it is seen, or the reason why it certainly will not be."""
        nonce = next(self._numbers)
        future = self._waiting[nonce] = asyncio.get_running_loop().create_future()
        try:
            yield nonce, future
        finally:
            del self._waiting[nonce]

    def ended(self, nonce: int, reason: str | None) -> None:
        """Note that a probe was seen, or failed for that reason. Outcomes that are not awaited are ignored."""
        future = self._waiting.get(nonce)
        if future is not None and not future.done():
            future.set_result(reason)


class ControlLink:
    """One node's control channel.

    It exists before the node runs; `at` sets the node's address, `away` marks it as down.
    """

    is_foreign = False
    serves_after_full_disk = True

    def __init__(self, node: NodeId, token: str, hearers: Hearers) -> None:
        self.node = node
        self.life = -1
        self.lost_records = 0  # Records lost by the disk in the last crash.
        self._token, self._hearers = token, hearers
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Clocks | Counters | Dumped]] = {}
        self._armed: dict[int, Callable[[], None]] = {}
        self._before = Counters(0, 0, 0, 0, {}, {})  # The counts of earlier lives.
        self._now = Counters(0, 0, 0, 0, {}, {})
        self._is_ready = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    def at(self, host: str, port: int) -> None:
        """Note that the node has started, and listens there."""
        self.away()
        self._task = asyncio.create_task(self._serve(host, port), name=f"control channel of {self.node}")

    def away(self) -> None:
        """Note that the node is down: stop connecting."""
        self._is_ready.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    @property
    def is_ready(self) -> bool:
        """True if the node is connected, so that it can answer."""
        return self._is_ready.is_set()

    async def ready(self, within_s: float) -> bool:
        """True if the node recovers and connects within that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._is_ready.wait()
        return self._is_ready.is_set()

    async def clocks(self) -> Clocks:
        """The readings of the node's clocks. Raises DeployError if it does not answer."""
        return await self._ask(AskClocks, Clocks)

    async def counters(self) -> Counters:
        """The node's counts over all its lives. Raises DeployError if it does not answer."""
        self._now = await self._ask(AskCounters, Counters)
        return self.total()

    async def dump(self) -> None:
        """Make the node record its state. Raises DeployError if it does not answer."""
        await self._ask(AskDump, Dumped)

    def total(self) -> Counters:
        """The node's counts over all its lives, as of the last query."""
        return _sum(self._before, self._now)

    def arm(self, point: str, reached: Callable[[], None]) -> int:
        """Make the node freeze when it next reaches that failpoint, and then call `reached`.

        Returns the order's number.
        """
        number = next(self._numbers)
        self._armed[number] = reached
        self.tell(Arm(number, point))
        return number

    def disarm(self, number: int) -> None:
        """Cancel the order, if the node has not reached the failpoint."""
        if self._armed.pop(number, None) is not None:
            self.tell(Disarm(number))

    def release(self, number: int) -> None:
        """Let the node continue."""
        self.tell(Release(number))

    def tell(self, message: FromHarness) -> None:
        """Send a message; it is lost if the node is not connected."""
        if self._writer is not None:
            self._writer.write(encode_frame(message, CONTROL_MAX))

    async def probe(self, to: NodeId, timeout_s: float) -> str | None:
        """None if a probe on the data path to that peer arrived in time, else the reason."""
        with self._hearers.probes.expected() as (nonce, arrival):
            self.tell(Probe(to, nonce))
            try:
                async with asyncio.timeout(timeout_s):
                    return await arrival
            except TimeoutError:
                return f"nothing arrived within {timeout_s * 1000:g} ms"

    async def _ask(self, question: type[AskClocks] | type[AskCounters] | type[AskDump], answer: type[A]) -> A:
        number = next(self._numbers)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self.tell(question(number))
            async with asyncio.timeout(ANSWER_S):
                reply = await future
        except TimeoutError:
            raise DeployError(f"node {self.node} does not answer on its control channel") from None
        finally:
            del self._answers[number]
        assert isinstance(reply, answer)  # Each kind of query has its kind of answer.
        return reply

    async def _serve(self, host: str, port: int) -> None:
        while True:
            with contextlib.suppress(OSError, BadFrame):
                reader, writer = await asyncio.open_connection(host, port)
                self._writer = writer
                try:
                    self.tell(Open(self._token))
                    await self._listen(reader)
                finally:
                    self._writer = None
                    self._is_ready.clear()
                    writer.transport.abort()
            await asyncio.sleep(RETRY_S)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        splitter = Splitter(CONTROL_MAX)
        while received := await reader.read(READ_BYTES):
            splitter.feed(received)
            while (payload := splitter.take()) is not None:
                self._hear(decode_as(FROM_NODE, payload))

    def _hear(self, message: FromNode) -> None:
        match message:
            case Ready(life=life, lost_records=lost):
                if life != self.life:
                    self.life, self.lost_records = life, lost
                    self._before, self._now = self.total(), Counters(0, 0, 0, 0, {}, {})
                self._is_ready.set()
            case Evidence(sequence=sequence):
                self._hearers.take(self.node, message)
                self.tell(Acknowledge(sequence))
            case Reached(number=number):
                reached = self._armed.pop(number, None)
                if reached is None:  # The failpoint was disarmed while this message was in transit.
                    self.release(number)
                else:
                    reached()
            case ProbeSeen(nonce=nonce):
                self._hearers.probes.ended(nonce, None)
            case ProbeFailed(nonce=nonce, reason=reason):
                self._hearers.probes.ended(nonce, reason)
            case Counters(number=0):
                self._now = message
            case Clocks() | Counters() | Dumped():
                waiting = self._answers.get(message.number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case Failed(text=text):
                self._hearers.failed(self.node, text)


def _sum(one: Counters, other: Counters) -> Counters:
    links = one.links | {
        peer: LinkCounters(
            *(
                a + b
                for a, b in zip(
                    msgspec.structs.astuple(one.links.get(peer, LinkCounters())),
                    msgspec.structs.astuple(each),
                    strict=True,
                )
            )
        )
        for peer, each in other.links.items()
    }
    return Counters(
        number=other.number,
        handled=one.handled + other.handled,
        unexpected=one.unexpected + other.unexpected,
        delayed=one.delayed + other.delayed,
        goals=one.goals | {goal: one.goals.get(goal, 0) + count for goal, count in other.goals.items()},
        links=links,
        deferred=one.deferred + other.deferred,
        bad_frames=one.bad_frames + other.bad_frames,
    )
