"""The space of a hunt: the values that a run may have."""

from collections.abc import Iterable

import msgspec

from harness.core.draw import Stream
from harness.core.errors import ScenarioError
from harness.core.seams import Cluster, Parameter, is_of_machines
from harness.scenario.scenario import SECOND, Scenario, decide, topology
from harness.shrink.case import Case
from nemesis.fault import Package
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.registry import FAULTS, PACKAGES
from nemesis.topology import Topology
from nemesis.validation import validate

SEEDS = 1_000_000_000  # The number of seeds of runs: short enough to be typed.
LEAST_NS = 20_000_000  # The shortest fault.
TAIL_PART = 10  # The last tenth of a run is free of faults.
EXTREME = (1, 4)  # The share of cases in which a parameter has its least or greatest value.


class Space(msgspec.Struct, frozen=True):
    """Everything that a hunt may vary: all but the cluster, its planted bugs and options, and the length of a run."""

    scenario: Scenario
    topology: Topology
    packages: tuple[Package, ...]
    parameters: tuple[Parameter, ...]

    @property
    def end_ns(self) -> int:
        """The latest end of a fault."""
        whole_ns = int(self.scenario.time_s * SECOND)
        return whole_ns - whole_ns // TAIL_PART

    def settled(self, steps: Iterable[Step]) -> Plan:
        """A plan of those steps, the most important first: of two that conflict the later is dropped.

        Steps at failpoints are placed last, as they can give up some of the nodes for which they wait.
        """
        kept: list[Step] = []
        for step in sorted(steps, key=_is_at_point):
            fitted = self._fitted(step, kept)
            if fitted is not None:
                kept.append(fitted)
        return Plan(steps=tuple(sorted(kept, key=lambda each: (each.at_ns, each.until_ns, each.targets))))

    def _fitted(self, step: Step, others: list[Step]) -> Step | None:
        """The step, cut to the time of a run; None if nothing is left of it.

        A step at a failpoint loses the nodes that other faults strike.
        """
        length_ns = max(LEAST_NS, step.until_ns - step.at_ns)
        at_ns = min(max(0, step.at_ns), self.end_ns - LEAST_NS)
        step = msgspec.structs.replace(step, at_ns=at_ns, until_ns=min(at_ns + length_ns, self.end_ns))
        beside = [each for each in others if each.until_ns > step.at_ns and step.until_ns > each.at_ns]
        if _is_at_point(step):
            alone = [msgspec.structs.replace(step, targets=(node,)) for node in step.targets]
            free = (each.targets[0] for each in alone if not any(_clash(each, other) for other in beside))
            step = msgspec.structs.replace(step, targets=tuple(free))
        if not step.targets or any(_clash(step, each) for each in beside):
            return None
        return step


def _is_at_point(step: Step) -> bool:
    return "point" in step.args


def _clash(one: Step, other: Step) -> bool:
    return conflict(one, other) is not None


def space_of(scenario: Scenario, cluster: Cluster) -> Space:
    """The space around that scenario. Raises ScenarioError if it cannot be carried out, or has no fault."""
    if scenario.runtime != "sim" or not is_of_machines(cluster):
        raise ScenarioError(
            f"seamark hunt is for simulated runs, of which it makes thousands: {cluster.name} in containers is for "
            "seamark run --runtime docker --count N, or seamark sweep"
        )
    decide(scenario, cluster)  # Raises for unknown names before anything begins.
    names = cluster.faults if scenario.nemesis is None else scenario.nemesis
    if not names:
        raise ScenarioError("seamark hunt varies faults: --nemesis must name some")
    packages = tuple(PACKAGES[name] for name in names)
    return Space(scenario, topology(cluster), packages, cluster.parameters)


def any_value(parameter: Parameter, stream: Stream) -> int:
    """A random value of the parameter, sometimes its least or greatest."""
    if stream.chance(*EXTREME):
        return stream.choice((parameter.low, parameter.high))
    return stream.between(parameter.low, parameter.high)


def is_sound(space: Space, case: Case) -> bool:
    """True if the case can be carried out."""
    try:
        validate(case.plan, space.topology, duration_ns=int(case.scenario.time_s * SECOND))
    except ScenarioError:
        return False
    return all(step.fault in FAULTS for step in case.plan.steps)
