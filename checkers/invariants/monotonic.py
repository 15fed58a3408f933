"""Monotonic: a process never sees less of a key than it has seen before.

In transactions over lists a later read by the same process shows every element that an earlier one did. In a plain
history values are integers that only grow: each successful operation of f inc or read shows one, or [key, value]. A
process that got an unclear answer issues no more operations, so each process is a session.

Witnesses: reads after one by the same process that saw something.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, invariant, listed, shown, token
from harness.core.verdict import Judgement

CHECKER: Final = "monotonic"
BACK: Final = "non-monotonic-read"
ANOMALIES: Final = {BACK: "A process no longer sees what it saw before."}
SHOWS: Final = ("inc", "read")
_PLAIN: Final = "the value"


class Sight(NamedTuple):
    """The value of a key that a process saw: the elements of a list, or a number."""

    number: int
    process: int
    key: Token
    elements: tuple[Token, ...] | int


def judged(operations: Sequence[Op]) -> Judgement:
    """The judgement of each process's later reads. O(elements read)."""
    latest: dict[tuple[int, Token], Sight] = {}
    troubles: list[Trouble] = []
    witnesses = 0
    for sight in _sights(operations):
        place = (sight.process, sight.key)
        before = latest.get(place)
        latest[place] = sight
        if before is not None:
            witnesses += bool(before.elements)
            troubles += _trouble(before, sight)
    return judgement(CHECKER, ANOMALIES, troubles, {BACK: witnesses})


def _trouble(before: Sight, sight: Sight) -> Iterator[Trouble]:
    one, two = before.elements, sight.elements
    what = None
    if isinstance(one, int) and isinstance(two, int):
        if two < one:
            what = f"as {one}, and later, in T{sight.number}, as {two}"
    elif isinstance(one, tuple) and isinstance(two, tuple) and two[: len(one)] != one:
        shown_again = frozenset(two)
        gone = [element for element in one if element not in shown_again]
        if gone:
            what = f"with {listed(gone)} in it, and later, in T{sight.number}, without"
    if what is not None:
        text = f"Process {sight.process} read {shown(sight.key)} in T{before.number} {what}."
        ops = (before.number, sight.number)
        yield Trouble(BACK, text, (str(sight.key), *ops), ops)


def _sights(operations: Sequence[Op]) -> Iterator[Sight]:
    """All values seen, by index. A transaction that reads a key twice gives both."""
    for op in operations:
        for key, elements in op.reads:
            yield Sight(op.number, op.process, key, elements)
        if op.mops is None and op.is_ok and op.f in SHOWS:
            if type(op.value) is int:
                yield Sight(op.number, op.process, _PLAIN, op.value)
            elif isinstance(op.value, list) and len(op.value) == 2 and type(op.value[1]) is int:
                yield Sight(op.number, op.process, token(op.value[0]), op.value[1])


CHECKS: Final = (invariant(CHECKER, ANOMALIES, judged),)
