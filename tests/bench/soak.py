"""Prints what it takes to judge long runs, by shape: `python -m tests.bench.soak [SECONDS ...]`.

Runs of NDB with all faults, of so many simulated seconds (without them 60, 240, 480 and 900), each judged by threads in
a process of its own. Then invented runs of up to a thousand generations, ten thousand sessions, a hundred subscribers,
and a thousand sessions that begin with a snapshot of 200 keys: each shape is ten times as large as the one before it.
The smallest ones show what every history costs.
"""

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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
from tests.peak import peak_mb

DURATIONS_S: Final = (60, 240, 480, 900)
BITS: Final = 32
OPERATIONS: Final = 100  # In each session of each generation.
KEYS: Final = 200  # Of a snapshot.
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
    backfill="whole",
)


def invented(
    generation_count: int = 1,
    session_count: int = 1,
    subscribers: int = 2,
    *,
    keys: int = 10,
    operations: int = OPERATIONS,
) -> Iterator[Evidence]:
    """A run in which each session uses `keys` keys of its own, and everything is saved before each restart."""
    who, index, session = [f"s{number}" for number in range(subscribers)], count(), count(1)

    for generation in range(generation_count):
        if generation:
            yield State(0, "d1", "restart", generation, [generation, (generation + 1) << BITS])
        for part in range(session_count):
            number, at = next(session), (generation + 1) << BITS | (part + 1)
            yield from (_event(name, number, "open", at=at - 1) for name in who)
            for element in range(operations):
                key, op = keys * number + element % keys, next(index)
                append, seen = MicroOp("append", key, element), list[Json](range(element % keys, element + 1, keys))
                yield Invoke(op, 0, 0, element % 5, "txn", None, (append, MicroOp("r", key)))
                mops = (append, MicroOp("r", key, seen))
                yield Complete(op, 0, "ok", mops=mops, txn=op, epoch=at, commit_ts=at)
                yield from (_event(name, number, "row", append, at) for name in who)
            yield from (_event(name, number, "watermark", at=at) for name in who)
            yield from (_event(name, number, "close") for name in who)


def snapshots(sessions: int, *, keys: int = KEYS, operations: int = 20) -> Iterator[Evidence]:
    """A run of two subscribers, each of whose sessions begins with a snapshot of all keys."""
    lists: list[list[Json]] = [[] for _ in range(keys)]
    for op in range(keys + sessions * operations):
        number, place = divmod(op - keys, operations)
        at, key, begins = (1 << BITS) + op, op % keys, op >= keys and place == 0
        for name in ("s0", "s1") if begins else ():
            yield _event(name, number, "open", at=at - 1)
            for each, elements in enumerate(lists):
                yield _event(name, number, "backfill", MicroOp("append", each, elements[-1]), at - 1)
        append = MicroOp("append", key, op)
        lists[key].append(op)
        yield Invoke(op, 0, 0, op % 5, "txn", None, (append, MicroOp("r", key)) if begins else (append,))
        mops = (append, MicroOp("r", key, [*lists[key]])) if begins else (append,)
        yield Complete(op, 0, "ok", mops=mops, txn=op, epoch=at, commit_ts=at)
        for name in ("s0", "s1") if op >= keys else ():
            yield _event(name, number, "row", append, at)
            if place == operations - 1:
                yield _event(name, number, "watermark", at=at)
                yield _event(name, number, "close")


def _event(name: str, number: int, kind: str, mop: MicroOp | None = None, at: int | None = None) -> StreamEvent:
    key, value = (mop.key, mop.value) if mop is not None else (None, None)
    return StreamEvent(0, name, number, 0, kind, None, key, value, at, None, at, None)


SHAPES: Final[dict[str, tuple[Callable[[int], Iterator[Evidence]], tuple[int, ...]]]] = {
    "generations": (invented, (1, 10, 100, 1_000)),
    "sessions": (lambda count: invented(1, count, operations=20), (1, 10, 100, 1_000, 10_000)),
    "subscribers": (lambda count: invented(1, 10, count), (1, 10, 100)),
    f"sessions that begin with {KEYS} keys": (snapshots, (1, 10, 100, 1_000)),
}


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
    took_s, cpu_s = time.monotonic() - started, time.process_time() - cpu
    print(f"{name}: {took_s:.1f} s, {cpu_s:.2f} CPU s, {peak_mb():,} MB", flush=True)


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
        for name, (evidence, counts) in SHAPES.items():
            for size in counts:
                history = Path(folder) / f"{name}-{size}"
                write_history(evidence(size), history)
                measured(f"{size:,} {name}", "judged", history)


if __name__ == "__main__":
    main()
