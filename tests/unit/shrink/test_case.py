"""A case that is cut keeps the order of everything that is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.generators.scripted import Due, Script
from harness.core.record import MicroOp
from harness.core.seams import Invocation
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case
from nemesis.plan import Plan, Step

MS = 1_000_000


def case(times: list[int], steps: list[tuple[int, int]]) -> Case:
    load = tuple(Due(at * MS, 0, "txn", mops=(MicroOp("r", at),)) for at in sorted(times))
    return Case(
        scenario=Scenario(time_s=10, script=Script(load=load, final=())),
        plan=Plan(
            steps=tuple(
                Step(fault="crash", package="crash", at_ns=at * MS, until_ns=until * MS, targets=("n1",))
                for at, until in steps
            )
        ),
    )


def test_a_cut_moves_what_follows_and_shortens_what_lasts() -> None:
    cut = case([100, 250, 400], [(50, 150), (200, 350), (220, 280)]).without([(200 * MS, 300 * MS)])
    assert [due.at_ns // MS for due in cut.script.load] == [100, 300]
    assert [(step.at_ns // MS, step.until_ns // MS) for step in cut.plan.steps] == [(50, 150), (200, 250)]


@given(
    times=st.lists(st.integers(0, 1000), max_size=20),
    edges=st.lists(st.integers(0, 1000), max_size=8, unique=True).map(sorted),
)
def test_cuts_keep_the_order_and_leave_no_time_of_the_cut(times: list[int], edges: list[int]) -> None:
    spans = [(edges[at] * MS, edges[at + 1] * MS) for at in range(0, len(edges) - 1, 2)]
    before = case(times, [])
    after = before.without(spans)
    left = [due.mops for due in before.script.load if not any(a <= due.at_ns < b for a, b in spans)]
    assert [due.mops for due in after.script.load] == left
    assert [due.at_ns for due in after.script.load] == sorted(due.at_ns for due in after.script.load)
    removed = sum(b - a for a, b in spans)
    assert all(due.at_ns <= 1000 * MS - removed + (1 if not spans else 0) * removed for due in after.script.load)


def test_a_key_that_goes_takes_its_operations_along() -> None:
    made = case([1, 2], []).with_final((Invocation(f="txn", mops=(MicroOp("r", 1),)),))
    gone = made.without_key(1)
    assert [due.mops for due in gone.script.load] == [(MicroOp("r", 2),)]
    assert gone.script.final == ()


@pytest.mark.parametrize("until", [1_000, 4_350, 9_999])
def test_a_plan_fits_into_the_time_of_its_load(until: int) -> None:
    cut = case([], [(10, until)]).with_load(())
    assert int(cut.scenario.time_s * 1_000_000_000) >= until * MS
