"""Independent on purpose: True if a serial order explains a history of up to six transactions. Tries all orders."""

from collections.abc import Sequence
from functools import cache

from checkers.history.transactions import Append, Load, Operation, Read, Store
from harness.core.columns import FAIL, INFO, NOTHING

State = tuple[tuple[int, tuple[int, ...]], ...]  # Of each key its list; of a register, a list of one or none.


def has_serial_order(operations: Sequence[Operation], *, in_real_time: bool) -> bool:
    """Whether an order of all ok operations, and of some without clear answer, gives each read what it saw.

    In real time: one that had ended before another began, stands before it.
    """
    possible = tuple(op for op in operations if op.outcome != FAIL)

    @cache
    def can_end(done: frozenset[int], state: State) -> bool:
        left = [op for op in possible if op.index not in done]
        if all(op.outcome == INFO for op in left):
            return True
        for op in left:
            if in_real_time and any(other.after <= op.index for other in left):
                continue
            after = _applied(op, state)
            if after is not None and can_end(done | {op.index}, after):
                return True
        return False

    return can_end(frozenset(), ())


def _applied(operation: Operation, state: State) -> State | None:
    """The state after the operation; None if it read something else than it would have."""
    keys = dict(state)
    for mop in operation.mops:
        now = keys.get(mop.key, ())
        match mop:
            case Append():
                keys[mop.key] = (*now, mop.element)
            case Store():
                keys[mop.key] = () if mop.value == NOTHING else (mop.value,)
            case Read() if operation.outcome != INFO and mop.elements is not None and mop.elements != now:
                return None
            case Load() if operation.outcome != INFO and mop.value != (now[0] if now else NOTHING):
                return None
    return tuple(sorted(keys.items()))
