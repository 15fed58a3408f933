"""A child process that writes a journal for ever, and says on its standard output how much it has recorded.

Run as `python -m tests.unit.journaling JOURNAL`.
"""

import os
import sys
from pathlib import Path

from harness.core.record import SCHEMA, Header, Invoke
from harness.record.journal import JournalWriter


def main() -> None:
    """Append, then report, until killed. Each report is one byte: what was not recorded is not reported."""
    with JournalWriter(Path(sys.argv[1])) as journal:
        journal.append(Header(SCHEMA, "2026-01-01T00:00:00Z"))
        index = 0
        while True:
            journal.append(Invoke(index, index, index, 0, "write", "x" * (index % 5000)))
            os.write(1, b".")
            index += 1


if __name__ == "__main__":
    main()
