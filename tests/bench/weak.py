"""Histories of stores that are only causal, or less: seconds, megabytes and verdicts. Run: python -m tests.bench.weak.

The history is judged at its own level, and at serializable. Each judgement runs in a process of its own, so that its
peak of memory is its own. A ratio above 1.2 times that of the sizes says that the growth is not linear.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import Operation, chunks, to_transactions
from checkers.transactions.check import Options, check_sources
from harness.core.columns import GROUP_OPS, Transactions
from tests.bench import generated
from tests.worlds.weak_stores import causal

MODELS: Final = (
    "strong-session-monotonic-atomic-view",
    "strong-session-read-atomic",
    "strong-session-causal",
    "serializable",
)
SESSIONS, KEYS, SEED = 448, 1_000, 7


def write(folder: Path, transactions: int) -> None:
    """The history as Parquet, in row groups of the usual size."""
    operations = causal(Random(SEED), transactions=transactions, sessions=SESSIONS, keys=KEYS)
    generated.write_slices(folder, _slices(operations))


def _slices(operations: Iterator[Operation]) -> Iterator[Transactions]:
    while part := list(islice(operations, GROUP_OPS)):
        yield to_transactions(part)


def judged(folder: Path, model: str) -> tuple[float, int, str]:
    """Seconds, peak in MB, and the verdict."""
    begin = time.perf_counter()
    judgement = check_sources(chunks(folder), LocalEngine(), Options(model=model))
    took = time.perf_counter() - begin
    verdict = "unknown" if judgement.unknown else "holds"
    if judgement.findings:
        verdict = "violated: " + ", ".join(sorted({finding.anomaly for finding in judgement.findings}))
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, verdict


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [40_000, 400_000]
    print(f"seed {SEED}, {SESSIONS} sessions, {KEYS} keys, threads")
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            folder = Path(name, str(size))
            write(folder, size)
            for model in MODELS:
                with get_context("spawn").Pool(1) as pool:
                    took, peak, verdict = pool.apply(judged, (folder, model))
                print(f"{size:>9,} transactions  {model:38} {took:7.2f} s {peak:6,} MB  {verdict}", flush=True)


if __name__ == "__main__":
    main()
