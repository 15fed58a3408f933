"""Binlogs and a replica of NDB under random faults, judged by oracles that share nothing with the checkers."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clusters.ndb.shape import MS
from harness.core.record import State
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.oracles.ndb_replica import Observed, complaints
from tests.scenario.simulated import Simulated

FIRST = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEAMARK_FUZZ_COUNT", "6")))
ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ("epochs", "hot-epochs", "schemas")
BACKUPS = {"gci_ms": 200}  # Short checkpoints, so that a backup has its end soon.
# Bug: a seed that shows it, and the oracle that notices.
BUGS = {
    "binlog-epoch-split": (1, "binlogs"),
    "apply-status-separate": (3, "reads"),
    "applier-parallel-no-hash": (1, "reads"),
}


def simulated(seed: int, *bugs: str) -> Simulated:
    """One run; every workload has its turn."""
    workload = WORKLOADS[seed % len(WORKLOADS)]
    return Simulated(Scenario(cluster="ndb-replica", seed=seed, time_s=5, workload=workload, bugs=bugs))


@pytest.fixture(scope="module")
def runs() -> dict[int, Simulated]:
    print(f"seeds {SEEDS[0]} to {SEEDS[-1]}")
    return {seed: simulated(seed) for seed in SEEDS}


def test_no_oracle_complains_of_a_correct_run(runs: dict[int, Simulated]) -> None:
    assert {run.reason for run in runs.values()} == {"completed"}
    found = {seed: complaints(run.evidence) for seed, run in runs.items()}
    assert {seed: sentences for seed, sentences in found.items() if sentences} == {}


def test_the_runs_show_what_the_oracles_are_about(runs: dict[int, Simulated]) -> None:
    """Else their silence would say nothing."""
    goals: Counter[str] = Counter()
    for run in runs.values():
        goals.update({goal: 1 for goal, count in run.goals.items() if count})
        observed = Observed(run.evidence)
        assert sum(kind == "epoch" for _, log in observed.of("binlog") for kind, _, _, _ in log) > 20
    for goal in (
        "a binlog had a change of the schema alone",
        "a channel stopped at an incident",
        "a channel was switched under load",
        "an epoch was tried again",
        "an incident was written",
    ):
        assert goals[goal], goal


def test_legal_two_binlogs_have_an_epoch_at_different_places(runs: dict[int, Simulated]) -> None:
    places: dict[int, set[int]] = {}
    for run in runs.values():
        for _, rows in Observed(run.evidence).of("binlog-index"):
            for epoch, position, _, _ in rows:
                places.setdefault(epoch, set()).add(position)
    assert any(len(each) > 1 for each in places.values())


def test_a_seed_has_the_same_unseed_again(runs: dict[int, Simulated]) -> None:
    assert simulated(FIRST).unseed == runs[FIRST].unseed


@pytest.mark.parametrize("bug", BUGS)
def test_an_oracle_notices_a_planted_bug(bug: str) -> None:
    seed, oracle = BUGS[bug]
    assert oracle in complaints(simulated(seed, bug).evidence)


@pytest.mark.parametrize("bugs", [(), ("backup-stop-gci-early",)])
def test_a_restore_is_the_state_after_its_epoch_unless_a_backup_ends_early(bugs: tuple[str, ...]) -> None:
    scenario = Scenario(
        cluster="ndb-replica", seed=4, time_s=4, workload="backups", bugs=bugs, clients=8, parameters=BACKUPS
    )
    run = Simulated(scenario, Plan(steps=()))
    assert run.goals["a backup was complete"] > 2
    assert [*complaints(run.evidence)] == (["restores"] if bugs else [])


@pytest.mark.parametrize("name", ["binlog", "binlog-index", "replica", "replica-state"])
def test_an_oracle_notices_what_lacks_at_the_end(runs: dict[int, Simulated], name: str) -> None:
    """The last record of a binlog, row of an index, schema change or list is taken away, or moved."""
    run = runs[FIRST]
    spoiled = [_spoiled(each) if isinstance(each, State) and each.object == name else each for each in run.evidence]
    assert complaints(spoiled) != {}


def _spoiled(state: State) -> State:
    value: Any = state.value
    changed: Any
    match state.object:
        case "binlog":  # The first transaction is gone: the others are not where the index has them.
            changed = value[1:]
        case "binlog-index":
            changed = [
                [epoch, position + 1, next_position + 1, count] for epoch, position, next_position, count in value
            ]
        case "replica":
            changed = [False, value[1], value[2][:-1]]
        case _:
            changed = [value[0], value[1][:-1]]
    return State(state.time_ns, state.node, state.object, state.key, changed)


def struck(targets: str, at_ms: int, until_ms: int, **args: Any) -> Simulated:
    """A run in which these nodes die."""
    crash = Step(
        fault="crash",
        package="crash",
        at_ns=at_ms * MS,
        until_ns=until_ms * MS,
        targets=tuple(targets.split()),
        args=args,
    )
    scenario = Scenario(
        cluster="ndb-replica", seed=3, time_s=4, workload="epochs", parameters={"gci_ms": 1000, "nap_permille": 0}
    )
    return Simulated(scenario, Plan(steps=(crash,)))


def test_legal_h15_a_replica_is_ahead_of_a_source_that_lost_epochs_and_only_incidents_show_it() -> None:
    """The schedule of docs/findings/ndb-epochs.md: two operations, and one failure of the whole cluster."""
    found = json.loads((ROOT / "docs/findings/ndb-epochs/replica-ahead.json").read_text(encoding="utf-8"))
    scenario = msgspec.convert({**found["scenario"], "cluster": "ndb-replica"}, Scenario)
    run = Simulated(scenario, msgspec.convert(found["plan"], Plan))
    assert (run.reason, complaints(run.evidence), len(run.completions("ok"))) == ("completed", {}, 3)
    observed = Observed(run.evidence)
    source = [state.value for state in run.evidence if isinstance(state, State) and state.object == "row"]
    assert source == [[2], [2]]
    replica: Any = observed.shown["replica-state", "r1"]
    assert replica[1] == [[1, [1]]]
    assert observed.shown["replica", "r1"][0]  # It has stopped, with what the source lost.
    for _, log in observed.of("binlog"):
        assert [(kind, rows) for kind, _, _, rows in log] == [
            ("epoch", [[1, 1]]),
            ("incident", [["cluster-failure", None]]),
            ("epoch", [[1, 2]]),
        ]


def test_legal_after_a_crash_an_index_lacks_the_last_epoch_of_its_binlog() -> None:
    run = struck("b1", 1500, 1800, disk="lost", point="before-index")
    assert complaints(run.evidence) == {}
    observed = Observed(run.evidence)
    indexed = {epoch for epoch, _, _, _ in observed.shown["binlog-index", "b1"]}
    log = observed.shown["binlog", "b1"]
    lacking = [at for at, (kind, epoch, _, _) in enumerate(log) if kind == "epoch" and epoch not in indexed]
    assert lacking
    assert all(any(kind == "incident" for kind, _, _, _ in log[at : at + 3]) for at in lacking)
