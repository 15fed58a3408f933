"""The space of a hunt: the values that a run may have."""

import msgspec

from harness.core.draw import Draw, Stream
from harness.core.errors import ScenarioError
from harness.core.seams import Cluster, Parameter, is_of_machines
from harness.scenario.left_open import ANY, workload_of
from harness.scenario.scenario import SECOND, Scenario, decide, topology, worth_striking
from harness.shrink.case import Case
from nemesis.registry import FAULTS, PACKAGES
from nemesis.styles.field import Field
from nemesis.validation import validate

SEEDS = 1_000_000_000  # The number of seeds of runs: short enough to be typed.
EXTREME = (1, 4)  # The share of cases in which a parameter has its least or greatest value.


class Space(msgspec.Struct, frozen=True):
    """Everything that a hunt may vary: all but the cluster, its planted bugs and options, and the length of a run."""

    scenario: Scenario
    field: Field
    parameters: tuple[Parameter, ...]
    workloads: tuple[str, ...]

    def with_seed(self, seed: int) -> Scenario:
        """The scenario with that seed, and with the workload that the seed draws, if none is named."""
        workload = self.scenario.workload
        if workload == ANY:
            workload = workload_of(Draw(seed), self.workloads)
        return msgspec.structs.replace(self.scenario, seed=seed, workload=workload)


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
    field = Field(worth_striking(topology(cluster), cluster), packages, int(scenario.time_s * SECOND))
    return Space(scenario, field, cluster.parameters, tuple(cluster.workloads))


def any_value(parameter: Parameter, stream: Stream) -> int:
    """A random value of the parameter, sometimes its least or greatest."""
    if stream.chance(*EXTREME):
        return stream.choice((parameter.low, parameter.high))
    return stream.between(parameter.low, parameter.high)


def is_sound(space: Space, case: Case) -> bool:
    """True if the case can be carried out."""
    try:
        validate(case.plan, space.field.topology, duration_ns=int(case.scenario.time_s * SECOND))
    except ScenarioError:
        return False
    return all(step.fault in FAULTS for step in case.plan.steps)
