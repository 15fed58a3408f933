"""Runs one machine: gives it events one at a time, and carries out its effects.

Theory of operation.
1. A node handles one event to its end before the next. While it is busy, slow or paused, events wait in its inbox in
   order; a crash empties it. The inbox is bounded by its sources: WINDOW messages of each connection, one event for
   each timer, sync and connection.
2. Effects are carried out in order once `handle` has returned. They stop at a failpoint that a fault has armed: a
   crash drops the rest, a pause carries it out at its end.
3. A crash loses the machine, its timers, its connections, and unsynced writes; a start makes a new machine from the
   content of the disk. Messages in transit to an earlier life never reach a later one. The parts of a machine may refer
   to each other: then the garbage collector frees it, with all its rows, and must be on during a run.
4. An exception of a machine is a bug of the cluster or of ours, never of the system modelled: it ends the run.
"""

import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from harness.core.draw import Draw
from harness.core.effects import CollectingContext, Effect
from harness.core.errors import SeamarkError
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
    Settings,
    Synced,
    TimerFired,
)
from harness.core.record import Evidence, Probe
from harness.core.shown import state, stream_event
from harness.runtimes.simulation.clocks import LocalClock
from harness.runtimes.simulation.disk import CrashMode, Disk
from harness.runtimes.simulation.links.fifo import Fifo, Unread
from harness.runtimes.simulation.links.links import Links
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.tracer import Tracer

_SKEW_NS_MAX = 1_000_000  # The largest difference between well-kept clocks.
_EVENT_TEXT_MAX = 120


class MachineFailed(SeamarkError):
    """A machine raised an exception; the message names the node, the event, the time and the line."""


class _Interrupted(Exception):
    """A fault struck at a failpoint, or the process ended: later effects must wait, or are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects that all hosts of a run share."""

    loop: VirtualLoop
    links: Links
    draw: Draw
    settings: Settings
    make_machine: Callable[[NodeId], Machine]
    record: Callable[[Evidence], None]
    tracer: Tracer | None = None
    reached: Callable[[NodeId, str], None] | None = None  # Called with each goal and failpoint as it is reached.


class Host:
    """One node: its machine, disk, clock and port. Counts are for the whole run."""

    _machine: Machine
    transmit: Callable[[NodeId, Message], object]

    def __init__(self, node: NodeId, around: Surroundings) -> None:
        self.node = node
        self.is_up = False
        stream = around.draw.stream(f"disk/{node}")
        self.disk = Disk(stream) if around.tracer is None else around.tracer.disk(node, stream)
        self.clock = LocalClock(around.draw.stream(f"clock/{node}").below(_SKEW_NS_MAX))
        self.handled = 0
        self.unexpected = 0
        self.deferred = 0  # Events that arrived while the node was paused.
        self.delayed = 0  # Messages delayed by a consumer delay.
        self.goals: dict[str, int] = {}
        self._around, self._loop = around, around.loop
        self._port = around.links.attach(node, self)
        self.transmit = self._port.send
        self._context = CollectingContext(node, self)
        self._effects = self._context.effects
        self._suspended: list[Effect] = []  # Effects kept by a pause at a failpoint.
        self._inbox: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._life = 0
        self._is_free = False  # True if an event is handled at once.
        self._is_working = False  # The timer of the first event in the inbox, during the consumer delay.
        self._crashes: list[object] = []
        self._pauses: list[object] = []
        self._delays: dict[object, int] = {}
        self._armed: dict[str, list[Callable[[], None]]] = {}
        self._timers: dict[str, int] = {}
        self._last_timer = 0
        self._delivered: dict[int, int] = {}  # The number of events of each session so far.

    def __repr__(self) -> str:
        return f"node {self.node}"

    # Calls from faults.

    def start(self) -> None:
        """Create a machine, which recovers from the disk."""
        self.is_up = True
        self._around.links.bring_up(self._port)
        self._machine = self._around.make_machine(self.node)
        self._refresh()
        try:
            self._machine.recover(self.disk, self._around.settings, self._context)
        except Exception as error:
            raise self._failure("recover", error) from error
        self._carry_out()

    def crash(self, hold: object, mode: CrashMode) -> int | None:
        """Crash the node until `hold` is released; returns the number of lost writes, or None if it was down."""
        self._crashes.append(hold)
        if not self.is_up:
            return None
        self.is_up = self._is_working = False
        self._life += 1
        self._inbox.clear()
        self._timers.clear()
        self._suspended.clear()
        self._pauses.clear()
        self._refresh()
        self._around.links.take_down(self._port)
        return self.disk.crash(mode)

    def restart(self, hold: object) -> None:
        """Release a crash: the node starts unless another crash keeps it down. Does nothing without that crash."""
        if hold in self._crashes:
            self._crashes.remove(hold)
            if not self._crashes:
                self.start()

    def pause(self, hold: object) -> bool:
        """Handle nothing until `hold` and all others are released, or the node crashes.

        Returns False if the node is down.
        """
        if self.is_up:
            self._pauses.append(hold)
            self._refresh()
            self._tell_tracer("pause")
        return self.is_up

    def resume(self, hold: object) -> None:
        """Release a pause. Does nothing if there is no such pause."""
        if hold in self._pauses:
            self._pauses.remove(hold)
            if not self._pauses:
                self._tell_tracer("resume")
                self._effects.extend(self._suspended)
                self._suspended.clear()
                self._carry_out()
                self._proceed()

    def _tell_tracer(self, what: Literal["pause", "resume"]) -> None:
        if self._around.tracer is not None:
            self._around.tracer.note(self.node, what)

    def slow_down(self, hold: object, delay_ns: int) -> None:
        """Take `delay_ns` longer for each message, until `hold` is released."""
        self._delays[hold] = delay_ns
        self._refresh()

    def speed_up(self, hold: object) -> None:
        """Release a delay. The current message still takes its time."""
        self._delays.pop(hold, None)
        self._proceed()

    def arm(self, point: str, strike: Callable[[], None]) -> None:
        """Call `strike` when the machine next reaches that failpoint."""
        self._armed.setdefault(point, []).append(strike)

    def disarm(self, point: str, strike: Callable[[], None]) -> None:
        """Cancel that, if it has not struck."""
        if strike in self._armed.get(point, ()):
            self._armed[point].remove(strike)

    def dump(self) -> None:
        """Record the machine's state; does nothing if the node is down."""
        if self.is_up:
            self._machine.dump(self._context)
            self._carry_out()

    # Calls from links.

    def receive(self, pipe: Unread, message: Message) -> None:
        if self._is_free:
            self._handle(Received(pipe.source, message))
            pipe.consumed()
        else:
            self._post(self._take_message, (pipe, message))

    def closed(self, peer: NodeId, ended: tuple[Fifo, ...]) -> None:
        self._post(self._take_closed, (peer, ended))

    def drained(self, peer: NodeId) -> None:
        self._post(self._handle, Drained(peer))

    # Events, one at a time.

    def _post(self, take: Callable[[Any], None], what: object) -> None:
        """Queue an event for the machine."""
        if not self.is_up:
            return
        if self._is_free:
            take(what)
            return
        self.deferred += bool(self._pauses)
        self._inbox.append((take, what))
        self._proceed()

    def _proceed(self) -> None:
        """Handle waiting events until the node must wait."""
        while self._inbox and not self._pauses and not self._is_working:
            if self._delays and self._inbox[0][0] == self._take_message:
                self._is_working = True
                self.delayed += 1
                self._loop.schedule(self._loop.now_ns + sum(self._delays.values()), self._finish, self._life)
            else:
                self._take_first()
        self._refresh()

    def _finish(self, life: int) -> None:
        """Handle the first message after its consumer delay. After a pause the delay starts again."""
        if life == self._life:
            self._is_working = False
            if not self._pauses:
                self._take_first()
            self._proceed()

    def _take_first(self) -> None:
        take, what = self._inbox.popleft()
        take(what)

    def _take_message(self, arrived: tuple[Unread, Message]) -> None:
        pipe, message = arrived
        self._handle(Received(pipe.source, message))
        pipe.consumed()

    def _take_timer(self, timer: tuple[str, int]) -> None:
        name, number = timer
        if self._timers.get(name) == number:  # Else it was cancelled, or set again, while it waited in the inbox.
            del self._timers[name]
            self._handle(TimerFired(name))

    def _take_closed(self, news: tuple[NodeId, tuple[Fifo, ...]]) -> None:
        peer, ended = news
        for pipe in ended:
            pipe.forget()
        self._handle(Closed(peer))

    def _refresh(self) -> None:
        self._is_free = self.is_up and not (self._pauses or self._delays or self._inbox or self._is_working)

    def _handle(self, event: Event) -> None:
        self.handled += 1
        try:
            self._machine.handle(event, self._context)
        except Exception as error:
            raise self._failure(repr(event), error) from error
        if self._effects:
            self._carry_out()

    def _failure(self, event: str, error: Exception) -> MachineFailed:
        shown = event if len(event) <= _EVENT_TEXT_MAX else f"{event[:_EVENT_TEXT_MAX]} ..."
        what = f"{type(error).__name__}: {error} at {self._loop.now_ns} ns, on {shown}"
        return MachineFailed(f"node {self.node} raised {what}{_place_in_machine(error)}")

    def _carry_out(self) -> None:
        effects: Iterator[Effect] = iter(self._effects)
        try:
            for effect, first, second in effects:
                effect(first, second)
        except _Interrupted:
            if self.is_up:
                self._suspended.extend(effects)
        self._effects.clear()
        self._context.to_send.clear()

    # Calls from the machine: `Actions`.

    def now_ns(self) -> int:
        return self._loop.now_ns

    def local_clock_ns(self) -> int:
        return self.clock.tell_ns(self._loop.now_ns)

    def draw(self, name: str) -> Randomness:
        return self._around.draw.stream(f"node/{self.node}/{name}")

    def queued(self, to: NodeId, to_come: int) -> int:
        return self._port.queued(to, to_come)

    def count_unexpected(self) -> None:
        self.unexpected += 1

    def start_timer(self, name: str, after_ns: int) -> None:
        self._last_timer += 1
        self._timers[name] = self._last_timer
        self._loop.schedule(self._loop.now_ns + max(0, after_ns), self._fire, (name, self._last_timer))

    def _fire(self, timer: tuple[str, int]) -> None:
        name, number = timer
        if self._timers.get(name) == number:
            self._post(self._take_timer, timer)

    def stop_timer(self, name: str, _: None) -> None:
        self._timers.pop(name, None)

    def write_append(self, log: str, record: Message) -> None:
        self.disk.append(log, record)

    def write_truncate(self, log: str, index: int) -> None:
        self.disk.truncate(log, index)

    def write_put(self, key: str, value: Message) -> None:
        self.disk.put(key, value)

    def start_sync(self, token: int, _: None) -> None:
        done_ns, upto = self.disk.begin_sync(self._loop.now_ns)
        self._loop.schedule(done_ns, self._complete_sync, (self._life, upto, token))

    def _complete_sync(self, sync: tuple[int, int, int]) -> None:
        life, upto, token = sync
        if life == self._life:
            self.disk.complete_sync(upto)
            self._post(self._handle, Synced(token))

    def record_delivery(self, delivery: Delivery, _: None) -> None:
        number = self._delivered.get(delivery.session, 0)
        self._delivered[delivery.session] = number + 1
        self._around.record(stream_event(self._loop.now_ns, self.node, number, delivery))

    def record_probe(self, name: str, value: int) -> None:
        self._around.record(Probe(self._loop.now_ns, self.node, name, value))

    def record_state(self, dump: Dump, _: None) -> None:
        self._around.record(state(self._loop.now_ns, self.node, dump))

    def end_process(self, after_ns: int, _: None) -> None:
        hold = object()
        self.crash(hold, "kept")
        self._loop.schedule(self._loop.now_ns + after_ns, self.restart, hold)
        raise _Interrupted

    def reach_goal(self, goal: str, _: None) -> None:
        self.goals[goal] = self.goals.get(goal, 0) + 1
        if self._around.reached is not None:
            self._around.reached(self.node, goal)

    def reach_point(self, name: str, _: None) -> None:
        self.reach_goal(f"point:{name}", None)
        armed = self._armed.get(name)
        if armed:
            armed.pop(0)()
            if not self.is_up or self._pauses:
                raise _Interrupted


def _place_in_machine(error: Exception) -> str:
    """The innermost place in the machine's package that the error passed; empty if its code was not reached."""
    _, *inside = traceback.walk_tb(error.__traceback__)  # The first frame is the host's, which called the machine.
    packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in inside]
    own = [each for each, package in zip(inside, packages, strict=True) if package == packages[0]]
    return f" (at {own[-1][0].f_code.co_filename}:{own[-1][1]})" if own else ""
