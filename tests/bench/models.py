"""Registers by the built-in check and by the example of a user's model: `python -m tests.bench.models`.

Both judge the same files, on one core. The user's model must not take more than 1.5 times as long.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import check
from checkers.own.model import linearizable
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.property.test_models import MODELS
from tests.worlds.registers.histories import correct, records

SHAPES: Final = ((400, 25, 4), (100, 100, 4), (20, 500, 5), (1, 5_000, 4))  # Registers, operations of each, processes.
REPEATS: Final = 3


def took(judge: Callable[[], Judgement]) -> float:
    """The least CPU seconds of some repetitions. Raises AssertionError if there is a finding, or no answer."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time()
        judgement = judge()
        best = min(best, time.process_time() - begin)
        assert (judgement.findings, judgement.unknown) == ((), {}), judgement
        assert sum(judgement.witnesses.values()) > 0
    return best


def main() -> int:
    """Compare both on each shape."""
    worst = 0.0
    row = linearizable(MODELS.Register(0)).row()
    context = Context(engine=LocalEngine(1), register=Register(initial=0, is_initial_known=True))
    for model in ("register", "cas-register"):
        for registers, operations, processes in SHAPES:
            draw = Random(f"{model} {registers}")
            lives = {key: correct(draw, model, count=operations, processes=processes) for key in range(registers)}
            with tempfile.TemporaryDirectory(prefix="models-") as name:
                folder = Path(name, "history")
                write_history(records(dict(lives.items())), folder)
                built_in, own = took(lambda: check(folder, context)), took(lambda: row.judge(folder, context))  # noqa: B023
            worst = max(worst, own / built_in)
            shape = f"{registers:4d} of {operations:5d} operations, {processes} processes"
            print(f"{model:13} {shape}: built-in {built_in:6.3f} s, own {own:6.3f} s, {own / built_in:.2f} times")
    print(f"at most {worst:.2f} times")
    return worst > 1.5


if __name__ == "__main__":
    sys.exit(main())
