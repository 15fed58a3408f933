"""The slow, obvious twin of the check of registers: every order of up to seven operations is tried.

An operation is a `RegisterOp`; nothing of how the checker sees it is used but that.
"""

import json
from collections.abc import Iterator, Sequence

from checkers.linearizability.deeds import RegisterOp
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.record import Json

IMPOSSIBLE = object()


def apply(state: object, deed: RegisterOp) -> object:
    """The state after that operation, IMPOSSIBLE if it cannot have been answered like that."""
    asked: Json = json.loads(deed.argument)
    match deed.f:
        case "read" | "get":
            return state if deed.outcome == INFO or json.loads(deed.result) == state else IMPOSSIBLE
        case "write" | "put":
            return asked
        case "append":
            return f"{state}{asked}"
        case "cas":
            old, new = values(deed)
            return new if old == state else IMPOSSIBLE
        case "acquire":
            return "held" if state == "free" else IMPOSSIBLE
        case _:
            return "free" if state == "held" else IMPOSSIBLE


def final_states(deeds: Sequence[RegisterOp], initial: object) -> Iterator[object]:
    """The state at the end of every order that has all answered operations, and any of the unclear ones."""
    happened = [deed for deed in deeds if deed.outcome != FAIL]
    yield from _orders(happened, initial)


def _orders(left: list[RegisterOp], state: object) -> Iterator[object]:
    if all(deed.end == NEVER for deed in left):
        yield state
    for deed in left:
        if not any(other.end < deed.call for other in left):
            after = apply(state, deed)
            if after is not IMPOSSIBLE:
                yield from _orders([other for other in left if other is not deed], after)


def is_linearizable(deeds: Sequence[RegisterOp], initial: object) -> bool:
    return any(True for _ in final_states(deeds, initial))


def known_at(deeds: Sequence[RegisterOp], moment: int) -> list[RegisterOp]:
    """The history as it was just after that moment: what had no answer yet is unclear."""
    begun = [deed for deed in deeds if deed.call < moment and deed.outcome != FAIL]
    return [deed if deed.end <= moment else deed._replace(end=NEVER, outcome=INFO) for deed in begun]


def blocked(deeds: Sequence[RegisterOp], initial: object) -> int:
    """The operation with whose answer it ceases to be linearizable."""
    answers = sorted((deed.end, deed.op) for deed in deeds if deed.outcome == OK)
    return next(op for end, op in answers if not is_linearizable(known_at(deeds, end), initial))


def witnesses(deeds: Sequence[RegisterOp]) -> int:
    """Operations that were answered by what the register held, while another could have changed that before."""
    count = 0
    for deed in deeds:
        if deed.outcome == OK and deed.f not in {"write", "put", "append"}:
            others = (other for other in deeds if other is not deed and other.outcome != FAIL and changes(other))
            count += any(other.call < deed.end for other in others)
    return count


def values(deed: RegisterOp) -> list[int]:
    """The numbers that were asked to be compared or written."""
    asked = json.loads(deed.argument)
    return asked if isinstance(asked, list) else [asked] if deed.f == "write" else []


def changes(deed: RegisterOp) -> bool:
    if deed.f == "cas":
        old, new = values(deed)
        return old != new
    return deed.f not in {"read", "get"}
