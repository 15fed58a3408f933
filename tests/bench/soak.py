"""Prints what it takes to judge long runs, by shape: `python -m tests.bench.soak [SECONDS ...]`.

Runs of NDB with all faults, of so many simulated seconds (without them 60, 240, 480 and 900), each judged by threads in
a process of its own. Then invented runs of many generations, sessions and subscribers; each shape twice, the second
time four times as large: linear is a growth of 4.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from harness.core.promises import Bounds, StreamContract
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, State, StreamEvent
from harness.judging.checks import chosen, judgement_of
from harness.judging.engines import in_threads
from harness.judging.generations import generations
from harness.record.formats.parquet.parquet import write_history
from harness.run.running import execute, finish, prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario

DURATIONS_S: Final = (60, 240, 480, 900)
BITS: Final = 32
OPERATIONS: Final = 100  # In each session of each generation.
# Generations, sessions in each of them, and subscribers; then the same four times as large.
SHAPES: Final = (((10, 1, 2), (40, 1, 2)), ((3, 30, 2), (3, 120, 2)), ((3, 2, 5), (3, 2, 20)))
CONTRACT: Final = StreamContract(
    closed="<=",
    cut="position",
    position="epoch",
    order_key="key",
    versions="every",
    is_position_global=True,
    identity="position+key+value",
    wm_scope="session",
    has_gap_marker=True,
)


def invented(
    generation_count: int, session_count: int, subscribers: int, *, keys: int = 10, operations: int = OPERATIONS
) -> Iterator[Evidence]:
    """A run in which each session uses `keys` keys of its own, and everything is saved before each restart."""
    who, index, session = [f"s{number}" for number in range(subscribers)], count(), count(1)

    def event(name: str, number: int, kind: str, mop: MicroOp | None = None, at: int | None = None) -> StreamEvent:
        key, value = (mop.key, mop.value) if mop is not None else (None, None)
        return StreamEvent(0, name, number, 0, kind, None, key, value, at, None, at, None)

    for generation in range(generation_count):
        if generation:
            yield State(0, "d1", "restart", generation, [generation, (generation + 1) << BITS])
        for part in range(session_count):
            number, at = next(session), (generation + 1) << BITS | (part + 1)
            yield from (event(name, number, "open", at=at - 1) for name in who)
            for element in range(operations):
                key, op = keys * number + element % keys, next(index)
                append, seen = MicroOp("append", key, element), list[Json](range(element % keys, element + 1, keys))
                yield Invoke(op, 0, 0, element % 5, "txn", None, (append, MicroOp("r", key)))
                mops = (append, MicroOp("r", key, seen))
                yield Complete(op, 0, "ok", mops=mops, txn=op, epoch=at, commit_ts=at)
                yield from (event(name, number, "row", append, at) for name in who)
            yield from (event(name, number, "watermark", at=at) for name in who)
            yield from (event(name, number, "close") for name in who)


def judged(history: Path) -> None:
    """Judge that history by every check that needs no promise."""
    context = Context(engine=LocalEngine(), bounds=Bounds(saved_bits=BITS), contract=CONTRACT)
    with generations(history, context) as known:
        for check in chosen(context):
            judgement_of(check, known)


def judged_run(run: Path) -> None:
    """Judge that run."""
    judge_run(run, in_threads)


def measured(name: str, work: str, path: Path) -> None:
    """Print the seconds and the megabytes that the work took in a process of its own, from nothing."""
    child = multiprocessing.get_context("spawn").Process(target=_report, args=(name, work, path))
    child.start()
    child.join()


def _report(name: str, work: str, path: Path) -> None:
    started, cpu = time.monotonic(), time.process_time()
    globals()[work](path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    took_s, cpu_s = time.monotonic() - started, time.process_time() - cpu
    print(f"{name}: {took_s:.1f} s, {cpu_s:.1f} CPU s, {peak:,} MB", flush=True)


def main() -> None:
    """Measure all shapes."""
    durations = [int(text) for text in sys.argv[1:]] or DURATIONS_S
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for time_s in durations:
            code = installed("ndb")
            run, _ = prepare(Scenario(cluster="ndb", seed=7, time_s=time_s), code, Path(folder) / str(time_s))
            took_s = execute(run, code)
            finish(run)
            measured(f"NDB, {time_s} s, simulated in {took_s:.0f} s", "judged_run", run)
        for shape in (each for pair in SHAPES for each in pair):
            history = Path(folder) / "-".join(map(str, shape))
            write_history(list(invented(*shape)), history)
            generation_count, sessions, subscribers = shape
            name = f"{generation_count} generations of {sessions} sessions, {subscribers} subscribers"
            measured(name, "judged", history)


if __name__ == "__main__":
    main()
