"""Monotonic: few appends and many reads, so that each process reads the same list repeatedly."""

from harness.core.record import MicroOp
from harness.scenario.workloads.grouped import Design, Turn, promise

LIFE = 100
APPEND_PERCENT = 30


def monotonic(turn: Turn) -> tuple[MicroOp, ...]:
    """One micro-operation: an append, or a read."""
    if turn.percent < APPEND_PERCENT:
        return (MicroOp("append", turn.keys[0], turn.number),)
    return (MicroOp("r", turn.keys[0]),)


MONOTONIC = Design(
    check="monotonic",
    size=1,
    life=LIFE,
    mops=monotonic,
    promises=(promise("monotonic", 1, "A process reads again every element that it has read.", "non-monotonic-read"),),
)
