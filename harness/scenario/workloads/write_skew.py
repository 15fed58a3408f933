"""Write skew: transactions read two keys and write one of them, so that each depends on the writes of others.

In any serial order each sees all earlier writes. Snapshots allow two of them to miss each other's.
"""

from harness.core.record import MicroOp
from harness.scenario.workloads.grouped import Design, Turn, promise

LIFE = 8


def write_skew(turn: Turn) -> tuple[MicroOp, ...]:
    """Reads of both keys, then an append to one; neighbours usually write to different keys."""
    target = turn.keys[(turn.place + (turn.percent < 20)) % 2]
    return (*turn.reads(turn.keys, (target,)), MicroOp("append", target, turn.number))


WRITE_SKEW = Design(
    check="write-skew",
    size=2,
    life=LIFE,
    mops=write_skew,
    promises=(
        promise("write-skew", 1, "One of two transactions that read both keys sees the other's write.", "write-skew"),
    ),
)
