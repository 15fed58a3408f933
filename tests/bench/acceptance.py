"""What the transactional check must reach and should reach, what it took here, and what Elle took.

`python -m tests.bench.acceptance 100000000` measures a hundred million transactions too: a file of 5 GB. Histories are
without an anomaly; memory is that of all processes, pages that they share counted once. Elle's figures are of the
same kind of history on a quiet machine with two cores, and what is asked for is for such a one. On a busy machine CPU
seconds say more than seconds.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import getloadavg, getpid
from pathlib import Path
from typing import Final

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark import SparkEngine
from checkers.history.registers import Order, Trust
from checkers.history.transactions import Chunk, chunks
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.record.formats.load import load
from tests.bench import formats, generated
from tests.bench.check import check_command, spark
from tests.bench.generated import Shape
from tests.bench.watched import Watch, measured

SMALL, USUAL, LARGE, HUGE = 100_000, 1_000_000, 10_000_000, 100_000_000
WARM_REPEATS: Final = 3
BY_KEY: Final = Order(process=Trust.GIVEN, real_time=Trust.NONE)
BY_READS: Final = Order(process=Trust.NONE, real_time=Trust.NONE)
BY_TIME: Final = Order(process=Trust.NONE, real_time=Trust.GIVEN)
GROWTH_MUST, GROWTH_GOAL = 12, 10  # Times as much for ten times as many transactions.
COLUMNS: Final = ("s", "CPU s", "MB", "must", "goal", "Elle", "Elle/ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is asked for: seconds and megabytes, and what Elle took."""

    must_s: float | None = None
    goal_s: float | None = None
    must_mb: float | None = None
    goal_mb: float | None = None
    elle_s: float | None = None
    elle_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement. `is_clean`: the verdict was the right one."""

    took_s: float
    cpu_s: float
    peak_mb: float
    is_clean: bool


# Elle reads a history before it checks it: a check from nothing is both, a warm one of files that are read is one.
AIMS: Final = {
    "100k lists, Spark, warm": Aim(elle_s=7.0, elle_mb=2_700),
    "1M lists, Spark, warm": Aim(must_s=3, goal_s=1.3, elle_s=58, elle_mb=14_500),
    "1M lists, local, warm": Aim(must_s=1.5, goal_s=0.6, elle_s=58, elle_mb=14_500),
    "1M lists, Spark, from nothing": Aim(must_s=12, goal_s=6, elle_s=25 + 58, elle_mb=14_500),
    "1M lists, local, from nothing": Aim(elle_s=25 + 58, elle_mb=14_500),
    "100k registers, writes follow reads, Spark, warm": Aim(elle_s=18),
    "100k registers, sequential keys, Spark, warm": Aim(elle_s=67),
    "1M registers, linearizable keys, Spark, warm": Aim(must_s=15, goal_s=5),
    "1M lists, import of EDN": Aim(must_s=45, goal_s=15, elle_s=25),
    "10M lists, local, warm": Aim(must_s=18, goal_s=7.5),
    "10M lists, Spark, from nothing": Aim(must_s=40, goal_s=20, must_mb=5_000, goal_mb=3_500),
    "100M lists, Spark, from nothing": Aim(goal_s=300, must_mb=8_000, goal_mb=6_000),
}


def told(name: str, figure: Figure) -> str:
    """The line of a measurement."""
    aim = AIMS[name]
    ratio = f"{aim.elle_s / figure.took_s:.1f}" if aim.elle_s else ""
    sizes = ((aim.must_s, aim.must_mb), (aim.goal_s, aim.goal_mb), (aim.elle_s, aim.elle_mb))
    cells = (f"{figure.took_s:.2f}", f"{figure.cpu_s:.1f}", f"{figure.peak_mb:,.0f}", *map(_both, sizes), ratio)
    return line(name, cells) + ("" if figure.is_clean else "  with another verdict than the right one")


def _both(size: tuple[float | None, float | None]) -> str:
    took_s, peak_mb = size
    return ", ".join([*([f"{took_s:g} s"] if took_s else []), *([f"{peak_mb:,.0f} MB"] if peak_mb else [])])


def line(name: str, cells: tuple[str, ...]) -> str:
    """One line of the table."""
    widths = (8, 8, 8, 14, 14, 15, 10)
    return f"{name:50}" + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def best(work: Callable[[], bool], repeats: int) -> Figure:
    """The quickest of some times; then once more, for memory: to look at that takes time as well, the more there is."""
    times, are_clean = [], []
    eyes = Watch(getpid())
    for _ in range(repeats):
        before, begin = eyes.sample(), time.perf_counter()
        are_clean.append(work())
        times.append((time.perf_counter() - begin, eyes.sample() - before))
    with Watch(getpid()) as watch:
        are_clean.append(work())
    took_s, cpu_s = min(times)
    return Figure(took_s, cpu_s, watch.peak_mb, all(are_clean))


def warm(engine: Engine, history: tuple[Chunk, ...], options: Options | None = None, *, repeats: int) -> Figure:
    """A check of files by an engine that is there."""

    def work() -> bool:
        judgement = check_sources(history, engine, options)
        return not judgement.findings and not judgement.unknown

    return best(work, repeats)


def cold(engine: str, history: Path) -> Figure:
    """The command, from the start of its process to its exit code."""
    done = measured(check_command(engine, history))
    return Figure(done.took_s, done.cpu_s, done.peak_mb, done.code == 0)


def imported(folder: Path) -> Figure:
    """From a file of EDN to the files of a history."""
    path = folder / "usual.edn"
    os.environ["XDG_CACHE_HOME"] = str(folder)  # What another run imported is not found there.
    formats.write(path, USUAL)

    def work() -> bool:
        shutil.rmtree(folder / "imported", ignore_errors=True)
        return load(path, folder / "imported").is_complete

    return best(work, 1)


def lists(folder: Path, count: int) -> Path:
    """The files of a history of that many transactions on lists."""
    history = folder / f"lists-{count}"
    generated.write_slices(history, generated.slices(Shape(count=count)))
    return history


def registers(folder: Path, count: int) -> tuple[Chunk, ...]:
    """The files of a history of that many transactions on registers."""
    history = folder / f"registers-{count}"
    generated.write_slices(history, map(generated.registers_of, generated.slices(Shape(count=count))))
    return chunks(history)


def warm_figures(folder: Path, engine: SparkEngine) -> Iterator[tuple[str, Figure]]:
    """What a session that is warm takes."""
    small, usual = chunks(lists(folder, SMALL)), chunks(lists(folder, USUAL))
    yield "100k lists, Spark, warm", warm(engine, small, repeats=WARM_REPEATS)
    yield "1M lists, Spark, warm", warm(engine, usual, repeats=WARM_REPEATS)
    small, usual = registers(folder, SMALL), registers(folder, USUAL)
    for name, order, history in (
        ("100k registers, writes follow reads, Spark, warm", BY_READS, small),
        ("100k registers, sequential keys, Spark, warm", BY_KEY, small),
        ("1M registers, linearizable keys, Spark, warm", BY_TIME, usual),
    ):
        yield name, warm(engine, history, Options(order=order), repeats=WARM_REPEATS)
    yield "1M lists, import of EDN", imported(folder)


def figures(folder: Path, *, is_huge: bool) -> Iterator[tuple[str, Figure]]:
    """All measurements."""
    with spark(folder / "spark") as engine:
        yield from warm_figures(folder, engine)
    usual = folder / f"lists-{USUAL}"
    yield "1M lists, local, warm", warm(LocalEngine(), chunks(usual), repeats=WARM_REPEATS)
    yield "1M lists, local, from nothing", cold("local", usual)
    yield "1M lists, Spark, from nothing", cold("spark", usual)
    large = lists(folder, LARGE)
    yield "10M lists, local, warm", warm(LocalEngine(), chunks(large), repeats=1)
    yield "10M lists, Spark, from nothing", cold("spark", large)
    if is_huge:
        yield "100M lists, Spark, from nothing", cold("spark", lists(folder, HUGE))


def growth(name: str, usual: Figure, large: Figure) -> str:
    """How time and memory grow with the history."""
    took, peak = large.cpu_s / usual.cpu_s, large.peak_mb / usual.peak_mb
    told = f"10 times as many, {name}: {took:.1f} times the CPU seconds, {peak:.1f} times the memory"
    return f"{told} (must {GROWTH_MUST}, goal {GROWTH_GOAL})"


def main(sizes: tuple[int, ...]) -> None:
    """Print the table, a line as soon as it is measured."""
    print(f"seed {Shape(count=0).seed}; {getloadavg()[0]:.1f} processes were running already")
    print(line("", COLUMNS))
    done = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in figures(Path(folder), is_huge=HUGE in sizes):
            done[name] = figure
            print(told(name, figure), flush=True)
    for name in ("local, warm", "Spark, from nothing"):
        print(growth(name, done[f"1M lists, {name}"], done[f"10M lists, {name}"]))


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])))
