"""The search for a smaller case: the same result however many are tried at once, and whether it was interrupted."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from harness.core.errors import ScenarioError
from harness.core.generators.scripted import Due, Script
from harness.core.record import MicroOp
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case, Size
from harness.shrink.evidence import Evidence
from harness.shrink.passes import shrink
from harness.shrink.search import Exhausted, Search
from nemesis.plan import Plan, Step

MS = 1_000_000


def made() -> Case:
    load = tuple(
        Due(number * 10 * MS, number % 5, "txn", mops=(MicroOp("append", number % 4, number), MicroOp("r", 9)))
        for number in range(60)
    )
    steps = tuple(
        Step(fault="crash", package="crash", at_ns=at * MS, until_ns=(at + 200) * MS, targets=(f"n{at}", "n2"))
        for at in (0, 100, 200, 300)
    )
    return Case(
        scenario=Scenario(time_s=5, clients=5, script=Script(load=load, final=())),
        plan=Plan(steps=steps),
    )


def is_red(case: Case) -> bool:
    """Values 17 and 42 are appended in that order, and something strikes n200."""
    values = [mop.value for due in case.script.load for mop in due.mops or () if mop.f == "append"]
    return [each for each in values if each in {17, 42}] == [17, 42] and any(
        "n200" in step.targets for step in case.plan.steps
    )


def searched(file: Path, jobs: int, tries: int = 10_000) -> tuple[Case, int]:
    with Search(made(), is_red, file, jobs=jobs, tries=tries, tell=lambda size, count: None) as search:
        shrink(search, Evidence(0, 600 * MS), {})
        return search.case, search.tries


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, int]:
    return searched(tmp_path_factory.mktemp("alone") / "tries.jsonl", 1)


def test_what_the_symptom_does_not_need_is_left_out(alone: tuple[Case, int]) -> None:
    case, _ = alone
    assert case.size() == Size(steps=1, operations=2, keys=2, processes=1, seconds=1.0)
    assert [due.mops for due in case.script.load] == [(MicroOp("append", 1, 17),), (MicroOp("append", 2, 42),)]
    assert case.plan.steps[0].targets == ("n200",)
    assert is_red(case)


def test_without_evidence_the_run_first_ends_where_the_symptom_comes_about(tmp_path: Path) -> None:
    file = tmp_path / "tries.jsonl"
    with Search(made(), is_red, file, jobs=1, tries=10, tell=lambda size, count: None) as search:
        with pytest.raises(Exhausted):
            shrink(search, None, {})
        assert 420 * MS <= max(due.at_ns for due in search.case.script.load) < 500 * MS
        assert is_red(search.case)


def test_without_evidence_the_result_is_as_small(tmp_path: Path, alone: tuple[Case, int]) -> None:
    results = []
    for jobs in (1, 3):
        file = tmp_path / f"{jobs}.jsonl"
        with Search(made(), is_red, file, jobs=jobs, tries=10_000, tell=lambda size, count: None) as search:
            shrink(search, None, {})
            results.append(search.case)
    assert results[0] == results[1]
    assert results[0].size() == alone[0].size()


def test_the_result_is_the_same_however_many_are_tried_at_once(tmp_path: Path, alone: tuple[Case, int]) -> None:
    assert searched(tmp_path / "tries.jsonl", 3) == alone


def test_an_interrupted_search_goes_on_with_what_it_knew(tmp_path: Path, alone: tuple[Case, int]) -> None:
    file = tmp_path / "tries.jsonl"
    with pytest.raises(Exhausted):
        searched(file, 2, tries=25)
    file.write_bytes(file.read_bytes() + b'{"key": "half a li')
    known = len(file.read_bytes().splitlines())
    assert known >= 20
    assert searched(file, 2) == alone
    keys = [line for line in file.read_bytes().splitlines() if line.startswith(b'{"key":"')]
    assert len(keys) == len(set(keys)), "a case was tried twice"


def test_a_try_ahead_whose_turn_never_came_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "tries.jsonl"
    with Search(made(), is_red, file, jobs=1, tries=10, tell=lambda size, count: None) as search:
        ahead: Future[bool] = Future()
        ahead.set_result(False)
        search._running["ahead"] = ahead
        assert search.adopt([made()])
    assert b'{"key":"ahead","is_shown":false}' in file.read_bytes().splitlines()


def test_a_case_keeps_its_key_and_another_has_another() -> None:
    assert made().key() == made().key()
    assert made().key() != made().with_steps(()).key()


def test_a_run_that_takes_no_files_is_not_shrunk_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"takes no files .*: copy the run, and shrink that"):
        searched(tmp_path / "nowhere" / "tries.jsonl", 1)
