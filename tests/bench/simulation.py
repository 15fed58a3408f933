"""Prints how many simulated seconds a cluster does in a second, journal included, without and with faults.

Run: python -m tests.bench.simulation [CLUSTER] [SEED ...]. Without a cluster it is the tutorial.
"""

import gc
import sys
import tempfile
import time
from pathlib import Path

from harness.core.record import Evidence
from harness.record.journal import HistoryHash, JournalWriter
from harness.runtimes.simulation.child import simulate
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Scenario, decide

SIMULATED_S = 60


def measure(scenario: Scenario, writer: JournalWriter) -> tuple[float, int]:
    """Seconds of processor time that a simulation took, and the events that its nodes handled."""
    history_hash = HistoryHash()

    def record(evidence: Evidence) -> None:
        writer.append(evidence)
        history_hash.add(evidence)

    cluster = load_machines(installed(scenario.cluster))
    decided = decide(scenario, cluster)
    started = time.process_time()
    _, world = simulate(scenario, cluster, decided, record)
    return time.process_time() - started, sum(world.handled().values())


def main() -> None:
    """Measure a few seeds."""
    named = [text for text in sys.argv[1:] if not text.isdigit()]
    seeds = [int(text) for text in sys.argv[1:] if text.isdigit()] or [7, 8, 9]
    cluster = named[0] if named else "tutorial"
    gc.disable()
    for seed in seeds:
        for label, nemesis in (("without faults", ()), ("with faults", None)):
            scenario = Scenario(cluster=cluster, seed=seed, time_s=SIMULATED_S, nemesis=nemesis)
            with tempfile.TemporaryDirectory() as folder, JournalWriter(Path(folder, "journal.log")) as writer:
                took_s, messages = measure(scenario, writer)
            speed = SIMULATED_S / took_s
            each_us = 1_000_000 * took_s / messages
            print(
                f"seed {seed} {label}: {speed:.1f} simulated seconds a second, {messages:,} events of {each_us:.1f} us"
            )


if __name__ == "__main__":
    main()
