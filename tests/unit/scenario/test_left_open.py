"""What a scenario leaves open its seed decides, and the names then make the same run."""

from collections import Counter

import msgspec
import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.scenario.command import command_of
from harness.scenario.consent import installed
from harness.scenario.left_open import ANY, style_of, workload_of
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide, named
from nemesis.styles.styles import STYLES

TICDC = load_cluster(installed("ticdc"))
OPEN = Scenario(cluster="ticdc", workload=ANY, style=ANY, time_s=5.0)


def of_seed(seed: int) -> Scenario:
    return msgspec.structs.replace(OPEN, seed=seed)


def test_every_workload_and_style_is_drawn_and_the_first_workload_often() -> None:
    workloads = Counter(workload_of(Draw(seed), TICDC.workloads) for seed in range(2000))
    assert set(workloads) == set(TICDC.workloads)
    assert workloads[TICDC.workloads[0]] > 4 * workloads[TICDC.workloads[-1]]
    assert {style_of(Draw(seed)) for seed in range(200)} == {"swarm", *STYLES}


def test_the_draw_depends_on_the_seed_and_the_list_alone() -> None:
    draw = Draw(7)
    draw.stream("parameters").below(10)
    assert workload_of(draw, ("a", "b", "c")) == workload_of(Draw(7), ("a", "b", "c"))
    assert [workload_of(Draw(seed), ("only",)) for seed in range(3)] == ["only"] * 3


@pytest.mark.parametrize("seed", range(6))
def test_the_names_in_the_command_make_the_same_run(seed: int) -> None:
    scenario = named(of_seed(seed), TICDC.workloads)
    assert scenario.workload in TICDC.workloads
    assert scenario.style in (None, *STYLES)
    assert named(scenario, TICDC.workloads) == scenario
    one, other = decide(of_seed(seed), TICDC), decide(scenario, TICDC)
    assert (one.plan, one.settings, one.shape, one.workload.name) == (
        other.plan, other.settings, other.shape, other.workload.name,
    )  # fmt: skip
    command = command_of(scenario)
    assert f"--workload {scenario.workload} " in command
    assert scenario.style is None or f"--style {scenario.style}" in command


def test_a_given_plan_keeps_the_parameters_of_the_style() -> None:
    """So a shrunk plan runs in the same cluster."""
    drawn = decide(named(of_seed(3), TICDC.workloads), TICDC)
    assert decide(named(of_seed(3), TICDC.workloads), TICDC, drawn.plan).settings == drawn.settings


def test_without_a_style_the_plan_is_a_swarm_as_it_is_in_containers() -> None:
    plain = decide(Scenario(cluster="ticdc", time_s=5.0), TICDC).plan
    assert decide(Scenario(cluster="ticdc", time_s=5.0, style="swarm"), TICDC).plan == plain
    assert "packages" in plain.drawn
    assert named(msgspec.structs.replace(OPEN, runtime="docker"), TICDC.workloads).style is None


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ScenarioError, match="unknown style of fault plans 'point'; did you mean points"):
        decide(Scenario(cluster="ticdc", style="point"), TICDC)


def test_only_clocks_that_decide_something_are_drawn() -> None:
    wrong = {
        target
        for seed in range(40)
        for step in decide(msgspec.structs.replace(of_seed(seed), nemesis=("clock",)), TICDC).plan.steps
        for target in step.targets
    }
    assert wrong == {"pd"}
