"""From the descriptors of a register history's chunks to the verdict, on both engines, with all orders of versions.

tests/bench/acceptance.py says what is asked for.
"""

import tempfile
import time
from pathlib import Path

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark import SparkEngine, start_session, warm_up
from checkers.history.registers import ORDER, Order, Trust
from checkers.history.transactions import Chunk, chunks
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.judging.engines import WITH_KERNELS
from tests.bench import generated

SIZES = (10_000, 100_000, 1_000_000)
ORDERS = {
    "writes follow reads": Order(process=Trust.NONE, real_time=Trust.NONE),
    "timed by process and real time": ORDER,
    "given by real time": Order(process=Trust.NONE, real_time=Trust.GIVEN),
}
SEED = 7
REPEATS = 2


def seconds(engine: Engine, history: tuple[Chunk, ...], order: Order) -> tuple[float, int]:
    """The best time of some, and the number of findings, which should be none."""
    best, findings = float("inf"), 0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        judgement = check_sources(history, engine, Options(order=order))
        best = min(best, time.perf_counter() - begin)
        findings = len(judgement.findings) + len(judgement.unknown)
    return best, findings


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = start_session(folder / "spark", loaded=WITH_KERNELS)
        warm_up(session)
        print(f"seed {SEED}")
        for size in SIZES:
            shape = generated.Shape(count=size, seed=SEED)
            generated.write_slices(folder / str(size), map(generated.registers_of, generated.slices(shape)))
            history = chunks(folder / str(size))
            for engine in (LocalEngine(), SparkEngine(session)):
                for words, order in ORDERS.items():
                    took_s, findings = seconds(engine, history, order)
                    print(f"{size:>9,} transactions  {engine.name:5}  {took_s:6.2f} s  {words}, {findings} findings")
        session.stop()


if __name__ == "__main__":
    main()
