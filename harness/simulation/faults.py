"""Carries a fault plan out in the simulation, and says how much each step did.

1. Steps may overlap: a path is cut, a node is down or paused, as long as one of them is in force.
2. What a step did is counted where it is felt: by the message that is held back, by the event that has to wait. A
   crash counts the nodes that were up and went down. The count stays readable after the step was undone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.simulation.host import Host
from harness.simulation.links import FIFO, Links
from harness.simulation.loop import VirtualLoop
from harness.simulation.paths import CLIENT
from harness.simulation.struck import Consumer, Crash, OnClocks, OnPaths, Pause, Struck
from nemesis.plan import Effect, Step

_DATAGRAM_ONLY: Final = ("drop", "duplicate", "reorder")
_DISK_MODES: Final = ("lost", "torn", "kept")
_PPM_MIN: Final = -1_000_000  # A clock does not run backwards.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What a kind of fault is aimed at, and the arguments that it must and may have."""

    is_on_links: bool
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


_KINDS: Final[Mapping[str, _Kind]] = {
    "cut": _Kind(is_on_links=True),
    "stall": _Kind(is_on_links=True),
    "delay": _Kind(is_on_links=True, takes=("latency_ns", "jitter_ns")),
    "bandwidth": _Kind(is_on_links=True, needs=("bytes_per_s",)),
    "drop": _Kind(is_on_links=True, needs=("permille",)),
    "duplicate": _Kind(is_on_links=True, needs=("permille",)),
    "reorder": _Kind(is_on_links=True, needs=("permille",)),
    "crash": _Kind(is_on_links=False, takes=("disk", "point")),
    "pause": _Kind(is_on_links=False, takes=("point",)),
    "consumer": _Kind(is_on_links=False, needs=("delay_ns",)),
    "clock": _Kind(is_on_links=False, takes=("step_ns", "drift_ppm", "freeze")),
}
_LEAST: Final[Mapping[str, int]] = {
    "latency_ns": 0,
    "jitter_ns": 0,
    "bytes_per_s": 1,
    "permille": 0,
    "delay_ns": 0,
    "drift_ppm": _PPM_MIN,
}


class Faults:
    """The `FaultRuntime` of the simulation."""

    def __init__(self, loop: VirtualLoop, links: Links, hosts: Mapping[NodeId, Host], points: tuple[str, ...]) -> None:
        self._loop, self._links, self._hosts, self._points = loop, links, hosts, points
        self._struck: list[tuple[Step, Struck]] = []  # All of the run, in order of application.
        self._in_force: list[tuple[Step, Struck]] = []

    def refusal(self, step: Step) -> str | None:
        """Why the simulation cannot do that step, in one line, or None."""
        kind = _KINDS.get(step.fault)
        if kind is None:
            return f"unknown fault {step.fault!r}: the simulation has {', '.join(_KINDS)}"
        problem = self._bad_targets(step, kind) or self._bad_args(step, kind)
        return f"{step.fault} at {step.at_ns} ns: {problem}" if problem else None

    async def apply(self, step: Step) -> None:
        """Bring the fault about. Raises ScenarioError if the simulation refuses it."""
        refusal = self.refusal(step)
        if refusal is not None:
            raise ScenarioError(refusal)
        entry = (step, self._strike(step))
        self._struck.append(entry)
        self._in_force.append(entry)

    async def undo(self, step: Step) -> None:
        """Heal it. Nothing happens if it is healed already. Of equal steps the last applied is undone first."""
        for entry in reversed(self._in_force):
            if entry[0] == step:
                self._in_force.remove(entry)
                entry[1].end()
                return

    async def effect(self, step: Step) -> Effect:
        """What it did since it was applied. Of equal steps the last applied answers."""
        for applied, struck in reversed(self._struck):
            if applied == step:
                return struck.effect()
        return Effect(0, "it was never applied")

    def _strike(self, step: Step) -> Struck:
        if _KINDS[step.fault].is_on_links:
            return OnPaths(step, [self._links.path(*_ends(target)) for target in step.targets])
        hosts = [self._hosts[NodeId(target)] for target in step.targets]
        match step.fault:
            case "crash":
                return Crash(step, hosts, self._loop)
            case "pause":
                return Pause(step, hosts, self._loop)
            case "consumer":
                return Consumer(step, hosts)
            case _:
                return OnClocks(step, hosts)

    def _bad_targets(self, step: Step, kind: _Kind) -> str | None:
        if not step.targets:
            return "it has no targets"
        if len(dict.fromkeys(step.targets)) < len(step.targets):
            return f"the same target twice in {', '.join(step.targets)}"
        if step.until_ns < step.at_ns:
            return f"it ends at {step.until_ns} ns, before it begins"
        problems = (
            self._bad_link(step, target) if kind.is_on_links else self._bad_node(target) for target in step.targets
        )
        return next((problem for problem in problems if problem), None)

    def _bad_node(self, target: str) -> str | None:
        if target in self._hosts:
            return None
        return f"no node {target!r}: there are {', '.join(self._hosts)}"

    def _bad_link(self, step: Step, target: str) -> str | None:
        source, arrow, other = target.partition(">")
        if not arrow or source == other:
            return f"{target!r} is no link: write it as source>target"
        for end in (source, other):
            if end != CLIENT and end not in self._hosts:
                return f"no node {end!r} in {target!r}: there are {', '.join(self._hosts)}, and {CLIENT}"
        if step.fault in _DATAGRAM_ONLY and self._links.kind(source, other) == FIFO:
            return f"{target} is a fifo link, which cannot {step.fault}: use delay, stall or cut"
        return None

    def _bad_args(self, step: Step, kind: _Kind) -> str | None:
        known = kind.needs + kind.takes
        for name in step.args:
            if name not in known:
                return f"unknown argument {name!r}: it takes {', '.join(known) or 'none'}"
        for name in kind.needs:
            if name not in step.args:
                return f"it needs the argument {name!r}"
        problems = (self._bad_arg(name, value) for name, value in step.args.items())
        return next((problem for problem in problems if problem), None)

    def _bad_arg(self, name: str, value: int | str) -> str | None:
        if name == "disk":
            return None if value in _DISK_MODES else f"disk is {value!r}: choose {', '.join(_DISK_MODES)}"
        if name == "point":
            return None if value in self._points else f"no failpoint {value!r}: there are {', '.join(self._points)}"
        if not isinstance(value, int):
            return f"{name} is {value!r}: it must be an integer"
        if name in _LEAST and value < _LEAST[name]:
            return f"{name} is {value}: it must be at least {_LEAST[name]}"
        if name == "permille" and value > 1000:
            return f"{name} is {value}: it must be at most 1000"
        return None


def _ends(target: str) -> tuple[str, str]:
    source, _, other = target.partition(">")
    return source, other
