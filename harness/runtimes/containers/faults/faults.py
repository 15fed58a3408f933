"""Carries out a fault plan in containers, and measures the effect of each step.

1. Steps may overlap: an action on one proxy, packet rule or container that several need is done for the first, and
   undone after the last.
2. A fault is probed after it is applied. The effect of a step is counted by the nodes, by clients, and by iptables
   rules in a node's network namespace; a step that no probe showed to be in force has no effect.
3. A step that cannot be applied because a container is gone has no effect, and its note says why. Undoing it always
   works.
"""

import asyncio
from typing import assert_never

import msgspec

from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.barriers import OnMembers, Together
from harness.runtimes.containers.faults.late_requests import Late
from harness.runtimes.containers.faults.probing import Prober, Probing
from harness.runtimes.containers.faults.rules import Rules
from harness.runtimes.containers.faults.site import GONE, ClientTraffic, Holds, Procedures, Site, Struck
from harness.runtimes.containers.faults.struck_clocks import OnClocks
from harness.runtimes.containers.faults.struck_files import Rot
from harness.runtimes.containers.faults.struck_leaders import Failover
from harness.runtimes.containers.faults.struck_links import OnLinks
from harness.runtimes.containers.faults.struck_members import Membership
from harness.runtimes.containers.faults.struck_nodes import Consumer, Crash, FullDisk, Pause
from harness.runtimes.containers.faults.struck_rolls import Roll
from nemesis.plan import Effect, NodeFault, Plan, Step
from nemesis.registry import FAULTS
from nemesis.topology import DIRECT, Topology, ends
from nemesis.validation import problems


class ContainerFaults:
    """The `FaultRuntime` of containers."""

    def __init__(
        self, site: Site, topology: Topology, prober: Probing, holds: Holds, procedures: Procedures | None = None
    ) -> None:
        self._site, self._topology, self._prober, self._holds = site, topology, prober, holds
        self._procedures = procedures
        self._rules = Rules(site, holds)
        self._struck: list[tuple[Step, Struck]] = []  # All steps of the run, in order of application.
        self._in_force: list[tuple[Step, Struck]] = []
        self._failures: dict[int, str] = {}  # By position in `_struck`.

    def refusal(self, step: Step) -> str | None:
        """The reason why containers cannot do that step, in one line, or None."""
        if step.fault == "failover" and self._procedures is None:
            return "no node can be promoted here: machines elect their leader themselves"
        if step.fault == "late" and any(self._site.lateness(target) is None for target in step.targets):
            return "clients of machines reach them without a relay, so their requests cannot be late"
        return "; ".join(problems(Plan(steps=(step,)), self._topology, runtime="docker")) or None

    async def apply(self, step: Step) -> None:
        """Apply the fault. Raises ScenarioError if containers refuse it."""
        refusal = self.refusal(step)
        if refusal is not None:
            raise ScenarioError(refusal)
        number = len(self._struck)
        struck = self._strike(number, step)
        self._struck.append((step, struck))
        self._in_force.append((step, struck))
        try:
            await struck.begin()
        except GONE as error:
            self._failures[number] = " ".join(str(error).split()) or type(error).__name__

    async def undo(self, step: Step) -> None:
        """Heal the fault; does nothing if it is already healed. Of equal steps the last applied is undone first."""
        for entry in reversed(self._in_force):
            if entry[0] == step:
                self._in_force.remove(entry)
                await asyncio.shield(entry[1].end())  # An interrupt meanwhile must not leave the undoing half done.
                return

    async def effect(self, step: Step) -> Effect:
        """The effect of the fault since it was applied. Of equal steps, that of the last applied."""
        for number, (applied, struck) in reversed(list(enumerate(self._struck))):
            if applied == step:
                if number in self._failures:
                    return Effect(0, f"it could not be brought about: {self._failures[number]}")
                return await struck.effect()
        return Effect(0, "it was never applied")

    def _strike(self, number: int, step: Step) -> Struck:
        site, prober, rules, holds = self._site, self._prober, self._rules, self._holds
        match FAULTS[step.fault].name:
            case "cut" | "stall" | "reset" | "delay" | "bandwidth" | "limit-data" as fault:
                direct = [target for target in step.targets if self._topology.kind(*ends(target)) == DIRECT]
                members = OnMembers(number, step, direct, rules.barriers)
                paths = [each for target in step.targets if target not in direct for each in prober.paths(target)]
                if not paths:
                    return members
                links = OnLinks(number, fault, step, paths, site=site, prober=prober, rules=rules, holds=holds)
                return Together(links, members) if direct else links
            case "late":
                return Late(step, site=site)
            case "drop" | "duplicate" | "reorder":
                return OnMembers(number, step, step.targets, rules.barriers)
            case fault:
                return self._strike_nodes(fault, step)

    def _strike_nodes(self, fault: NodeFault, step: Step) -> Struck:
        site, prober, rules, holds = self._site, self._prober, self._rules, self._holds
        nodes = [NodeId(target) for target in step.targets]
        match fault:
            case "crash":
                return Crash(step, nodes, site=site, rules=rules, holds=holds)
            case "rot":
                kept = msgspec.structs.replace(step, fault="crash", args={"disk": "kept"})
                return Rot(step, nodes, site=site, crash=Crash(kept, nodes, site=site, rules=rules, holds=holds))
            case "pause":
                return Pause(step, nodes, site=site, prober=prober, holds=holds)
            case "consumer":
                return Consumer(step, nodes, site=site, prober=prober)
            case "clock":
                return OnClocks(step, nodes, site=site)
            case "disk-full":
                return FullDisk(nodes, site=site, rules=rules)
            case "restart" | "upgrade":
                return Roll(step, nodes, site=site, rules=rules, holds=holds, procedures=self._procedures)
            case "failover" | "remove" | "replace":
                if self._procedures is None:
                    raise AssertionError(f"{fault} was accepted, though the cluster declares no procedure")
                if fault == "failover":
                    return Failover(nodes[0], site=site, procedures=self._procedures)
                return Membership(step, site=site, rules=rules, holds=holds, procedures=self._procedures)
            case unknown:
                assert_never(unknown)


def faults_on_machines(site: Site, topology: Topology, traffic: ClientTraffic) -> ContainerFaults:
    """The faults of a cluster of machines, whose nodes and clients count their messages."""
    holds = Holds()
    return ContainerFaults(site, topology, Prober(site, traffic, holds), holds)
