"""From the files of a history to its verdict: with a warm session, and from nothing (acceptance.py: what is asked for).

`python -m tests.bench.check 10000000` measures that size instead of the usual ones; a file of 100,000,000 takes 5 GB.
Each size: 32 and 256 appends for each key, without an anomaly; 32 with planted cycles and with stale reads. Memory is
that of all processes, pages that they share counted once. CPU seconds say more than seconds on a machine that is busy.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import getloadavg, getpid
from pathlib import Path
from typing import Final

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark import SparkEngine, start_session, stop_java, warm_up
from checkers.history.transactions import Chunk, chunks
from checkers.transactions.check import check_sources
from harness.judging.engines import WITH_KERNELS
from tests.bench import generated
from tests.bench.generated import Shape
from tests.bench.watched import Watch, watched

SIZES: Final = (10_000, 100_000, 1_000_000)
REPEATS: Final = 3
LARGE: Final = 5_000_000  # From here on once is enough.


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    what: str
    history: str
    count: int
    took_s: float
    cpu_s: float
    peak_mb: float
    found: str

    def __str__(self) -> str:
        figures = f"{self.took_s:7.2f} s {self.cpu_s:7.2f} CPU s {self.peak_mb:7,.0f} MB"
        return f"{self.count:>11,}  {self.history:11}  {self.what:19} {figures}  {self.found}"


def shapes(count: int) -> dict[str, Shape]:
    """The histories of one size."""
    return {
        "clean, 32": Shape(count=count),
        "clean, 256": Shape(count=count, key_elements=256),
        "planted, 32": Shape(count=count, planted=5),
        "stale, 32": Shape(count=count, stale_permille=1),
    }


def warm(engine: Engine, name: str, count: int, history: tuple[Chunk, ...]) -> Row:
    """The best of some times. Memory is that of this process and its children, Spark's session included."""
    best, cpu_s, found = float("inf"), 0.0, ""
    with Watch(getpid()) as watch:
        for _ in range(REPEATS if count < LARGE else 1):
            before, begin = watch.sample(), time.perf_counter()
            judgement = check_sources(history, engine)
            took_s = time.perf_counter() - begin
            if took_s < best:
                best, cpu_s = took_s, watch.sample() - before
            found = f"{len(judgement.findings)} findings, {len(judgement.unknown)} unknown"
    return Row(f"{engine.name}, warm", name, count, best, cpu_s, watch.peak_mb, found)


def check_command(engine: str, folder: Path) -> list[str]:
    """The command that judges the history in that folder."""
    return [str(Path(sys.executable).with_name("seamark")), "check", str(folder), "--engine", engine, "--quiet"]


def from_nothing(engine: str, name: str, count: int, folder: Path) -> Row:
    """One run of the command, from the start of its process to its exit code."""
    done = watched(check_command(engine, folder))
    return Row(f"{engine}, from nothing", name, count, done.took_s, done.cpu_s, done.peak_mb, f"exit {done.code}")


@contextmanager
def spark(folder: Path) -> Iterator[SparkEngine]:
    """A warm session, which ends with its Java."""
    begin = time.perf_counter()
    session = start_session(folder, loaded=WITH_KERNELS)
    try:
        warm_up(session)
        print(f"Spark's start and first job: {time.perf_counter() - begin:.1f} s", flush=True)
        yield SparkEngine(session)
    finally:
        stop_java(session, 60)


def measured(folder: Path, count: int) -> Iterator[Row]:
    """All measurements of one size."""
    histories = shapes(count)
    for name, shape in histories.items():
        generated.write_slices(folder / name, generated.slices(shape))
    for name in histories:
        yield warm(LocalEngine(), name, count, chunks(folder / name))
    with spark(folder / "spark") as engine:
        for name in histories:
            yield warm(engine, name, count, chunks(folder / name))
    for name in ("clean, 32", "stale, 32"):
        for kind in ("local", "spark"):
            yield from_nothing(kind, name, count, folder / name)


def main(sizes: tuple[int, ...]) -> None:
    """Print a line for each measurement."""
    print(f"seed {Shape(count=0).seed}; {getloadavg()[0]:.1f} processes were running already")
    for count in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for row in measured(Path(folder), count):
                print(row, flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
