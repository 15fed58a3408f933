"""The process of a run in containers which also measures how late its sleeps wake up: lagging_child.py OUT RUN JOURNAL.

The milliseconds of each sleep of the load go to the file OUT, a line each.
"""

import asyncio
import runpy
import sys
import time
from pathlib import Path

from harness.runtimes.containers.deployment import Deployment

PERIOD_S = 0.005


async def lagging(deployment: Deployment) -> None:
    """Count, as the deployment does, and measure beside it, until the run ends."""
    measured: list[float] = []
    counting = asyncio.create_task(count(deployment))
    try:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(PERIOD_S)
            measured.append((time.perf_counter() - before - PERIOD_S) * 1000)
    finally:
        counting.cancel()
        OUT.write_text("\n".join(f"{each:.4f}" for each in measured), encoding="ascii")


if __name__ == "__main__":
    OUT = Path(sys.argv.pop(1))
    count = Deployment.count
    setattr(Deployment, "count", lagging)  # noqa: B010  A function takes the place of a method, for mypy too.
    runpy.run_module("harness.runtimes.containers.child", run_name="__main__")
