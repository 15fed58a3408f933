"""From the descriptors of a history's chunks to the verdict, on both engines, beside the figures that are aimed at.

The aims are a prototype's, measured on two quiet cores (two threads; Spark's session warm).
"""

import resource
import tempfile
import time
from pathlib import Path

from checkers.chunks import Chunk, chunks
from checkers.engine import Engine, LocalEngine
from checkers.serializability import check
from checkers.spark import SparkEngine, start_session, warm_up
from tests.bench import generated

SIZES = (10_000, 100_000, 1_000_000)
AIMS_S = {"local": (0.02, 0.12, 0.6), "spark": (0.35, 0.5, 1.3)}
SEED = 7
REPEATS = 3


def seconds(engine: Engine, history: tuple[Chunk, ...]) -> tuple[float, int]:
    """The best time of some, and the number of findings, which should be none."""
    best, findings = float("inf"), 0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        judgement = check(history, engine)
        best = min(best, time.perf_counter() - begin)
        findings = len(judgement.findings) + len(judgement.unknown)
    return best, findings


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = time.perf_counter()
        session = start_session(folder / "spark")
        warm_up(session)
        print(f"seed {SEED}; Spark's start and first job: {time.perf_counter() - begin:.1f} s")
        for at, size in enumerate(SIZES):
            generated.write(folder / str(size), generated.transactions(size, SEED))
            history = chunks(folder / str(size))
            for engine in (LocalEngine(), SparkEngine(session)):
                took_s, findings = seconds(engine, history)
                aim_s = AIMS_S[engine.name][at]
                line = f"{size:>9,} transactions  {engine.name:5}  {took_s:6.2f} s  (aim {aim_s:.2f} s)"
                print(f"{line}  {findings} findings")
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of this process: {peak_mb:,.0f} MB")
        session.stop()


if __name__ == "__main__":
    main()
