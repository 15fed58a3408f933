"""Prints what the model of NDB costs: two groups of two data nodes, without faults, at short epochs and at long ones.

Run: python -m tests.bench.ndb [SEED ...]. Messages are counted in a run of their own, which is traced.
"""

import gc
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from harness.core.record import Evidence
from harness.core.trace import Window
from harness.record.journal import HistoryHash, JournalWriter
from harness.runtimes.simulation.child import simulate
from harness.runtimes.simulation.tracer import Tracer
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Decided, Scenario, decide

SIMULATED_S = 30
EPOCHS_MS = (10, 100)
ALWAYS = Window(from_ns=0, to_ns=10**15)
RECEIVED = b'"what":"handle"'  # A message that a node handled, as a trace writes it.


def measure(scenario: Scenario, decided: Decided, folder: Path) -> tuple[float, int]:
    """Seconds of processor time that the simulation took, journal included, and the events that its nodes handled."""
    history_hash = HistoryHash()
    with JournalWriter(folder / "journal.log") as writer:

        def record(evidence: Evidence) -> None:
            writer.append(evidence)
            history_hash.add(evidence)

        started = time.process_time()
        _, world = simulate(scenario, load_machines(installed(scenario.cluster)), decided, record)
        return time.process_time() - started, sum(world.handled().values())


def messages(scenario: Scenario, decided: Decided, folder: Path) -> int:
    """How many messages the nodes handle in that run."""
    with Tracer(ALWAYS, folder / "trace.jsonl") as tracer:
        simulate(scenario, load_machines(installed(scenario.cluster)), decided, lambda _: None, tracer)
    with (folder / "trace.jsonl").open("rb") as lines:
        return sum(RECEIVED in line for line in lines)


def main() -> None:
    """Measure each seed with each length of the epochs."""
    seeds = [int(text) for text in sys.argv[1:]] or [7]
    gc.disable()
    for seed in seeds:
        for epoch_ms in EPOCHS_MS:
            scenario = Scenario(cluster="ndb", seed=seed, time_s=SIMULATED_S, nemesis=())
            drawn = decide(scenario, load_machines(installed("ndb")))
            parameters = drawn.settings.parameters | {"epoch_ms": epoch_ms}
            decided = msgspec.structs.replace(
                drawn, settings=msgspec.structs.replace(drawn.settings, parameters=parameters)
            )
            with tempfile.TemporaryDirectory() as folder:
                took_s, events = measure(scenario, decided, Path(folder))
                count = messages(scenario, decided, Path(folder))
            each_us = took_s / count * 1e6
            print(
                f"seed {seed} epochs of {epoch_ms} ms: {count / SIMULATED_S:,.0f} messages a simulated second, "
                f"{SIMULATED_S / took_s:.1f} simulated seconds a second, {each_us:.1f} us for each message with "
                f"all it causes ({took_s / events * 1e6:.1f} us for each event)"
            )


if __name__ == "__main__":
    main()
