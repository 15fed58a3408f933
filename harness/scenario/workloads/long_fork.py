"""Long fork: each key of a group is written once, in quick succession, while other transactions read all of them.

Two readers that see the writes in different orders have seen states that no single order allows: legal under parallel
snapshot isolation, and forbidden at higher levels.
"""

from harness.core.record import MicroOp
from harness.scenario.workloads.grouped import Design, Turn, promise

KEYS = 3
LIFE = 16
FIRST_WRITE = 4  # From this operation on every second one writes the next key, while there are any.


def long_fork(turn: Turn) -> tuple[MicroOp, ...]:
    """A read of all keys, or the only write of one. Groups write their keys in different orders."""
    written, odd = divmod(turn.place - FIRST_WRITE, 2)
    if not odd and 0 <= written < KEYS:
        return (MicroOp("append", turn.keys[(written * (1 + turn.group % 2) + turn.group) % KEYS], turn.number),)
    return turn.reads(turn.keys)


LONG_FORK = Design(
    check="long-fork",
    size=KEYS,
    life=LIFE,
    mops=long_fork,
    promises=(
        promise(
            "long-fork", 1, "For two reads of the same keys, one sees everything that the other sees.", "long-fork"
        ),
    ),
)
