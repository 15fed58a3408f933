"""Runs as tests: the page's examples in a session of pytest, a failure's message, and strategies that stay sound."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import find, given, settings

import seamark
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide
from seamark.strategies import fault_plans, workloads
from tests.repo.test_docs import DOCS, blocks

QUICK = settings(max_examples=500, database=None)
FAILING = """

@seamark.test(cluster="tutorial", faults=["partition"], time_s=8, rate=30, seed=1, count=1, bugs=["lost-ack"])
def test_bug() -> None: ...


@seamark.test(cluster="tutorial", faults=["partition"], time_s=1, rate=5, count=1, vacuous="skip")
def test_idle(tmp_path) -> None: ...
"""


def session(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_page_runs_and_a_failure_names_the_command_that_repeats_it(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("\n".join(blocks(DOCS / "pytest.md", "python")) + FAILING, encoding="utf-8")
    ended = session(tmp_path, "--seamark-store", "kept")
    assert ended.returncode == 1, ended.stdout
    assert "1 failed, 3 passed, 1 skipped" in ended.stdout
    assert "test_bug[seed-1]" in ended.stdout
    assert "missing-event breaks TUT-3" in ended.stdout
    [kept] = (tmp_path / "kept" / "tutorial").glob("*-1")  # Neither those that passed nor the skipped one: seed 0.
    [command] = re.findall(r"repeat  seamark replay (\S+)", ended.stdout)
    assert (tmp_path / command).resolve() == kept
    assert len(seamark.runs(tmp_path / "kept")) == 2  # The skipped run is kept too, for its page.
    assert "testing.py" not in ended.stdout.split("short test summary")[0]


def test_the_example_with_a_bug_fails_with_the_message_on_the_page(tmp_path: Path) -> None:
    example, message = blocks(DOCS / "pytest.md", "python")[0], blocks(DOCS / "pytest.md", "")[0]
    planted = example.replace("count=2)", 'count=2, bugs=["late-row"])')
    (tmp_path / "test_own.py").write_text(planted, encoding="utf-8")
    ended = session(tmp_path)
    assert "1 failed, 1 passed" in ended.stdout
    name, verdict, finding = (line for line in message.splitlines() if re.search(r"seed-|ANOMALY|late-event", line))
    assert name.strip("_ ") in ended.stdout
    assert {verdict, finding} <= set(ended.stdout.splitlines())


def test_options_choose_the_seeds_of_all_tests(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("import seamark\n" + FAILING, encoding="utf-8")
    ended = session(tmp_path, "--collect-only", "--seamark-seed", "40", "--seamark-count", "2")
    names = re.findall(r"::(\S+)", ended.stdout)
    assert names == [f"{test}[seed-{seed}]" for test in ("test_bug", "test_idle") for seed in (40, 41)]
    refused = session(tmp_path, "--seamark-count", "0")
    assert refused.returncode not in {0, 5}
    assert "--seamark-count 1 or more" in refused.stdout + refused.stderr


def test_the_plugin_loads_nothing_that_a_session_would_have_to_wait_for() -> None:
    program = (
        "import sys, harness.testing.plugin; print([n for n in ('numpy', 'msgspec', 'seamark') if n in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@settings(max_examples=60)
@given(plan=fault_plans("ndb", time_s=5.0), scenario=workloads("ndb", names=["ndb-mix", "counter"]))
def test_whatever_is_drawn_can_be_carried_out(plan: seamark.Plan, scenario: seamark.Scenario) -> None:
    decided = decide(scenario, load_cluster(installed("ndb")), plan)
    assert decided.plan == plan
    assert len(plan.steps) <= 6
    assert decided.workload.name in {"ndb-mix", "counter"}


def test_a_plan_shrinks_to_one_early_fault() -> None:
    def is_cut(plan: seamark.Plan) -> bool:
        return any(step.fault == "cut" for step in plan.steps)

    found = find(fault_plans("tutorial", faults=["partition", "crash"]), is_cut, settings=QUICK)
    assert [step.fault for step in found.steps] == ["cut"]
    assert found.steps[0].at_ns == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: workloads("tutoriel"), "did you mean tutorial"),
        (lambda: workloads("tutorial", names=["list-apend"]), "did you mean list-append"),
        (lambda: fault_plans("tutorial", faults=["partitoin"]), "did you mean partition"),
        (lambda: seamark.test(cluster="tutorial", count=0), "at least 1"),
        (lambda: seamark.test(cluster="tutorial", time_s=0), "time is 0"),
        (lambda: seamark.verify(Scenario(cluster="tutorial"), plan="nowhere.json"), "nowhere.json"),
    ],
)
def test_what_cannot_be_tested_is_an_error_of_ours(call: Callable[[], object], message: str) -> None:
    with pytest.raises(seamark.ScenarioError, match=message):
        call()
