"""The smallest case that shows its symptom dependably, where no run is repeated exactly."""

import pytest

from harness.core.generators.scripted import Due, Script
from harness.report.model import FindingRow
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case
from harness.shrink.dependable import Shown, dependable
from harness.shrink.regression import regression_test
from nemesis.plan import Plan

FINDING = FindingRow(
    anomaly="late-event", sentence="It came late.", promise="TUT-2", fingerprint="f", checker="streams"
)


def case(operations: int) -> Case:
    script = Script(load=tuple(Due(at, 0, "read") for at in range(operations)), final=())
    return Case(scenario=Scenario(script=script, runtime="docker"), plan=Plan(steps=()))


PATH = [case(operations) for operations in (100, 50, 20, 10, 5, 3, 2)]


def chosen(hits: dict[int, int]) -> tuple[int, Shown]:
    """The operations of the case that is chosen if those of so many operations have so many hits, and others six."""
    found, shown = dependable(PATH, lambda each: hits.get(len(each.script.load), 6), 6, 0.6)
    return len(found.script.load), shown


def test_the_smallest_case_stays_if_it_is_dependable() -> None:
    assert chosen({2: 4}) == (2, Shown(4, 6))


def test_a_case_that_passed_its_trial_by_chance_gives_way_to_an_earlier_one() -> None:
    assert chosen({2: 3}) == (3, Shown(6, 6))
    assert chosen({2: 0, 3: 1}) == (10, Shown(6, 6))  # Steps double: 5 operations are not measured.


def test_the_recorded_run_is_the_result_if_nothing_smaller_is_dependable() -> None:
    assert chosen(dict.fromkeys((50, 20, 10, 5, 3, 2), 0) | {100: 1}) == (100, Shown(1, 6))


@pytest.mark.parametrize(("hits", "runs"), [(1, 6), (3, 6), (4, 6), (6, 6)])
def test_a_test_repeats_a_run_until_chance_hardly_explains_that_it_passes(hits: int, runs: int) -> None:
    missed = 1 - (hits + 1) / (runs + 2)
    repetitions = Shown(hits, runs).repetitions()
    assert missed**repetitions <= 0.05 < missed ** (repetitions - 1)


def test_the_test_of_a_run_in_containers_is_repeated_and_says_why() -> None:
    text = regression_test(case(2), FINDING, Code("tutorial", None), Shown(3, 6))
    compile(text, "test_late_event.py", "exec")
    assert "    for _ in range(5):" in text
    assert "3 of 6" in text
    assert "for _ in" not in regression_test(case(2), FINDING, Code("tutorial", None))
