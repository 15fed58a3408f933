"""Import of EDN: transactions as Elle records them, from the file to the Parquet files, with the memory that it takes.

The aim for a million transactions is 60 s, and 20 s would be good; 2 GB are allowed.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TextIO

from harness.formats.load import load

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


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in tuple(map(int, sys.argv[1:])) or SIZES:
            path = folder / f"{count}.edn"
            write(path, count)
            begin, cpu = time.perf_counter(), time.process_time()
            load(path, folder / str(count))
            took_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
            peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            size_mb = path.stat().st_size / 1e6
            print(
                f"{count:>9,} transactions  {size_mb:6.1f} MB  {took_s:6.2f} s  ({cpu_s:.2f} s of CPU)"
                f"  peak so far {peak_mb:,.0f} MB"
            )
            path.unlink()


if __name__ == "__main__":
    main()
