"""The tutorial in simulation: it works, it repeats, and what its seeds reach is worth testing."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from clusters.tutorial.cluster import Tutorial
from harness.core.record import Complete, Fault, Invoke
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.amount import count
from tests.scenario.simulated import SECOND, Simulated

ROOT = Path(__file__).resolve().parents[2]
SEEDS = count(8)
FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))


def unseeds(hash_seed: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "tests.scenario.unseeds", str(FIRST), str(SEEDS), *arguments]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_one_seed_has_one_unseed_in_every_process() -> None:
    print(f"seeds {FIRST} to {FIRST + SEEDS - 1}")
    expected = unseeds("0")
    assert len({line.split()[1] for line in expected}) == SEEDS  # Different seeds give different runs.
    assert unseeds("424242") == expected
    assert unseeds("random", "beside-a-thread") == expected


def test_without_faults_every_operation_succeeds_and_every_row_arrives() -> None:
    run = Simulated(Scenario(cluster="tutorial", seed=FIRST + 7, time_s=10, nemesis=()))
    assert run.reason == "completed"
    assert not run.completions("info")
    appends = Counter(
        (str(mop.key), str(mop.value)) for done in run.completions("ok") for mop in done.mops or () if mop.f == "append"
    )
    assert len(appends) > 500
    for subscriber in ("s1", "s2"):
        rows = Counter((str(row.key), str(row.value)) for row in run.events("row") if row.subscriber == subscriber)
        assert rows == appends
    assert run.unexpected == dict.fromkeys(run.unexpected, 0)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + count(8)))
def test_under_faults_it_settles_and_the_faults_bite(seed: int) -> None:
    run = Simulated(Scenario(cluster="tutorial", seed=seed, time_s=20))
    assert run.reason == "completed"
    effects = [record for record in run.evidence if isinstance(record, Fault) and record.phase == "effect"]
    assert len(effects) >= 3
    assert sum(not record.effect for record in effects) <= 1
    assert len(run.completions("ok")) > 500


def test_a_primary_that_is_cut_off_is_replaced_and_acknowledges_nothing() -> None:
    links = tuple(f"{a}>{b}" for a, b in (("n1", "n2"), ("n2", "n1"), ("n1", "c1"), ("c1", "n1")))
    cut = Step(fault="cut", package="partition", at_ns=3 * SECOND, until_ns=8 * SECOND, targets=links)
    run = Simulated(Scenario(cluster="tutorial", seed=FIRST, time_s=12), Plan(steps=(cut,)))
    assert run.goals["a backup was promoted"] >= 1
    late = [done for done in run.completions("ok") if 5 * SECOND < done.time_ns < 8 * SECOND]
    assert len(late) > 50
    assert {done.node for done in late} == {"n2"}


def test_a_process_never_acts_again_after_an_unclear_outcome() -> None:
    crash = Step(fault="crash", package="crash", at_ns=2 * SECOND, until_ns=5 * SECOND, targets=("n1",))
    run = Simulated(Scenario(cluster="tutorial", seed=FIRST, time_s=8), Plan(steps=(crash,)))
    assert run.completions("info")
    retired: set[int] = set()
    process_of: dict[int, int] = {}
    for record in run.evidence:
        match record:
            case Invoke(index=index, process=process):
                assert process not in retired
                process_of[index] = process
            case Complete(index=index, outcome="info"):
                retired.add(process_of[index])
            case _:
                pass
    assert len(retired) == len(run.completions("info"))


def test_a_system_that_does_not_settle_in_its_time_is_called_a_stall() -> None:
    cluster = Tutorial()
    cluster.settle_ns = 1_000_000  # Shorter than any call takes.
    run = Simulated(Scenario(cluster="tutorial", seed=FIRST, time_s=2, nemesis=()), cluster=cluster)
    assert run.reason.startswith("stall: 0.001 s after healing")
    assert run.marks("end")[0].note == run.reason
