"""What users wait for: the start of a command, and a whole check of a file of EDN, in CPU seconds.

`python -m tests.bench.start BEFORE` compares with the checkout in the folder BEFORE, run by run in turns. Without it
each is compared with the import of the packages that every check needs, which is the least that a check can take.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.bench import formats

TURNS: Final = 5
SIZES: Final = (1_000, 10_000, 100_000)
LEAST: Final = "import typer, rich.console, msgspec, pyarrow.compute, pyarrow.parquet"
TEN: Final = "".join(
    f"{{:process 0, :type {kind}, :f :txn, :value [[:append {at} 1] [:r {at} {read}]]}}\n"
    for at in range(10)
    for kind, read in ((":invoke", "nil"), (":ok", "[1]"))
)


def cpu_s(command: Sequence[str], folder: Path) -> float:
    """The CPU seconds of a command and of all its processes. What it imports is found in `folder` the next time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=folder, env=os.environ | {"XDG_CACHE_HOME": str(folder)}, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shown(what: str, commands: Sequence[Sequence[str]], folder: Path, prepare: Callable[[], object]) -> str:
    """The medians of the commands, which take turns, and how often the first fits into the other."""
    took_s: list[list[float]] = [[] for _ in commands]
    for _ in range(TURNS):
        for times, command in zip(took_s, commands, strict=True):
            prepare()
            times.append(cpu_s(command, folder))
    ours, other = map(statistics.median, took_s)
    return f"{what:34} {ours:7.3f} CPU s  {other:7.3f} CPU s  {other / ours:5.2f}"


def main(before: str | None) -> None:
    """Print a line for each measurement: ours, what it is compared with, and the ratio."""
    python = Path(sys.executable)
    ours = str(python.with_name("seamark"))
    other = None if before is None else str(Path(before, ".venv", "bin", "seamark"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def told(what: str, arguments: Sequence[str], prepare: Callable[[], object]) -> None:
            compared = [str(python), "-c", LEAST] if other is None else [other, *arguments]
            print(shown(what, ([ours, *arguments], compared), folder, prepare), flush=True)

        def forget() -> None:
            shutil.rmtree(folder / "seamark", ignore_errors=True)

        (folder / "ten.edn").write_text(TEN, encoding="utf-8")
        told("--help", ["--help"], forget)
        told("check of 10 operations", ["check", "ten.edn", "--quiet", "--engine", "local"], forget)
        for size in SIZES:
            formats.write(folder / f"{size}.edn", size)
            check = ["check", f"{size}.edn", "--quiet", "--engine", "local"]
            told(f"check of {size:,} lists in EDN", check, forget)
            told(f"check of {size:,} lists, again", check, lambda: None)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
