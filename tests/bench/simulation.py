"""Prints how many simulated seconds the tutorial does in a second, journal included, without and with faults."""

import gc
import sys
import tempfile
import time
from pathlib import Path

from harness.journal import HistoryHash, JournalWriter
from harness.registry import load_cluster
from harness.scenario import Scenario, decide
from harness.simulation.child import simulate

SIMULATED_S = 60


def main() -> None:
    """Measure a few seeds."""
    seeds = [int(text) for text in sys.argv[1:]] or [7, 8, 9]
    gc.disable()
    for seed in seeds:
        for label, nemesis in (("without faults", ()), ("with faults", None)):
            scenario = Scenario(seed=seed, time_s=SIMULATED_S, nemesis=nemesis)
            cluster = load_cluster(scenario.cluster)
            decided = decide(scenario, cluster)
            with tempfile.TemporaryDirectory() as folder, JournalWriter(Path(folder, "journal.log")) as writer:
                history_hash = HistoryHash()
                started = time.perf_counter()
                _, world = simulate(scenario, cluster, decided, lambda one: (writer.append(one), history_hash.add(one)))
                took_s = time.perf_counter() - started
            messages = sum(world.handled().values())
            print(f"seed {seed} {label}: {SIMULATED_S / took_s:.1f} simulated seconds a second, {messages:,} events handled")


if __name__ == "__main__":
    main()
