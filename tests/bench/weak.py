"""Histories of weak stores: seconds, megabytes and verdicts. Run: python -m tests.bench.weak SIZES.

Registers of a causal store; and lists at read committed, and at snapshot isolation with lagging replicas, next to lists
of the same shape that are strictly serializable. Each is judged at its own level, and at serializable, in a process of
its own, so that its peak of memory is its own. A ratio above 1.2 times that of the sizes says that the growth is not
linear.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Final, cast

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import Operation, chunks, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.columns import GROUP_OPS, Transactions
from tests.bench import generated
from tests.peak import peak_mb
from tests.worlds.weak_stores import Isolation, causal, lists

MODELS: Final[dict[str, tuple[str, ...]]] = {
    "causal": (
        *("strong-session-monotonic-atomic-view", "strong-session-read-atomic", "strong-session-causal"),
        *("prefix", "strong-session-prefix", "update-atomic", "parallel-snapshot-isolation", "snapshot-isolation"),
    ),
    "read-committed": ("read-committed",),
    "snapshot-isolation": ("snapshot-isolation",),
    "strict-serializable": (),
}
SESSIONS, KEYS, SEED = 448, 1_000, 7
LIST_SESSIONS, LIST_KEYS = 20, 100


def write(folder: Path, store: str, transactions: int) -> None:
    """The history as Parquet, in row groups of the usual size."""
    if store == "causal":
        operations = causal(Random(SEED), transactions=transactions, sessions=SESSIONS, keys=KEYS)
    else:
        isolation = cast("Isolation", store)
        operations = lists(Random(SEED), isolation, transactions=transactions, sessions=LIST_SESSIONS, keys=LIST_KEYS)
    generated.write_slices(folder, _slices(operations))


def _slices(operations: Iterator[Operation]) -> Iterator[Transactions]:
    while part := list(islice(operations, GROUP_OPS)):
        yield to_transactions(part)


def judged(folder: Path, model: str) -> tuple[float, int, str]:
    """Seconds of CPU, peak in MB, and the verdict; if it is unknown, a reason."""
    begin = time.process_time()
    judgement = check_sources(chunks(folder), LocalEngine(), Options(model=model))
    took = time.process_time() - begin
    verdict = "unknown: " + next(iter(judgement.unknown.values())) if judgement.unknown else "holds"
    if judgement.findings:
        verdict = "violated: " + ", ".join(sorted({finding.anomaly for finding in judgement.findings}))
    return took, peak_mb(), verdict


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [40_000, 400_000]
    print(f"seed {SEED}, threads; causal: {SESSIONS} sessions, {KEYS} keys; lists: {LIST_SESSIONS}, {LIST_KEYS}")
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            for store, models in MODELS.items():
                folder = Path(name, f"{store}-{size}")
                write(folder, store, size)
                for model in (*models, "serializable"):
                    with get_context("spawn").Pool(1) as pool:
                        took, peak, verdict = pool.apply(judged, (folder, model))
                    print(f"{size:>9,} {store:20} {model:38} {took:7.2f} s {peak:6,} MB  {verdict}", flush=True)
                rmtree(folder)


if __name__ == "__main__":
    main()
