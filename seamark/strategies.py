"""Hypothesis strategies for runs: fault plans and workloads that it can make smaller. Needs `hypothesis`."""

from collections.abc import Sequence

from hypothesis import strategies as st

from harness.core.draw import Stream
from harness.core.errors import known
from harness.hunt.space import Space, space_of
from harness.scenario.consent import on_command_line
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario
from nemesis.fault import step_of
from nemesis.plan import Plan, Step

MS = 1_000_000
SEEDS = 1 << 16  # The number of seeds to draw from: few, as examples shrink to small numbers.
STRIKES = 1 << 12  # The number of seeds for the draws of a package.


def workloads(
    cluster: str,
    *,
    names: Sequence[str] | None = None,
    time_s: float = 5.0,
    rates: tuple[int, int] = (20, 100),
    clients: tuple[int, int] = (2, 6),
    keys: tuple[int, int] = (1, 8),
    bugs: Sequence[str] = (),
) -> st.SearchStrategy[Scenario]:
    """Scenarios of that cluster without faults. Workload, rate, clients, keys and seed vary.

    `names` are workloads of the cluster; None: only its first. Numbers are inclusive bounds. A fault plan goes to
    `seamark.verify` as its `plan`. Raises ScenarioError if there is no such cluster or workload.
    """
    code = on_command_line(cluster)
    of = load_cluster(code)
    chosen = tuple(names or of.workloads[:1])
    for name in chosen:
        known(name, of.workloads, f"workload of {of.name}")
    return st.builds(
        Scenario,
        cluster=st.just(code.name),
        workload=st.sampled_from(chosen),
        seed=st.integers(0, SEEDS),
        time_s=st.just(time_s),
        rate=st.integers(*rates).map(float),
        clients=st.integers(*clients),
        keys=st.integers(*keys),
        nemesis=st.just(()),
        bugs=st.just(tuple(bugs)),
    )


def fault_plans(
    cluster: str, *, faults: Sequence[str] | None = None, time_s: float = 5.0, steps_max: int = 6
) -> st.SearchStrategy[Plan]:
    """Plans of at most `steps_max` faults that the cluster supports, within `time_s` seconds of load.

    `faults` are packages by name; None: all that the cluster supports. An example shrinks to fewer, shorter and earlier
    faults. Raises ScenarioError if there is no such cluster or package.
    """
    code = on_command_line(cluster)
    of = load_cluster(code)
    for name in faults or ():
        known(name, tuple(of.faults), f"fault of {of.name}")
    scenario = Scenario(cluster=code.name, time_s=time_s, nemesis=None if faults is None else tuple(faults))
    return _plans(space_of(scenario, of), steps_max)


def _plans(space: Space, steps_max: int) -> st.SearchStrategy[Plan]:
    @st.composite
    def step(draw: st.DrawFn) -> Step | None:
        package = draw(st.sampled_from(space.field.packages))
        strike = package.draw(space.field.topology, Stream(draw(st.integers(0, STRIKES)), package.name))
        at_ms, for_ms = draw(st.integers(0, space.field.end_ns // MS)), draw(st.integers(100, 2_000))
        if strike is None or not strike.targets:
            return None
        return step_of(package, strike, at_ns=at_ms * MS, until_ns=(at_ms + for_ms) * MS)

    steps = st.lists(step(), max_size=steps_max)
    return steps.map(lambda drawn: space.field.settled(each for each in drawn if each is not None))
