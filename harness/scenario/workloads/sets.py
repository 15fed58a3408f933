"""Sets: elements are added one by one, and the set is read meanwhile and at the end."""

from harness.core.record import MicroOp
from harness.scenario.workloads.grouped import Design, Turn, promise

LIFE = 120
ADD_PERCENT = 55


def sets(turn: Turn) -> tuple[MicroOp, ...]:
    """An add, or a read. Each is a single step, so reads are consistent without locks."""
    if turn.percent < ADD_PERCENT:
        return (MicroOp("append", turn.keys[0], turn.number),)
    return (MicroOp("r", turn.keys[0]),)


SETS = Design(
    check="set-full",
    size=1,
    life=LIFE,
    mops=sets,
    promises=(
        promise(
            "sets",
            1,
            "An added element stays in the set.",
            "lost-element",
            "stale-element",
            check="set-full",
        ),
        promise(
            "sets",
            2,
            "A set has what was added to it, once, and nothing else.",
            "unexpected-element",
            "failed-element",
            "duplicate-elements",
            check="set-full",
        ),
    ),
)
