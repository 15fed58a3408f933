"""CPU microseconds for each transaction, as a history grows from 10,000 to 4 million: the last may take 1.3 times the
first (RISE_MAX).

Lists and registers, strictly serializable, by threads, each size in a process of its own, which has judged a small
history before: its start does not count. `python -m tests.bench.growth SIZES` measures other sizes.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Final

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import chunks
from checkers.transactions.check import check_sources
from harness.core.arrow import leave_out_pandas
from harness.core.columns import Transactions
from tests.bench import generated

SIZES: Final = (10_000, 100_000, 1_000_000, 4_000_000)
RISE_MAX: Final = 1.3
WARM: Final = 10_000
REPEATS: Final = 3
LARGE: Final = 1_000_000  # From here on once is enough.
SEED: Final = 7


def as_they_are(part: Transactions) -> Transactions:
    """Lists stay lists."""
    return part


STORES: Final[dict[str, Callable[[Transactions], Transactions]]] = {
    "lists": as_they_are,
    "registers": generated.registers_of,
}


def write(folder: Path, store: str, count: int) -> Path:
    """The history as Parquet; returns its folder."""
    shape = generated.Shape(count=count, seed=SEED)
    generated.write_slices(folder, map(STORES[store], generated.slices(shape)))
    return folder


def cpu_us(small: Path, folder: Path, count: int) -> float:
    """The least CPU microseconds for each transaction, once the process is warm."""
    leave_out_pandas()
    check_sources(chunks(small), LocalEngine())
    least = float("inf")
    for _ in range(REPEATS if count < LARGE else 1):
        begin = time.process_time()
        judgement = check_sources(chunks(folder), LocalEngine())
        least = min(least, time.process_time() - begin)
        assert not judgement.findings, judgement.findings
    return 1e6 * least / count


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or list(SIZES)
    with tempfile.TemporaryDirectory() as name:
        for store in STORES:
            small, first = write(Path(name, f"{store}-small"), store, WARM), 0.0
            for size in sizes:
                folder = write(Path(name, store), store, size)
                with get_context("spawn").Pool(1) as pool:
                    each_us = pool.apply(cpu_us, (small, folder, size))
                first = first or each_us
                verdict = "" if each_us <= RISE_MAX * first else f"  more than {RISE_MAX}"
                print(f"{store:9} {size:>9,}  {each_us:5.2f} us each, {each_us / first:4.2f}{verdict}", flush=True)
                rmtree(folder)


if __name__ == "__main__":
    main()
