"""Prints the unseeds of runs of the tutorial: `python -m tests.scenario.unseeds FIRST COUNT [beside-a-thread]`."""

import sys
import threading

from harness.scenario.scenario import Scenario
from tests.scenario.simulated import Simulated


def allocate(is_over: threading.Event) -> None:
    """What another thread might do: nothing but take memory, so that objects land elsewhere."""
    kept: list[list[object]] = []
    while not is_over.is_set():
        kept.append([object() for _ in range(100)])
        if len(kept) > 500:
            kept.clear()


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    is_over = threading.Event()
    if "beside-a-thread" in sys.argv:
        threading.Thread(target=allocate, args=(is_over,), daemon=True).start()
    for seed in range(first, first + count):
        run = Simulated(Scenario(cluster="tutorial", seed=seed, time_s=4, rate=60))
        print(seed, run.unseed)
    is_over.set()


if __name__ == "__main__":
    main()
