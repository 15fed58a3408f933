"""Runs in a test suite: one test for each seed, and a run that must pass."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TypeVar
from unittest import SkipTest

import msgspec

from harness.cli.options import plan_file
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.scenario.consent import Code, on_command_line
from harness.scenario.scenario import Scenario
from harness.testing.names import FIXTURE, MARK, Order
from harness.testing.verified import Vacuous, failure, judged
from nemesis.plan import Plan
from seamark.commands import AnyPath
from seamark.report import Report

T = TypeVar("T")
REPORT = "report"  # The argument of a test function that gets the report.


class Broken(AssertionError):
    """A run that had to pass did not. The message has the findings, and the command that repeats the run."""

    def __init__(self, report: Report) -> None:
        super().__init__(failure(report))
        self.report = report


def verify(
    scenario: Scenario, *, plan: AnyPath | Plan | None = None, store: AnyPath = "store", vacuous: Vacuous = "fail"
) -> Report:
    """Carry out a run that must pass, and return its report. The run's folder is kept only if it does not pass.

    With `vacuous="skip"` a run that tested too little is no failure; its report says so, and is no pass either. Raises
    Broken if the run does not pass, ScenarioError if it cannot be carried out.
    """
    prescribed = plan if isinstance(plan, Plan) or plan is None else plan_file(Path(plan))
    report = Report.of(judged(scenario, on_command_line(scenario.cluster), Path(store), prescribed))
    if report.is_pass or (vacuous == "skip" and report.verdict == Verdict.VACUOUS.value):
        return report
    raise Broken(report)


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario and the seeds for the tests of one function, as the pytest plugin finds them."""

    scenario: Scenario
    code: Code
    seed: int
    count: int
    vacuous: Vacuous

    def report(self, seed: int, store: Path) -> Report:
        """The report on the run with that seed. Raises Broken unless it passes, SkipTest if it may be skipped."""
        __tracebackhide__ = True  # For pytest: a failure is the run's, and its message says all.
        report = Report.of(judged(msgspec.structs.replace(self.scenario, seed=seed), self.code, store))
        if report.is_pass:
            return report
        if report.verdict == Verdict.VACUOUS.value and self.vacuous == "skip":
            raise SkipTest(report.reason)
        raise Broken(report)


def for_each_seed(  # noqa: PLR0913  Each is a field of the scenario.
    *,
    cluster: str,
    workload: str | None = None,
    faults: Sequence[str] | None = None,
    time_s: float = 10.0,
    rate: float = 50.0,
    bugs: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    seed: int = 0,
    count: int = 5,
    vacuous: Vacuous = "fail",
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A decorator that makes one test for each of `count` seeds: a run in which every promise must hold.

    `faults` are packages of faults by name; None: all that the cluster supports. The function runs once the run has
    passed; an argument `report` gets the report, and others are fixtures as usual. `vacuous`: whether a run that tested
    too little fails, or is skipped. Raises ScenarioError if there is no such cluster, or a value is out of bounds.
    """
    if count < 1:
        raise ScenarioError(f"count is {count}: it must be at least 1")
    code = on_command_line(cluster)
    scenario = Scenario(
        cluster=code.name,
        workload=workload,
        seed=seed,
        time_s=time_s,
        rate=rate,
        nemesis=None if faults is None else tuple(faults),
        bugs=tuple(bugs),
        options=dict(options or {}),
    )
    tested = Tested(scenario=scenario, code=code, seed=seed, count=count, vacuous=vacuous)

    return partial(_decorated, tested)


for_each_seed.__test__ = False  # type: ignore[attr-defined]  # Under its public name, seamark.test, pytest would call it.


def _decorated(tested: Tested, function: Callable[..., T]) -> Callable[..., T]:
    """The function as a test, to be called by pytest once for each seed."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapper(*args: object, **named: object) -> T:
        __tracebackhide__ = True
        order = named.pop(FIXTURE)
        assert isinstance(order, Order)
        report = tested.report(order.seed, order.store)
        return function(*args, **(named | ({REPORT: report} if REPORT in signature.parameters else {})))

    own = [each for each in signature.parameters.values() if each.name != REPORT]
    fixture = inspect.Parameter(FIXTURE, inspect.Parameter.KEYWORD_ONLY)
    setattr(wrapper, MARK, tested)
    setattr(wrapper, "__signature__", signature.replace(parameters=[*own, fixture]))  # noqa: B010  For pytest.
    return wrapper
