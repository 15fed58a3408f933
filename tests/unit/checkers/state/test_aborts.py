"""Operations that failed for a reason which takes a fault."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from checkers.engine.protocol import Context
from checkers.state import aborts
from harness.core.verdict import Judgement
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies

REASON = "rolled back alive"


def judged(run: Run, folder: Path, *reasons: str) -> Judgement:
    return aborts.check(run.write(folder), Context(engine=ENGINE, bounds=replace(BOUNDS, spurious=reasons)))


def failing(at_ms: int) -> Run:
    """An operation that takes, and two that fail at that time."""
    run = Run()
    run.append(10, {1: 1}, at=5)
    for error in ("n1: rolled back alive", "n1: write conflict"):
        run.complete(at_ms + 50, run.invoke(at_ms, {1: 2}), {1: 2}, "fail", error=error)
    return run


def test_a_failure_for_that_reason_is_found(tmp_path: Path) -> None:
    judgement = judged(failing(100), tmp_path, REASON)
    (finding,) = judgement.findings
    assert (finding.anomaly, finding.ops) == ("spurious-abort", (1,))
    assert finding.sentence == "T1 failed at 0.150 s (n1: rolled back alive), though no fault was in force."
    assert judgement.witnesses == {"spurious-abort": 3}


def test_a_failure_at_once_is_found(tmp_path: Path) -> None:
    run = Run()
    run.complete(100, run.invoke(100, {1: 2}), {1: 2}, "fail", error="n1: rolled back alive")
    judgement = judged(run, tmp_path, REASON)
    assert anomalies(judgement) == ["spurious-abort"]
    assert judgement.witnesses == {"spurious-abort": 1}


@pytest.mark.parametrize(("count", "witnesses"), [(1, 3), (2, 1), (3, 0)])
def test_where_only_wide_operations_meet_the_reason_the_others_say_nothing(
    tmp_path: Path, count: int, witnesses: int
) -> None:
    run = failing(100)
    run.append(300, {1: 5, 2: 6}, at=9)
    run.append(400, {}, at=9)
    bounds = replace(BOUNDS, spurious=("something else",), spurious_keys=count)
    judgement = aborts.check(run.write(tmp_path), Context(engine=ENGINE, bounds=bounds))
    assert (judgement.findings, judgement.witnesses["spurious-abort"]) == ((), witnesses + (count == 1))


def test_without_declared_reasons_nothing_is_judged(tmp_path: Path) -> None:
    judgement = judged(failing(100), tmp_path)
    assert (judgement.findings, judgement.witnesses) == ((), {"spurious-abort": 0})


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (120, 130, []),
        (20, 60, []),  # Its grace lasts until 260.
        (151, 200, ["spurious-abort"]),
    ],
)
def test_a_fault_explains_failures_up_to_the_end_of_its_grace(
    tmp_path: Path, begin: int, end: int, expected: list[str]
) -> None:
    run = failing(100)
    run.fault("crash", "d1", begin, end)
    assert anomalies(judged(run, tmp_path, REASON)) == expected
