"""The CPU seconds of a command in this checkout and in another one, in turns: medians of five, and the ratio.

    python -m tests.bench.beside BEFORE seamark check history.edn --quiet
    python -m tests.bench.beside BEFORE python -m tests.bench.simulation ndb 7

The program is that of the `.venv` of each checkout, which is the working folder: name files by whole paths. Compile
both checkouts first (`python -m compileall`).
"""

import sys
import tempfile
from pathlib import Path

from tests.bench.start import shown


def main(before: str, program: str, *arguments: str) -> None:
    """Print one line: after, before, and how often the first fits into the second."""
    checkouts = (Path(__file__).resolve().parents[2], Path(before).resolve())
    commands = [
        ["env", "-C", str(checkout), str(checkout / ".venv" / "bin" / program), *arguments] for checkout in checkouts
    ]
    with tempfile.TemporaryDirectory() as folder:
        print(shown(" ".join((program, *arguments))[-34:], commands, Path(folder), lambda: None))


if __name__ == "__main__":
    main(*sys.argv[1:])
