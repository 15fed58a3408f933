"""Steps of a fault plan in force: the actions of each kind on paths and nodes, their undoing, and their counts."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from harness.runtimes.simulation.clocks import ClockFault
from harness.runtimes.simulation.disk import CrashMode
from harness.runtimes.simulation.host import Host
from harness.runtimes.simulation.links.paths import Condition, Path
from harness.runtimes.simulation.loop import VirtualLoop
from nemesis.plan import DatagramFault, Effect, LinkFault, Step

_SECOND_NS: Final = 1_000_000_000
_DONE_TO_MESSAGES: Final[dict[LinkFault | DatagramFault, str]] = {
    "cut": "connections closed, messages refused or lost",
    "reset": "connections reset, messages refused or lost",
    "stall": "messages held back",
    "delay": "messages delayed",
    "bandwidth": "messages held back",
    "limit-data": "connections closed",
    "drop": "messages lost",
    "duplicate": "messages doubled",
    "reorder": "reordered messages",
}


class Struck(Protocol):
    """One step in force. It begins when it is created."""

    def end(self) -> None:
        """Undo the step. A second call does nothing."""

    def effect(self) -> Effect:
        """The effect so far."""


class OnPaths:
    """Conditions on paths: cut, reset, stall, delay, bandwidth, limit-data, drop, duplicate, reorder."""

    def __init__(self, fault: LinkFault | DatagramFault, step: Step, paths: Sequence[Path]) -> None:
        self._fault = fault
        args = {name: int(value) for name, value in step.args.items()}
        self._conditions = [(path, Condition(fault=fault, **args)) for path in paths]
        for path, condition in self._conditions:
            path.begin(condition)

    def end(self) -> None:
        for path, condition in self._conditions:
            path.end(condition)

    def effect(self) -> Effect:
        count = sum(condition.touched for _, condition in self._conditions)
        return Effect(count, f"{count} {_DONE_TO_MESSAGES[self._fault]}")


class Crash:
    """A step that takes nodes down, at once or one at a failpoint, and starts them at its end."""

    def __init__(self, step: Step, hosts: Sequence[Host], loop: VirtualLoop) -> None:
        self._mode = msgspec.convert(step.args.get("disk", "lost"), CrashMode)
        self._down: list[str] = []
        self._lost = 0
        self._strikes = _Strikes(step, hosts, loop, self._strike)

    def end(self) -> None:
        for host in self._strikes.end():
            host.restart(self)

    def effect(self) -> Effect:
        went = f"{', '.join(self._down)} went down" if self._down else "no node went down"
        return Effect(len(self._down), f"{went}, {self._lost} unsynced writes lost")

    def _strike(self, host: Host) -> None:
        lost = host.crash(self, self._mode)
        if lost is not None:
            self._down.append(host.node)
            self._lost += lost


class Pause:
    """A step that pauses nodes, at once or one from a failpoint on, until its end."""

    def __init__(self, step: Step, hosts: Sequence[Host], loop: VirtualLoop) -> None:
        self._deferred = _Gauge(lambda host: host.deferred)
        self._strikes = _Strikes(step, hosts, loop, self._strike)

    def end(self) -> None:
        self._deferred.stop()
        for host in self._strikes.end():
            host.resume(self)

    def effect(self) -> Effect:
        count = self._deferred.read()
        return Effect(count, f"{count} events had to wait")

    def _strike(self, host: Host) -> None:
        if host.pause(self):
            self._deferred.start(host)


class Consumer:
    """A step that makes nodes slow in handling each message."""

    def __init__(self, step: Step, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._delayed = _Gauge(lambda host: host.delayed)
        for host in hosts:
            host.slow_down(self, int(step.args["delay_ns"]))
            self._delayed.start(host)

    def end(self) -> None:
        self._delayed.stop()
        for host in self._hosts:
            host.speed_up(self)

    def effect(self) -> Effect:
        count = self._delayed.read()
        return Effect(count, f"{count} messages took longer")


class OnClocks:
    """A step that makes clocks of nodes step, drift or freeze."""

    def __init__(self, step: Step, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._fault = ClockFault(
            step_ns=int(step.args.get("step_ns", 0)),
            drift_ppm=int(step.args.get("drift_ppm", 0)),
            is_frozen=bool(step.args.get("freeze", 0)),
        )
        for host in hosts:
            host.clock.begin(self._fault, host.now_ns())

    def end(self) -> None:
        for host in self._hosts:
            host.clock.end(self._fault, host.now_ns())

    def effect(self) -> Effect:
        count, worst_s = self._fault.wrong_readings, self._fault.error_ns_max / _SECOND_NS
        return Effect(count, f"{count} readings of a clock that was up to {worst_s:.3g} s wrong")


class _Strikes:
    """The strikes of a step: on all nodes at once; or, if it names a failpoint, only on the first node that reaches
    it.

    If none has reached it by half of the step's window, the first node is struck then.
    """

    def __init__(self, step: Step, hosts: Sequence[Host], loop: VirtualLoop, strike: Callable[[Host], None]) -> None:
        self._hosts, self._strike = hosts, strike
        self._armed: list[tuple[Host, str, Callable[[], None]]] = []
        point = step.args.get("point")
        if point is None:
            for host in hosts:
                strike(host)
        else:
            for host in hosts:
                self._arm(host, str(point))
            loop.schedule(loop.now_ns + (step.until_ns - step.at_ns) // 2, self._strike_anyway, hosts[0])

    def end(self) -> Sequence[Host]:
        """Stop striking; returns the nodes."""
        for host, point, strike_here in self._armed:
            host.disarm(point, strike_here)
        self._armed.clear()
        return self._hosts

    def _arm(self, host: Host, point: str) -> None:
        def strike_here() -> None:
            self.end()
            self._strike(host)

        host.arm(point, strike_here)
        self._armed.append((host, point, strike_here))

    def _strike_anyway(self, host: Host) -> None:
        if self._armed:
            self.end()
            self._strike(host)


class _Gauge:
    """The growth of counts on some hosts, each since its own start, up to a common stop."""

    def __init__(self, count: Callable[[Host], int]) -> None:
        self._count = count
        self._starts: list[tuple[Host, int]] = []
        self._final: int | None = None

    def start(self, host: Host) -> None:
        self._starts.append((host, self._count(host)))

    def stop(self) -> None:
        self._final = self.read()

    def read(self) -> int:
        if self._final is not None:
            return self._final
        return sum(self._count(host) - start for host, start in self._starts)
