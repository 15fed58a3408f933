"""The process of a run keeps what the run still needs, and no more."""

import gc
import sys
from pathlib import Path
from weakref import WeakSet

import pytest

from clusters.tutorial.data_node import DataNode
from harness.core.machine import Context, Durable, Settings
from harness.record.store import JOURNAL, RUN_FILE
from harness.run.running import prepare
from harness.runtimes.simulation import child
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step

MS = 1_000_000
CRASHES = 60
OBJECTS = 5_000  # In each life of a node, as a node with many rows has.


def test_crashed_machines_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = tuple(
        Step(
            fault="crash",
            package="crash",
            at_ns=nth * 60 * MS,
            until_ns=nth * 60 * MS + 30 * MS,
            targets=("n1",),
            args={"disk": "kept"},
        )
        for nth in range(1, CRASHES + 1)
    )
    scenario = Scenario(cluster="tutorial", seed=1, time_s=4, rate=10)
    run, _ = prepare(scenario, installed("tutorial"), tmp_path, Plan(steps=steps))
    machines: WeakSet[DataNode] = WeakSet()
    counts: list[int] = []
    recover = DataNode.recover

    def recover_as_a_cycle(machine: DataNode, durable: Durable, settings: Settings, context: Context) -> None:
        vars(machine)["rows"] = [machine, *([nth] for nth in range(OBJECTS))]
        machines.add(machine)
        counts.append(len(machines))
        recover(machine, durable, settings, context)

    monkeypatch.setattr(DataNode, "recover", recover_as_a_cycle)
    monkeypatch.setattr(child, "die_with_parent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["child", str(run / RUN_FILE), str(run / JOURNAL), "tutorial"])
    # How often Python collects depends on how much it holds: in a run's own process little, in that of the tests a lot.
    gc.collect()
    gc.freeze()
    gc.collect()
    try:
        child.main()
    finally:
        gc.unfreeze()
    assert len(counts) > CRASHES
    assert max(counts) < CRASHES // 2
