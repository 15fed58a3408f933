"""The statements of an operation, by its name.

Appends and reads are what an operation has in effect. The name adds what goes wrong on the way: `bulk` has all appends
in one statement; `failing` has a statement that fails after some rows, behind the first append, `failing-last` at the
end; `undone` has statements that are taken back to a savepoint; `abandoned` is rolled back; `refused` meets a log that
refuses a piece; `mixed` has a person as well. How many rows these have, follows from the number of the operation.
`person` sets or moves a row of people, `schema` changes a table.
"""

from collections.abc import Iterator
from typing import Final, cast

from clusters.drizzle.messages import Change, Run, Statement
from clusters.drizzle.shape import MASTERS, master_of
from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation

NUMBERED: Final = 9  # Elements of one operation, as the workload numbers them.
MOST: Final = 11  # Rows that a statement has which is undone.
# The beginnings of elements that no reader may ever see: of a statement that failed, of one that was taken back to a
# savepoint, and of a transaction that was rolled back.
FAILED, TAKEN_BACK, ABANDONED = "failed", "taken back", "abandoned"


def master_for(invocation: Invocation) -> NodeId:
    """The master that runs an operation."""
    if invocation.mops:
        return master_of(invocation.mops[0].key)
    place = cast("list[int]", invocation.value)[0]
    return MASTERS[place % len(MASTERS)]


def run_of(invocation: Invocation) -> Run:
    """The request for a transaction."""
    if invocation.f == "person":
        _, verb, key, value, after = cast("tuple[int, str, str, Json, str | None]", invocation.value)
        return Run((), (Statement("write", changes=(Change(verb, key, value, after),)),))
    if invocation.f == "schema":
        _, table = cast("tuple[int, str]", invocation.value)
        return Run((), (Statement("ddl", (table,)),))
    mops = invocation.mops or ()
    number = max((mop.value for mop in mops if isinstance(mop.value, int)), default=0)
    steps = tuple(_steps(invocation.f, mops, number))
    return Run(mops, steps, 1 + number % 3 if invocation.f == "refused" else 0)


def _steps(f: str, mops: tuple[MicroOp, ...], number: int) -> Iterator[Statement]:
    changes = [Change("insert", mop.key, mop.value) for mop in mops if mop.f == "append"]
    if f == "bulk":
        yield Statement("write", tuple(each.key for each in changes), tuple(changes))
        return
    is_first = True
    for mop in mops:
        if mop.f == "append":
            change = Change("insert", mop.key, mop.value)
            yield Statement("write", (mop.key,), (change,))
        else:
            yield Statement("read", (mop.key,))
        if is_first:
            yield from _detour(f, mop.key, number)
        is_first = False
    if f == "failing-last":
        yield Statement("fail", changes=_lost(FAILED, mops[0].key, number, 1 + number % 2))
    if f == "abandoned":
        yield Statement("rollback")


def _detour(f: str, key: Json, number: int) -> Iterator[Statement]:
    """What an operation does and takes back."""
    rows = 1 + number % MOST
    if f == "failing":
        yield Statement("fail", changes=_lost(FAILED, key, number, rows))
    if f == "undone":
        yield Statement("savepoint")
        if number % 2:
            yield Statement("write", changes=_lost(TAKEN_BACK, key, number, rows))
        else:
            yield from (Statement("write", changes=(each,)) for each in _lost(TAKEN_BACK, key, number, rows))
        yield Statement("rollback-to")
    if f == "mixed":
        yield Statement("write", changes=(Change("set", f"p{number // NUMBERED}", number),))
    if f == "abandoned":
        yield Statement("write", changes=_lost(ABANDONED, key, number, rows))


def _lost(why: str, key: Json, number: int, rows: int) -> tuple[Change, ...]:
    return tuple(Change("insert", key, f"{why} {number}.{row}") for row in range(rows))
