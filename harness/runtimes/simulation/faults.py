"""Carries out a fault plan in the simulation, and measures the effect of each step.

1. Steps may overlap: a path is cut, a node is down or paused, as long as one of them is in force.
2. The effect of a step is counted where it occurs: a message held back, an event that has to wait, a machine's reading
   of a wrong clock. A crash counts the nodes that were up and went down. The count stays readable after the step is
   undone.
"""

from collections.abc import Mapping
from typing import assert_never

from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.runtimes.simulation.host import Host
from harness.runtimes.simulation.links.links import Links
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.struck import Consumer, Crash, OnClocks, OnPaths, Pause, Struck
from nemesis.plan import Effect, Plan, Step
from nemesis.registry import FAULTS
from nemesis.topology import Topology, ends
from nemesis.validation import problems


class Faults:
    """The `FaultRuntime` of the simulation."""

    def __init__(self, loop: VirtualLoop, links: Links, hosts: Mapping[NodeId, Host], topology: Topology) -> None:
        self._loop, self._links, self._hosts, self._topology = loop, links, hosts, topology
        self._struck: list[tuple[Step, Struck]] = []  # All steps of the run, in order of application.
        self._in_force: list[tuple[Step, Struck]] = []

    def refusal(self, step: Step) -> str | None:
        """The reason why the simulation cannot do that step, in one line, or None."""
        found = problems(Plan(steps=(step,)), self._topology)
        return "; ".join(found) or None

    async def apply(self, step: Step) -> None:
        """Apply the fault. Raises ScenarioError if the simulation refuses it."""
        refusal = self.refusal(step)
        if refusal is not None:
            raise ScenarioError(refusal)
        entry = (step, self._strike(step))
        self._struck.append(entry)
        self._in_force.append(entry)

    async def undo(self, step: Step) -> None:
        """Heal the fault; does nothing if it is already healed. Of equal steps the last applied is undone first."""
        for entry in reversed(self._in_force):
            if entry[0] == step:
                self._in_force.remove(entry)
                entry[1].end()
                return

    async def effect(self, step: Step) -> Effect:
        """The effect of the fault since it was applied. Of equal steps, that of the last applied."""
        for applied, struck in reversed(self._struck):
            if applied == step:
                return struck.effect()
        return Effect(0, "it was never applied")

    def _strike(self, step: Step) -> Struck:
        hosts = [self._hosts[NodeId(target)] for target in step.targets if target in self._hosts]  # None for links.
        match FAULTS[step.fault].name:
            case "crash":
                return Crash(step, hosts, self._loop)
            case "pause":
                return Pause(step, hosts, self._loop)
            case "consumer":
                return Consumer(step, hosts)
            case "clock":
                return OnClocks(step, hosts)
            case "disk-full" | "failover" | "late" | "rot" | "restart" | "upgrade" | "remove" | "replace":
                raise AssertionError(f"{step.fault} was not refused, though no simulation can do it")
            case (
                "cut" | "stall" | "reset" | "delay" | "bandwidth" | "limit-data" | "drop" | "duplicate" | "reorder"
            ) as fault:
                return OnPaths(fault, step, [self._links.path(*ends(target)) for target in step.targets])
            case unknown:
                assert_never(unknown)
