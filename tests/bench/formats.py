"""Import of EDN: transactions as Elle records them, from the file to the Parquet files, with the memory that it takes.

The aim for a million transactions is 45 s, and 15 s would be good; 2 GB are allowed, all processes together.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Self, TextIO

from harness.record.formats.load import load

SIZES = (10_000, 100_000)  # On the command line any others: 1000000 needs half a minute to be made.
PROCESSES, KEYS, ELEMENTS = 20, 10, 32
SEED = 5


class Writer:
    """A serial history: transactions take effect when they complete."""

    def __init__(self, file: TextIO, random: Random) -> None:
        self._file, self._random = file, random
        self._lists: dict[int, list[int]] = {}
        self._counts: dict[int, int] = {}
        self._keys = list(range(KEYS))
        self._time_ns = self._index = 0

    def line(self, kind: str, process: int, steps: list[str]) -> None:
        """One map."""
        self._time_ns += self._random.randint(1_000, 50_000)
        rest = f":process {process}, :time {self._time_ns}, :index {self._index}"
        self._file.write(f"{{:type :{kind}, :f :txn, :value [{' '.join(steps)}], {rest}}}\n")
        self._index += 1

    def asked(self) -> list[tuple[int, int | None]]:
        """Keys, with what to append, or None for a read."""
        steps: list[tuple[int, int | None]] = []
        for _ in range(self._random.randint(1, 4)):
            lane = self._random.randrange(KEYS)
            key, value = self._keys[lane], None
            if self._random.random() < 0.5:
                value = self._counts[key] = self._counts.get(key, 0) + 1
                if value == ELEMENTS:
                    self._keys[lane] = KEYS + max(self._keys)
            steps.append((key, value))
        return steps

    def done(self, steps: list[tuple[int, int | None]]) -> list[str]:
        """The steps as they were carried out."""
        texts = []
        for key, value in steps:
            elements = self._lists.setdefault(key, [])
            if value is None:
                texts.append(f"[:r {key} [{' '.join(map(str, elements))}]]")
            else:
                elements.append(value)
                texts.append(f"[:append {key} {value}]")
        return texts


def write(path: Path, count: int) -> None:
    """A history of that many transactions; one in ten has no clear answer, or fails."""
    random = Random(SEED)
    opened: dict[int, list[tuple[int, int | None]]] = {}
    started = 0
    with path.open("w", encoding="utf-8") as file:
        writer = Writer(file, random)
        while started < count or opened:
            process = random.randrange(PROCESSES)
            steps = opened.pop(process, None)
            if steps is None and started == count:
                continue
            new = steps if steps is not None else writer.asked()
            asked = [f"[:r {key} nil]" if value is None else f"[:append {key} {value}]" for key, value in new]
            if steps is None:
                opened[process], started = new, started + 1
                writer.line("invoke", process, asked)
            elif random.random() < 0.9:
                writer.line("ok", process, writer.done(steps))
            else:
                writer.line(random.choice(["fail", "info"]), process, asked)


class Memory:
    """Watches how much this process and those that it began hold, shared pages counted once."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            self.peak_mb = max(self.peak_mb, sum(map(_held_mb, _family(os.getpid()))))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in path.read_text().split()]
        except OSError:  # It is gone.
            continue
        for child in children:
            yield from _family(child)


def _held_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:  # It is gone.
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        os.environ["XDG_CACHE_HOME"] = work  # What another run imported is not found there.
        for count in tuple(int(each) for each in sys.argv[1:] if each.isdecimal()) or SIZES:
            path = folder / f"{count}.edn"
            write(path, count)
            begin, before = time.perf_counter(), os.times()
            with Memory() as memory:
                load(path, folder / str(count))
            took_s, after = time.perf_counter() - begin, os.times()
            cpu_s = sum(after[:4]) - sum(before[:4])
            print(
                f"{count:>9,} transactions  {path.stat().st_size / 1e6:6.1f} MB  {took_s:6.2f} s"
                f"  ({cpu_s:.2f} s of CPU)  peak of all processes {memory.peak_mb:,.0f} MB"
            )
            path.unlink()


if __name__ == "__main__":
    main()
