"""How many operations a second the journal records: an invocation and a completion each, hash included.

Run as `python -m tests.bench.journal`.
"""

import tempfile
import time
from pathlib import Path

from harness.core.record import Complete, Invoke, MicroOp
from harness.record.journal import HistoryHash, JournalWriter

OPERATIONS = 200_000
GOAL, MUST = 100_000, 30_000


def operations_per_second(folder: Path) -> float:
    """Measured over OPERATIONS transactions of two micro-operations, each recorded by two writes to a file."""
    asked = (MicroOp("r", 7), MicroOp("append", 8, 1))
    answered = (MicroOp("r", 7, [1, 2, 3, 4]), MicroOp("append", 8, 1))
    history_hash = HistoryHash()
    started = time.perf_counter()
    with JournalWriter(folder / "journal.log") as journal:
        for index in range(OPERATIONS):
            records = (
                Invoke(index, index * 1000, index * 1000, index % 5, "txn", None, asked),
                Complete(index, index * 1000 + 500, "ok", None, answered),
            )
            for record in records:
                journal.append(record)
                history_hash.add(record)
    return OPERATIONS / (time.perf_counter() - started)


def main() -> None:
    """Print the best of three, as other processes can only slow it down."""
    with tempfile.TemporaryDirectory() as name:
        rates = []
        for attempt in range(3):
            folder = Path(name) / str(attempt)
            folder.mkdir()
            rates.append(operations_per_second(folder))
    print(f"journal: {max(rates):,.0f} operations/s recorded, hash included (must {MUST:,}, goal {GOAL:,})")


if __name__ == "__main__":
    main()
