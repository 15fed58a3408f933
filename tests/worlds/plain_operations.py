"""Operations as a history tells them: events of processes in order, an invocation and its completion each a tuple."""

from collections.abc import Sequence
from typing import Literal

from checkers.invariants.operations import Mop, Op, Token
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.record import Json

Type = Literal["invoke", "ok", "fail", "info"]
Event = tuple[int, Type, str, Json]
OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}


def told(*events: Event) -> tuple[Op, ...]:
    """The operations of those events (process, type, f, value). What never completes has outcome info."""
    opened: dict[int, Op] = {}
    done: list[Op] = []
    count = 0
    for process, kind, f, value in events:
        if kind == "invoke":
            opened[process] = Op(count, process, INFO, NEVER, f, argument=value)
            count += 1
        else:
            op = opened.pop(process)
            assert op.f == f
            after = NEVER if kind == "info" else count
            done.append(op._replace(outcome=OUTCOMES[kind], after=after, value=value if kind == "ok" else None))
    return tuple(sorted((*done, *opened.values())))


def one(f: str, asked: Json, value: Json = None, *, process: int = 0, kind: Type = "ok") -> tuple[Event, Event]:
    """An operation that nothing overlaps."""
    return (process, "invoke", f, asked), (process, kind, f, value if value is not None else asked)


def read(value: Json, process: int = 9) -> tuple[Event, Event]:
    """A read that nothing overlaps."""
    return one("read", None, value, process=process)


def txn(number: int, *mops: Mop, after: int | None = None, process: int | None = None, outcome: int = OK) -> Op:
    """A transaction over lists; without `after` it ends before the next one begins."""
    end = number + 1 if after is None else after
    return Op(number, number if process is None else process, outcome, end, "txn", mops=mops)


def r(key: Token, *elements: Token) -> Mop:
    """A read of a list."""
    return Mop(key, None, elements)


def a(key: Token, element: Token) -> Mop:
    """An append to a list."""
    return Mop(key, element, None)


def flat(*parts: Sequence[Event]) -> tuple[Op, ...]:
    """The operations of parts one after the other."""
    return told(*(event for part in parts for event in part))
