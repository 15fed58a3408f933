"""The same seed gives the same run, whatever the process."""

import os
import subprocess
import sys
from pathlib import Path

from harness.core.record import Complete, Invoke, StreamEvent
from tests.scenario.simulation import toy

ROOT = Path(__file__).resolve().parents[3]
SEEDS = 50


def digests(hash_seed: str, *options: str) -> str:
    """What another process says of all seeds."""
    command = [sys.executable, "-m", "tests.scenario.simulation.toy", "0", str(SEEDS), *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_two_processes_with_different_hash_seeds_make_the_same_runs_beside_an_allocating_thread() -> None:
    one, other = digests("1"), digests("2", "allocate")
    assert len(set(one.splitlines())) == SEEDS
    assert one == other


def test_different_seeds_make_different_runs() -> None:
    assert len({toy.run(seed).digest for seed in range(10)}) == 10


def test_each_kind_of_fault_bites_in_most_runs() -> None:
    bitten: dict[str, int] = {}
    for seed in range(SEEDS):
        for fault, count in toy.run(seed).effects.items():
            bitten[fault] = bitten.get(fault, 0) + (count > 0)
    assert sorted(bitten) == sorted(
        ["cut", "stall", "delay", "bandwidth", "drop", "duplicate", "reorder", "crash", "pause", "consumer", "clock"]
    )
    assert min(bitten.values()) > SEEDS // 2, bitten


def test_subscribers_hear_only_what_was_asked_for_and_clients_go_on_after_the_faults() -> None:
    for seed in range(10):
        records = toy.run(seed).records
        invoked = {record.index for record in records if isinstance(record, Invoke)}
        rows = [record for record in records if isinstance(record, StreamEvent) and record.kind == "row"]
        assert {row.value for row in rows if row.value != 0} <= invoked, f"seed {seed}"
        assert any(record.outcome == "ok" for record in records[-300:] if isinstance(record, Complete)), f"seed {seed}"


def test_events_of_a_session_are_numbered_without_gap() -> None:
    for seed in range(10):
        numbers: dict[int, list[int]] = {}
        for record in toy.run(seed).records:
            if isinstance(record, StreamEvent):
                numbers.setdefault(record.session, []).append(record.number)
        assert numbers, f"seed {seed}"
        assert all(found == list(range(len(found))) for found in numbers.values()), f"seed {seed}"
