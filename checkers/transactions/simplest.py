"""The simplest explanation of a cycle: two operations whose dependency contradicts the order of time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from checkers.history.transactions import Operation
from checkers.transactions.registers.sentences import Reason

Relation = Literal["ww", "wr", "rw", "process", "realtime"]
PAIR: Final = 2  # Operations in the shortest cycle.


def by_time(steps: Sequence[tuple[int, int, Relation, Reason]], operations: Mapping[int, Operation]) -> Iterator[str]:
    """The sentences about steps of a cycle whose target had finished before their source began.

    Such a step and the order of time are a cycle of two. The longer cycle may belong to a stronger class, which needs
    no clock, but its reader needs only these two operations. Not checked: that a promise orders operations by time.
    """
    for source, target, relation, why in steps:
        is_dependency = relation in ("ww", "wr", "rw")
        if is_dependency and operations[target].after <= operations[source].index:
            yield f"{why.sentence}, although T{target} had finished before T{source} began."
