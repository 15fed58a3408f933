"""Runs of the tutorial in memory: what a child process would record, as a list."""

from harness.core.record import Complete, Evidence, Mark, StreamEvent
from harness.core.seams import MachineCluster
from harness.record.journal import history_sha256
from harness.runtimes.simulation.child import simulate, unseed
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Scenario, decide
from nemesis.plan import Plan

SECOND = 1_000_000_000


class Simulated:
    """One run: its evidence, how it ended, and its unseed."""

    def __init__(self, scenario: Scenario, plan: Plan | None = None, cluster: MachineCluster | None = None) -> None:
        cluster = cluster or load_machines(installed(scenario.cluster))
        self.evidence: list[Evidence] = []
        self.reason, world = simulate(scenario, cluster, decide(scenario, cluster, plan), self.evidence.append)
        self.unseed = unseed(history_sha256(self.evidence), world)
        self.goals = world.goals()
        self.unexpected = world.unexpected()

    def completions(self, outcome: str) -> list[Complete]:
        return [record for record in self.evidence if isinstance(record, Complete) and record.outcome == outcome]

    def events(self, kind: str) -> list[StreamEvent]:
        return [record for record in self.evidence if isinstance(record, StreamEvent) and record.kind == kind]

    def marks(self, phase: str) -> list[Mark]:
        return [record for record in self.evidence if isinstance(record, Mark) and record.phase == phase]


__all__ = ["SECOND", "Simulated"]
