"""The plan beside what happened."""

import pytest

from harness.core.record import BUSY, Fault
from harness.core.verdict import Verdict
from harness.record.exposure import FOREVER, Window
from harness.report.page import page
from harness.report.pictures.plots import overview
from harness.report.planned import planned_steps, read_refusals
from harness.report.series import read_series
from nemesis.plan import Plan, Step
from tests.unit.report.conftest import MS, Written, operation, report

STEPS = (
    Step(fault="cut", package="partition", at_ns=10 * MS, until_ns=30 * MS, targets=("a>b", "b>a")),
    Step(fault="crash", package="crash", at_ns=50 * MS, until_ns=60 * MS, targets=("a",)),
    Step(fault="clock", package="clock", at_ns=70 * MS, until_ns=80 * MS, targets=("b",)),
)


def window(step: int, begin_ms: int, end_ms: int | None, effect: int | None = 3) -> Window:
    end_ns = FOREVER if end_ms is None else end_ms * MS
    note = None if effect is None else f"{effect} messages held back"
    return Window(step=step, kind="k", targets="t", note=note, begin_ns=begin_ms * MS, end_ns=end_ns, effect=effect)


def test_each_step_stands_beside_what_became_of_it_in_the_times_of_the_run() -> None:
    windows = (window(0, 111, 131), window(1, 155, None, None))
    first, second, third = planned_steps(Plan(steps=STEPS), windows, {2: "no libfaketime here"}, 100 * MS)
    assert (first.planned, first.happened) == ("0.1100 s to 0.1300 s", "0.1110 s to 0.1310 s")
    assert (first.targets, first.effect) == ("a>b, b>a", "3 messages held back")
    assert (second.happened, second.effect) == ("0.1550 s to the end, never healed", "not measured")
    assert (third.happened, third.effect) == ("never: no libfaketime here", "none")
    assert "planned 0.1700 s to 0.1800 s" in third.title


def test_a_step_that_never_began_has_its_row_in_the_drawing(written: Written) -> None:
    refused = Fault(90 * MS, 2, "refused", "clock", ("b",), None, "no libfaketime here")
    begun = [Fault(at * MS, 0, phase, "partition", ("a>b",)) for at, phase in ((110, "begin"), (130, "end"))]  # type: ignore[arg-type]  # A phase.
    folder = written([*begun, refused, *operation(0, 100, 300)])
    series = read_series(folder, None)
    steps = planned_steps(Plan(steps=STEPS), series.windows, read_refusals(folder), 100 * MS)
    drawn = overview(series, is_closed=True, planned=steps)
    assert drawn.kinds == ("partition", "crash", "clock")
    assert [band.kind for band in drawn.planned] == [0, 1, 2]
    assert [band.kind for band in drawn.bands] == [0]
    assert drawn.planned[0].x < drawn.planned[1].x < drawn.planned[2].x
    assert steps[2].refusal == "no libfaketime here"


@pytest.mark.parametrize(
    ("end_ms", "message"),
    [
        (179, ""),
        (169, " 1 fault was planned for later than the run lasted."),
        (149, " 2 faults were planned for later than the run lasted."),
    ],
)
def test_a_run_that_ended_early_says_what_was_to_come(written: Written, end_ms: int, message: str) -> None:
    folder = written(operation(0, 100, end_ms))
    steps = planned_steps(Plan(steps=STEPS), (), {}, 100 * MS)
    note = overview(read_series(folder, None), is_closed=True, planned=steps).note
    assert note.endswith(f"the one operation is shown.{message}")


@pytest.mark.parametrize("kind", [BUSY, "partition"])
def test_a_busy_machine_is_told_from_a_fault_of_the_plan(written: Written, kind: str) -> None:
    begun = [Fault(at * MS, 7, phase, kind, ("a",)) for at, phase in ((110, "begin"), (130, "end"))]  # type: ignore[arg-type]  # A phase.
    html = page(report(Verdict.VALID), written([*operation(0, 100, 300), *begun]))
    assert ("Busy-machine: no fault of the plan" in html) == (kind == BUSY)
