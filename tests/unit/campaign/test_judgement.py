"""A sweep is judged as a whole: one idle run makes it neither vacuous nor, if it hides a finding, green."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from harness.campaign.judgement import exposures_of, verdict_of_sweep
from harness.campaign.ledger.rows import Row, final_rows, row_of
from harness.core.verdict import Verdict
from harness.report.model import Exposed, Report
from tests.unit.campaign.made import config
from tests.unit.campaign.reports import fault, finding, promise, report

IDLE = report(Verdict.VACUOUS, faults=(fault("pause", effective=0, met=0), fault("partition")), clause="b")


def rows_of(reports: Sequence[Report], attempts: Sequence[int] | None = None) -> list[Row]:
    return [
        row_of(each, cell=0, seed=seed, attempt=attempt)
        for seed, (each, attempt) in enumerate(zip(reports, attempts or [1] * len(reports), strict=True))
    ]


def judged(reports: Sequence[Report], **options: object) -> tuple[Verdict, str, str | None]:
    chosen, rows = config(count=len(reports), time=6.0, **options), rows_of(reports)
    return verdict_of_sweep(chosen, final_rows(rows), exposures_of(chosen, rows), None)


def test_one_run_whose_pause_met_nothing_leaves_a_sweep_green() -> None:
    verdict, reason, clause = judged([IDLE, *(report() for _ in range(9))])
    assert (verdict, clause) == (Verdict.VALID, None)
    assert reason.startswith(
        "10 runs: 1 VACUOUS, 9 PASS; together they exercised every kind of fault, and 2 promises held"
    )


def test_a_kind_that_never_took_effect_leaves_a_sweep_vacuous() -> None:
    verdict, reason, clause = judged([IDLE] * 10)
    assert (verdict, clause) == (Verdict.VACUOUS, "b")
    assert "tutorial: 1 of 2 faults changed nothing: pause" in reason


def test_passing_runs_do_not_hide_a_kind_that_never_took_effect() -> None:
    """Each run excuses a fault without effect; if it is always the same kind, that kind was never tested."""
    kinds = [fault(f"kind-{number}") for number in range(11)]
    excused = report(faults=(*kinds, fault("pause", effective=0, met=0)))
    verdict, reason, _ = judged([excused] * 10)
    assert verdict is Verdict.VACUOUS
    assert "1 of 12 faults changed nothing: pause" in reason


def test_a_kind_that_met_too_few_operations_is_not_exercised() -> None:
    few = report(faults=(fault("pause", met=1), fault("partition")), is_long=False)
    verdict, reason, _ = judged([few] * 4)
    assert verdict is Verdict.VACUOUS
    assert "1 of 2 faults changed nothing: pause (met 4 operations, fewer than 5)" in reason
    assert judged([few] * 5)[0] is Verdict.VALID  # Five operations in all: as many as one run needs.


def frozen(*, is_long: bool) -> Report:
    """A run with a pause that met operations of which none completed in it."""
    run = report(faults=(fault("pause", met=0), fault("partition")), is_long=is_long)
    assert run.exposure is not None
    met = msgspec.structs.replace(run.exposure, met={"pause": 20, "partition": 100})
    return msgspec.structs.replace(run, exposure=met)


def test_short_faults_in_which_nothing_completed_met_what_was_open() -> None:
    assert judged([frozen(is_long=False)])[0] is Verdict.VALID


def test_of_long_faults_one_at_least_must_let_operations_complete() -> None:
    verdict, reason, clause = judged([frozen(is_long=True)] * 10)
    assert (verdict, clause) == (Verdict.VACUOUS, "a")
    assert "0 operations completed during pause, fewer than 5" in reason
    assert judged([frozen(is_long=True), report()])[0] is Verdict.VALID


@pytest.mark.parametrize(("runs", "state"), [(9, Verdict.VACUOUS), (10, Verdict.VALID)])
def test_witnesses_add_up(runs: int, state: Verdict) -> None:
    rare = report(Verdict.VACUOUS, promises=(promise("P1", verdict="not-exercised", witnesses=1),))
    assert judged([rare] * runs)[0] is state


def test_a_finding_in_one_run_makes_the_sweep_red() -> None:
    red = report(Verdict.INVALID, findings=(finding(),), promises=(promise("P1", verdict="violated"),))
    assert judged([red, *(report() for _ in range(9))])[0] is Verdict.INVALID


def test_a_promise_that_a_vacuous_run_left_undecided_leaves_the_sweep_undecided() -> None:
    unsure = report(Verdict.VACUOUS, promises=(promise("P1", verdict="unknown"),))
    assert judged([unsure, *(report() for _ in range(9))])[0] is Verdict.UNKNOWN


def test_a_run_that_failed_twice_makes_the_sweep_an_error_and_adds_no_exposure() -> None:
    failed = report(Verdict.ERROR, reason="its process died", faults=(fault("crash", effective=0, met=0),))
    chosen = config(count=2, time=6.0)
    rows = rows_of([failed, report()], attempts=[2, 1])
    exposures = exposures_of(chosen, rows)
    assert verdict_of_sweep(chosen, final_rows(rows), exposures, None).verdict is Verdict.ERROR
    assert [each.kind for each in exposures["tutorial"].faults] == ["pause", "partition"]


def test_a_run_that_failed_once_and_was_never_repeated_is_not_counted() -> None:
    rows = rows_of([report(Verdict.ERROR), report()])
    assert [row.seed for row in final_rows(rows)] == [1]


def cut(name: str) -> Callable[[Report], Report]:
    def changed(one: Report) -> Report:
        assert one.exposure is not None
        values: dict[str, object] = {"has_end": False, "known_versions": 100, "ok_by_type": {"txn": 1, "read": 0}}
        return msgspec.structs.replace(one, exposure=msgspec.structs.replace(one.exposure, **{name: values[name]}))

    return changed


@pytest.mark.parametrize(("name", "clause"), [("has_end", "e"), ("known_versions", "c"), ("ok_by_type", "a")])
def test_what_one_run_lacks_is_made_up_for_by_others_and_what_all_lack_is_not(name: str, clause: str) -> None:
    lacking = cut(name)(report())
    assert judged([lacking, *(report() for _ in range(19))])[0] is Verdict.VALID or name == "ok_by_type"
    verdict, _, found = judged([lacking] * 10)
    assert (verdict, found) == (Verdict.VACUOUS, clause)


def test_a_goal_that_many_runs_never_reached_makes_a_sweep_vacuous_and_few_runs_do_not() -> None:
    unmet = report(goals={"a backup was promoted": 0})
    assert judged([unmet] * 49)[0] is Verdict.VALID
    verdict, reason, clause = judged([unmet] * 50)
    assert (verdict, clause) == (Verdict.VACUOUS, "d")
    assert "tutorial: never reached: a backup was promoted" in reason


def test_too_few_runs_and_a_budget_that_ended_the_sweep_are_in_the_verdict() -> None:
    chosen = config(count=10, time=6.0, time_budget=60.0, min_runs=3)
    rows = rows_of([report()] * 2)
    why = "the time budget of 60 s is used up"
    verdict, reason, clause = verdict_of_sweep(chosen, rows, exposures_of(chosen, rows), why)
    assert (verdict, clause) == (Verdict.VACUOUS, "d")
    assert reason == (
        "2 of 10 runs: 2 PASS; 2 runs are fewer than the 3 of min_runs; ended early: the time budget of 60 s is used up"
    )
    enough = rows_of([report()] * 3)
    assert verdict_of_sweep(chosen, enough, exposures_of(chosen, enough), why).verdict is Verdict.VALID


def test_a_cell_without_a_run_makes_the_sweep_vacuous() -> None:
    chosen = config(count=2, time=6.0, faults=["usual", "none"], min_runs=1)
    rows = rows_of([report()] * 2)
    verdict, reason, clause = verdict_of_sweep(chosen, rows, exposures_of(chosen, rows), None)
    assert (verdict, clause) == (Verdict.VACUOUS, "d")
    assert "no run of tutorial list-append, faults none, sim was made" in reason


def test_a_run_that_said_nothing_of_its_exposure_exercises_nothing() -> None:
    assert judged([report(exposure=Exposed(purposes=("P1",)), promises=())] * 3)[0] is Verdict.VACUOUS
