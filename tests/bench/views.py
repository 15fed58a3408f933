"""Measures the check of views: 100,000 and 1,000,000 updates, 10,000 answers, four kinds of view.

    python -m tests.bench.views [local]

Prints the time of each judgement, without the writing of the history, and the factor between the sizes.
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.protocol import Context
from checkers.state import views
from harness.core.promises import Bounds, View
from harness.core.record import Complete, Evidence, Invoke
from harness.record.formats.parquet.parquet import write_history
from tests.bench.check import spark

KEYS, BATCH, ANSWERS = 40, 10, 10_000
VIEWS = (
    View(name="sums", operator="sum", inputs=("a",)),
    View(name="kinds", operator="distinct", inputs=("a",)),
    View(name="tops", operator="top-1", inputs=("a",)),
    View(name="pairs", operator="join", inputs=("a", "b")),
)
SIZES = (100_000, 1_000_000)


def history(updates: int) -> Iterator[Evidence]:
    """Changes of two collections that stay small, and answers about the views in turn."""
    dice, held = random.Random(7), {"a": [[0] for _ in range(KEYS)], "b": [[0] for _ in range(KEYS)]}
    changes, every = updates // BATCH, updates // BATCH // ANSWERS
    index, first = 0, [[name, key, 0, 1] for name in held for key in range(KEYS)]
    for number in range(changes):
        rows: list[Any] = first if number == 0 else []
        while number and len(rows) < BATCH:
            name, key = dice.choice(("a", "b")), dice.randrange(KEYS)
            values = held[name][key]
            if len(values) > 2:
                rows.append([name, key, values.pop(0), -1])
            else:
                values.append(dice.randrange(100))
                rows.append([name, key, values[-1], 1])
        yield Invoke(index, 2 * index, 2 * index, index % 8, "change", rows)
        yield Complete(index, 2 * index + 1, "ok", rows, commit_ts=number + 1)
        index += 1
        if number % max(1, every) == 0:
            view = VIEWS[number // max(1, every) % len(VIEWS)]
            shown = [[key, row] for key in range(KEYS) for row in _rows(view, held["a"][key], held["b"][key])]
            yield Invoke(index, 2 * index, 2 * index, index % 8, "query", view.name)
            answer: Any = [view.name, shown]
            yield Complete(index, 2 * index + 1, "ok", answer, read_ts=number + 1)
            index += 1


def _rows(view: View, left: list[int], right: list[int]) -> list[Any]:
    match view.operator:
        case "sum":
            return [sum(left)] if left else []
        case "distinct":
            return [*dict.fromkeys(left)]
        case "top-1":
            return [max(left)] if left else []
        case _:
            return [[one, other] for one in left for other in right]


def measured(folder: Path, engine: Engine) -> None:
    """Print the time for each size, and the factor."""
    times = []
    for size in SIZES:
        begin = time.perf_counter()
        judgement = views.check(folder / str(size), Context(engine=engine, bounds=Bounds(views=VIEWS)))
        times.append(time.perf_counter() - begin)
        assert judgement.findings == ()
        compared = judgement.witnesses[views.WRONG]
        print(f"{engine.name}: {size:,} updates: {times[-1]:.1f} s, {compared:,} keys compared", flush=True)
    print(f"{engine.name}: factor {times[1] / times[0]:.1f}", flush=True)


def main() -> None:
    """Print the times of both engines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in SIZES:
            write_history(history(size), folder / str(size))
        measured(folder, LocalEngine())
        if sys.argv[1:] != ["local"]:
            with spark(folder / "spark") as engine:
                measured(folder, engine)


if __name__ == "__main__":
    main()
