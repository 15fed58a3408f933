"""Runs one machine: gives it events one at a time, and carries out its effects. It is the simulation's host over TCP.

Theory of operation.
1. A node handles one event to its end before the next; others wait in its inbox in order. The inbox is bounded by its
   sources: WINDOW messages of each connection, one event for each timer, sync and connection.
2. Effects are carried out in order once `handle` has returned. They stop where they must wait: at a send, a write, or
   the end of the process, while its evidence is not acknowledged (outbox.py); and at an armed failpoint, until its
   release. Meanwhile nothing else is handled; connections stay open, and the control channel is served.
3. Writes of a machine are carried out at once, and synced in a thread, in order. A full or broken disk ends the
   process: its supervisor starts it again.
4. An exception of a machine, or of this host, is a bug: it is reported as `Failed`, and nothing more is handled.
"""

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from harness.core.draw import Draw, Stream
from harness.core.effects import CollectingContext
from harness.core.machine import (
    Closed,
    Delivery,
    Drained,
    Dump,
    Event,
    Machine,
    Message,
    NodeId,
    Randomness,
    Received,
    Synced,
    TimerFired,
)
from harness.core.seams import MachineCluster
from harness.runtimes.host.channel import Channel
from harness.runtimes.host.config import NodeConfig
from harness.runtimes.host.control import (
    Counters,
    Delivered,
    Dumped,
    Failed,
    FromHarness,
    Probed,
    ProbeFailed,
    ProbeSeen,
    Ready,
    Stated,
)
from harness.runtimes.host.frames import Codec, Hello
from harness.runtimes.host.links import Links, Unread
from harness.runtimes.host.orders import Failpoints, obey
from harness.runtimes.host.outbox import Outbox
from harness.runtimes.host.pipes import Pipe
from harness.runtimes.host.storage import Storage, StorageDamaged
from harness.runtimes.host.syncs import Syncs

_BURST: Final = 64  # Events that are handled before connections are served again.
_TEXT_MAX: Final = 2000
DISK_FAILED: Final = 74  # Events handled before connections are served again.


class _MustWait(Exception):
    """An effect, and those after it, cannot be carried out yet."""


class _Frozen(Exception):
    """A failpoint was reached: the effects after it must wait."""


class Host:
    """One life of a node. `leave(exit code, after_ns)` ends the process; the next life starts `after_ns` later."""

    def __init__(
        self, config: NodeConfig, cluster: MachineCluster, codec: Codec, leave: Callable[[int, int | None], None]
    ) -> None:
        self.node = config.node
        self.failpoints = Failpoints()
        self.delay_ns = 0  # The time that a consumer delay adds to each message.
        self._config, self._cluster, self._codec, self._leave = config, cluster, codec, leave
        self._loop = asyncio.get_running_loop()
        self._storage = Storage(Path(config.folder))
        self._draw = Draw(config.seed)
        self.channel = Channel(self, config.token)
        self.outbox = Outbox(self._storage.life, self.channel.write, self.now_ns)
        hello = Hello(config.node, self._storage.life)
        self.links = Links(hello, config.peers, self, codec, self._stream("dial"))
        self._syncs = Syncs(self._storage, self._synced, self._disk_failed)
        self._context = CollectingContext(config.node, self)
        self._effects = self._context.effects
        self._machine: Machine | None = None  # None until it has recovered.
        self._inbox: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._is_pumping = False
        self._is_working = False  # The timer of the first event in the inbox, during the consumer delay.
        self._failure: str | None = None
        self._timers: dict[str, tuple[int, asyncio.TimerHandle]] = {}
        self._last_timer = 0
        self._ready: Ready | None = None
        self._handled = self._unexpected = self._deferred = self._delayed = 0
        self._goals: dict[str, int] = {}

    async def start(self) -> None:
        """Recover, and begin to handle events. Failures of the machine or its files are reported as `Failed`."""
        self._loop.set_exception_handler(self._went_wrong)
        await self.channel.listen(self._config.listen_host, self._config.control_port)
        try:
            durable, lost = self._storage.recover(self._codec, self._stream("storage"))
        except StorageDamaged as error:
            self.fail(str(error))
            return
        machine = self._cluster.machine(self.node)
        try:
            machine.recover(durable, self._config.settings, self._context)
        except Exception as error:  # noqa: BLE001  Whatever the error, the machine has a bug.
            self.fail(f"recover: {error!r}")
            return
        await self.links.listen(self._config.listen_host, self._config.listen_port)
        self._machine = machine
        self._ready = Ready(self.node, self._storage.life, lost)
        self.channel.tell(self._ready)
        self._carry_out()
        self.pump()

    def fail(self, text: str) -> None:
        """Report a bug to the harness, and handle nothing more."""
        if self._failure is None:
            self._failure = f"node {self.node}, at {self.now_ns()} ns: {text[:_TEXT_MAX]}"
            print(self._failure, file=sys.stderr, flush=True)  # noqa: T201  The log of a container.
            self.channel.tell(Failed(self._failure))

    def counters(self, number: int) -> Counters:
        """The counts of this life."""
        return Counters(
            number=number,
            handled=self._handled,
            unexpected=self._unexpected,
            delayed=self._delayed,
            goals=dict(self._goals),
            links=self.links.counters(),
            deferred=self._deferred,
            bad_frames=self.links.bad_frames + self.channel.bad_frames,
        )

    def resume(self) -> None:
        """Continue with effects and events: the condition that they wait for may hold now."""
        if self._effects and self.failpoints.frozen is None:
            self._carry_out()
        self.pump()

    # Calls from the control channel.

    def opened(self) -> None:
        if self._ready is not None:
            self.channel.tell(self._ready)
        self.outbox.send_again()
        if self.failpoints.frozen is not None:
            self.channel.tell(self.failpoints.frozen)
        if self._failure is not None:
            self.channel.tell(Failed(self._failure))

    def commanded(self, message: FromHarness) -> None:
        obey(self, message)

    # Calls from links.

    def receive(self, source: NodeId, pipe: Unread, message: Message) -> None:
        self.post(self._take_message, (source, pipe, message))

    def closed(self, peer: NodeId, ended: tuple[Pipe, ...]) -> None:
        self.post(self._take_closed, (peer, ended))

    def drained(self, peer: NodeId) -> None:
        self.post(self._handle, Drained(peer))

    def probe_seen(self, source: NodeId, nonce: int) -> None:
        self.channel.tell(ProbeSeen(source, nonce))

    def probe_failed(self, to: NodeId, nonce: int, reason: str) -> None:
        self.channel.tell(ProbeFailed(to, nonce, reason))

    # Events, one at a time.

    def post(self, take: Callable[[Any], None], what: object) -> None:
        """Queue an event for `take`."""
        self._inbox.append((take, what))
        self._deferred += self.failpoints.frozen is not None
        self.pump()

    def pump(self) -> None:
        """Handle waiting events until the node must wait."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            for _ in range(_BURST):
                if not self._may_handle():
                    return
                if self.delay_ns and self._inbox[0][0] == self._take_message:
                    self._is_working = True
                    self._delayed += 1
                    self._loop.call_later(self.delay_ns / 1e9, self._finish)
                    return
                take, what = self._inbox.popleft()
                take(what)
            self._loop.call_soon(self.pump)
        finally:
            self._is_pumping = False

    def _may_handle(self) -> bool:
        return (
            bool(self._inbox)
            and not self._effects
            and not self._is_working
            and self._machine is not None
            and self._failure is None
            and self.failpoints.frozen is None
            and not self.outbox.is_full
        )

    def _finish(self) -> None:
        """Handle the first message after its consumer delay."""
        self._is_working = False
        if self._may_handle():
            take, what = self._inbox.popleft()
            take(what)
            self.pump()

    def _take_message(self, arrived: tuple[NodeId, Unread, Message]) -> None:
        source, pipe, message = arrived
        self._handle(Received(source, message))
        pipe.consumed()

    def _take_closed(self, news: tuple[NodeId, tuple[Pipe, ...]]) -> None:
        peer, ended = news
        for pipe in ended:
            self.links.forget(pipe)
        self._handle(Closed(peer))

    def _take_timer(self, timer: tuple[str, int]) -> None:
        name, number = timer
        if self._timers.get(name, (0, None))[0] == number:  # Else it was cancelled, or set again, while it waited.
            del self._timers[name]
            self._handle(TimerFired(name))

    def _handle(self, event: Event) -> None:
        assert self._machine is not None
        self._handled += 1
        try:
            self._machine.handle(event, self._context)
        except Exception as error:  # noqa: BLE001  Whatever the error, the machine has a bug.
            self.fail(f"{error!r} on {event!r}")
            return
        if self._effects:
            self._carry_out()

    def take_dump(self, number: int) -> None:
        """Make the machine dump its state, and report when all of it is sent."""
        assert self._machine is not None
        try:
            self._machine.dump(self._context)
        except Exception as error:  # noqa: BLE001  Whatever the error, the machine has a bug.
            self.fail(f"dump: {error!r}")
            return
        self._carry_out()
        self.channel.tell(Dumped(number))

    def _carry_out(self) -> None:
        """Carry out effects, as far as allowed (2)."""
        done = 0
        try:
            for effect, first, second in self._effects:
                effect(first, second)
                done += 1
            self.outbox.flush()
        except _MustWait:
            del self._effects[:done]
        except _Frozen:
            del self._effects[: done + 1]
        except OSError as error:
            self._disk_failed(error)
        except ValueError as error:
            self.fail(str(error))
        else:
            self._effects.clear()
        if not self._effects:
            self._context.to_send.clear()
        self.links.flush()

    def _synced(self, token: int) -> None:
        self.post(self._handle, Synced(token))

    def _disk_failed(self, error: OSError) -> None:
        print(f"node {self.node}: the disk: {error}", file=sys.stderr, flush=True)  # noqa: T201
        self._leave(DISK_FAILED, None)

    def _went_wrong(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.fail(f"the host: {context.get('exception')!r}: {context['message']}")

    def _stream(self, name: str) -> Stream:
        return self._draw.stream(f"node/{self.node}/{self._storage.life}/{name}")

    # Calls from the machine: `Actions`.

    def now_ns(self) -> int:
        return time.monotonic_ns() - self._config.epoch_ns

    def local_clock_ns(self) -> int:
        return time.time_ns() - self._config.epoch_realtime_ns

    def draw(self, name: str) -> Randomness:
        return self._stream(name)

    def queued(self, to: NodeId, to_come: int) -> int:
        return self.links.queued(to, to_come)

    def count_unexpected(self) -> None:
        self._unexpected += 1

    def transmit(self, to: NodeId, message: Message) -> None:
        self._wait_for_evidence()
        self.links.send(to, message)

    def start_timer(self, name: str, after_ns: int) -> None:
        self.stop_timer(name, None)
        self._last_timer += 1
        timer = (name, self._last_timer)
        self._timers[name] = (self._last_timer, self._loop.call_later(max(0, after_ns) / 1e9, self._fire, timer))

    def _fire(self, timer: tuple[str, int]) -> None:
        self.post(self._take_timer, timer)

    def stop_timer(self, name: str, _: None) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer[1].cancel()

    def write_append(self, log: str, record: Message) -> None:
        self._wait_for_evidence()
        self._storage.append(log, record)

    def write_truncate(self, log: str, index: int) -> None:
        self._wait_for_evidence()
        self._storage.truncate(log, index)

    def write_put(self, key: str, value: Message) -> None:
        self._wait_for_evidence()
        self._storage.put(key, value)

    def start_sync(self, token: int, _: None) -> None:
        self._wait_for_evidence()
        self._syncs.ask(token)

    def record_delivery(self, delivery: Delivery, _: None) -> None:
        self.outbox.add(Delivered(delivery))

    def record_probe(self, name: str, value: int) -> None:
        self.outbox.add(Probed(name, value))

    def record_state(self, state: Dump, _: None) -> None:
        self.outbox.add(Stated(state))

    def end_process(self, after_ns: int, _: None) -> None:
        self._wait_for_evidence()
        self.links.flush()
        self.channel.tell(self.counters(0))
        self._leave(0, after_ns)

    def reach_goal(self, goal: str, _: None) -> None:
        self._goals[goal] = self._goals.get(goal, 0) + 1

    def reach_point(self, name: str, _: None) -> None:
        self.reach_goal(f"point:{name}", None)
        reached = self.failpoints.reach(name)
        if reached is not None:
            self.outbox.flush()
            self.channel.tell(reached)
            raise _Frozen

    def _wait_for_evidence(self) -> None:
        if not self.outbox.is_settled:
            self.outbox.flush()
            raise _MustWait
