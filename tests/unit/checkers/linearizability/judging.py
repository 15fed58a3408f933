"""The judgement of registers, for tests."""

from pathlib import Path

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import LIMITS, Limits, check
from harness.core.record import Evidence
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.registers.language import register_history

ENGINE = LocalEngine(2)
EMPTY = Register(is_initial_known=True, nil="absent")


def judged(
    folder: Path, evidence: str | list[Evidence], register: Register = EMPTY, limits: Limits = LIMITS
) -> Judgement:
    write_history(register_history(evidence) if isinstance(evidence, str) else evidence, folder / "history")
    return check(folder / "history", Context(engine=ENGINE, register=register), limits)
