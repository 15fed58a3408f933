"""Two sites of NDB under random faults, judged by oracles that share nothing with the checkers."""

import os
from collections import Counter
from typing import Any

import pytest

from clusters.ndb.conflicts.rules import RULES
from clusters.ndb.shape import MS
from harness.core.record import State
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.oracles.ndb_active import Observed, complaints
from tests.scenario.simulated import Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "12")))
# Bug: a seed and a rule under which it shows, and an oracle that notices.
BUGS = {
    "window-uses-sent-epoch": (1, "epoch", "exceptions"),
    "author-not-set": (1, "epoch", "exceptions"),
    "epoch-bits-truncated": (1, "epoch", "exceptions"),
    "epoch-trans-row-only": (1, "epoch-trans", "exceptions"),
    "trans-deps-ignored": (2, "epoch-trans", "exceptions"),
    "no-realign": (1, "epoch", "end"),
    "max-delete-by-order": (1, "max", "exceptions"),
}
CUT = Plan(
    steps=(
        Step(
            fault="cut",
            package="partition",
            at_ns=800 * MS,
            until_ns=1400 * MS,
            targets=("a>b", "b>a"),
            args={},
        ),
    )
)


def bits(seed: int) -> int:
    return seed % 5


def simulated(seed: int, *bugs: str, rule: str | None = None, plan: Plan | None = None) -> Simulated:
    """One run; every rule has its turn."""
    number = seed % len(RULES) if rule is None else RULES.index(rule)
    parameters = {"rule": number, "epoch_bits": bits(seed)} | ({"epoch_ms": 80} if bugs else {})  # Full epochs.
    scenario = Scenario(
        cluster="ndb-active", seed=seed, time_s=2, workload="primaries", bugs=bugs, parameters=parameters
    )
    return Simulated(scenario, plan)


@pytest.fixture(scope="module")
def runs() -> dict[int, Simulated]:
    print(f"seeds {SEEDS[0]} to {SEEDS[-1]}")
    return {seed: simulated(seed) for seed in SEEDS}


def test_no_oracle_complains_of_a_correct_run(runs: dict[int, Simulated]) -> None:
    assert {run.reason for run in runs.values()} == {"completed"}
    found = {seed: complaints(run.evidence, bits(seed)) for seed, run in runs.items()}
    assert {seed: sentences for seed, sentences in found.items() if sentences} == {}


def test_the_runs_show_what_the_oracles_are_about(runs: dict[int, Simulated]) -> None:
    """Else their silence would say nothing. Rejected transactions had been acknowledged, which is legal."""
    goals: Counter[str] = Counter()
    for seed, run in runs.items():
        goals.update({goal: 1 for goal, count in run.goals.items() if count})
        observed = Observed(run.evidence, bits(seed))
        assert len(observed.done) > 50
        assert sum(map(len, observed.logs.values())) > 100
        rejected = {name for table in observed.exceptions.values() for name, _, _ in table}
        goals["an acknowledged transaction was rejected"] += any(each.txn in rejected for each in observed.done)
    for goal in (
        "an acknowledged transaction was rejected",
        "a change came back",
        "a change was in conflict with an unseen row",
        "a rounded epoch was in conflict",
        "a row was refreshed",
        "a smaller value was rejected",
        "a tracked read was in conflict",
        "a transaction was rejected for one that it builds on",
    ):
        assert goals[goal], goal


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert simulated(FIRST).unseed == runs[FIRST].unseed


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, rule, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug, rule=rule, plan=CUT).evidence, bits(seed))


@pytest.mark.parametrize("name", ["site-log", "exceptions", "site-state"])
def test_an_oracle_notices_what_lacks_at_the_end(runs: dict[int, Simulated], name: str) -> None:
    """The last item of each is taken away."""
    spoiled = [
        _spoiled(each) if isinstance(each, State) and each.object == name else each for each in runs[FIRST].evidence
    ]
    assert complaints(spoiled, bits(FIRST)) != {}


def _spoiled(state: State) -> State:
    value: Any = state.value
    return State(state.time_ns, state.node, state.object, state.key, value[:-1])
