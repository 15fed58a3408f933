"""Whatever is drawn or changed can be carried out, and strikes are spread over all manners that there are."""

from collections import Counter
from itertools import pairwise

import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.hunt.fresh import fresh
from harness.hunt.mutation import MUTATIONS, Setting, mutated
from harness.hunt.points import MOMENTS, at_points
from harness.hunt.space import Space, is_sound, space_of
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide
from nemesis.overlap import conflict
from nemesis.registry import FAULTS
from nemesis.styles.apart import RECOVERY_NS
from nemesis.styles.menu import Menu
from nemesis.topology import ends

MS = 1_000_000
NDB = load_cluster(installed("ndb"))
SPACE: Space = space_of(Scenario(time_s=8.0), NDB)


def setting(number: int, menu: Menu) -> Setting:
    stream = Draw(3).stream(f"setting/{number}")
    case, other = fresh(SPACE, menu, stream), fresh(SPACE, menu, stream)
    moments = (1_000 * MS, 3_500 * MS)
    return Setting(case=case, moments=moments, other=other, space=SPACE, menu=menu, stream=stream)


def test_what_is_drawn_can_be_carried_out_and_comes_again() -> None:
    for number in range(40):
        drawn = [fresh(SPACE, Menu(SPACE.field.topology), Draw(1).stream(f"{number}")) for _ in range(2)]
        assert drawn[0] == drawn[1]
        assert is_sound(SPACE, drawn[0])
        decide(drawn[0].scenario, NDB, drawn[0].plan)
        assert max(step.until_ns for step in drawn[0].plan.steps) <= SPACE.field.end_ns


def test_strikes_apart_are_narrow_and_leave_time_to_recover() -> None:
    for number in range(40):
        case = fresh(SPACE, Menu(SPACE.field.topology), Draw(7).stream(f"{number}"), style="apart")
        assert is_sound(SPACE, case)
        stopping = [step for step in case.plan.steps if FAULTS[step.fault].is_silencing]
        assert len(stopping) >= 3, number
        for before, step in pairwise(stopping):
            assert step.at_ns - before.until_ns >= RECOVERY_NS[0], number
        for step in stopping[1:]:
            assert "point" in step.args or len(step.targets) == 1 or ">" in step.targets[0], (number, step)


def test_before_a_node_stops_what_it_sends_is_slow() -> None:
    stopped = lagged = 0
    for number in range(40):
        steps = fresh(SPACE, Menu(SPACE.field.topology), Draw(7).stream(f"{number}"), style="apart").plan.steps
        slow = [step for step in steps if not FAULTS[step.fault].is_silencing and ">" in step.targets[0]]
        for strike in (step for step in steps if FAULTS[step.fault].is_silencing and ">" not in step.targets[0]):
            before = [step for step in slow if step.until_ns == strike.at_ns]
            assert all(ends(link)[0] == strike.targets[0] for step in before for link in step.targets), number
            stopped, lagged = stopped + 1, lagged + len(before)
    assert lagged > 0.8 * stopped


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_change_gives_another_run_that_can_be_carried_out(name: str) -> None:
    menu, changed = Menu(SPACE.field.topology), 0
    for number in range(20):
        at = setting(number, menu)
        case = MUTATIONS[name](at)
        if case is not None and case != at.case:
            changed += 1
            assert is_sound(SPACE, case), (name, number)
    assert changed >= 6


def test_several_changes_keep_a_plan_free_of_conflicts() -> None:
    menu = Menu(SPACE.field.topology)
    for number in range(40):
        case, names = mutated(setting(number, menu))
        steps = case.plan.steps
        assert set(names) <= set(MUTATIONS)
        assert not any(conflict(one, other) for place, one in enumerate(steps) for other in steps[:place])


def test_a_fault_aimed_at_a_moment_begins_there() -> None:
    menu, near = Menu(SPACE.field.topology), 0
    for number in range(20):
        at = setting(number, menu)
        case = MUTATIONS["aim at moment"](at)
        assert case is not None
        begun = {step.at_ns for step in case.plan.steps} - {step.at_ns for step in at.steps}
        near += any(min(abs(each - moment) for moment in at.moments) <= 100 * MS for each in begun)
    assert near >= 15


def test_every_failpoint_gets_its_turn_before_any_has_had_many() -> None:
    menu, stream = Menu(SPACE.field.topology), Draw(5).stream("menu")
    points: dict[str, int] = {}
    for _ in range(600):
        chosen = menu.strike(SPACE.field.packages, stream)
        assert chosen is not None
        point = chosen[1].args.get("point")
        if point is not None:
            points[str(point)] = points.get(str(point), 0) + 1
    assert set(points) == set(NDB.points)
    assert max(points.values()) <= 3 * min(points.values())


def test_nodes_of_one_role_are_as_good_as_each_other() -> None:
    menu, stream = Menu(SPACE.field.topology), Draw(5).stream("alike")
    forms: dict[str, set[tuple[str, ...]]] = {}
    for _ in range(400):
        chosen = menu.strike(SPACE.field.packages, stream)
        assert chosen is not None
        forms.setdefault(menu.manner(chosen[1])[1], set()).add(tuple(sorted(chosen[1].targets)))
    assert len(forms["crash data"] & {("d1",), ("d2",), ("d3",), ("d4",)}) >= 3


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (Scenario(runtime="docker"), "for simulated runs"),
        (Scenario(nemesis=()), "must name some"),
        (Scenario(nemesis=("partitoin",)), "did you mean partition"),
        (Scenario(bugs=("no-such",)), "unknown bug"),
    ],
)
def test_what_cannot_be_hunted_says_why(scenario: Scenario, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        space_of(scenario, NDB)


def test_each_fault_that_can_strike_at_a_failpoint_does_so_at_each_failpoint() -> None:
    cases = at_points(SPACE, 3)
    (steps,) = zip(*(case.plan.steps for case in cases), strict=True)
    struck = [(step.fault, step.args["point"]) for step in steps]
    kinds = Counter(
        fault.name for package in SPACE.field.packages for fault in package.faults if "point" in fault.optional
    )
    assert set(kinds) == {"crash", "pause"}
    assert Counter(struck) == {
        (fault, point): count * len(MOMENTS) for fault, count in kinds.items() for point in SPACE.field.topology.points
    }
    assert all(is_sound(SPACE, case) for case in cases)
    assert cases == at_points(SPACE, 3) != at_points(SPACE, 4)
