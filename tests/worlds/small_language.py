"""Histories of lists and registers in a small language, for tests.

One text is one transaction: "ax1 ry12" appends 1 to x and reads y as [1, 2]; "ry" reads y as empty, "ry?" has no
result. Registers: "wx1" writes 1 to x, "rx=1" reads x as 1, "rx=" as nothing. A first mark says how it ended: none for
ok, "!" for fail, "~" for info. "2:ax1" is run by process 2 (without a number each transaction has its own process).
Keys are letters, elements are digits.
"""

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK

MARKS = {"!": FAIL, "~": INFO}


def sequential(*texts: str) -> list[Operation]:
    """Each transaction ends before the next begins."""
    return [_operation(index, text, after=index + 1) for index, text in enumerate(texts)]


def concurrent(*texts: str) -> list[Operation]:
    """All transactions overlap."""
    return [_operation(index, text, after=len(texts)) for index, text in enumerate(texts)]


def _operation(index: int, text: str, *, after: int) -> Operation:
    process, _, rest = text.rpartition(":")
    outcome = MARKS.get(rest[:1], OK)
    words = rest.lstrip("".join(MARKS)).split()
    return Operation(
        index=index,
        process=int(process) if process else 1000 + index,
        outcome=outcome,
        after=after if outcome != INFO else NEVER,
        mops=tuple(_mop(word) for word in words),
    )


def _mop(word: str) -> Mop:
    key = ord(word[1])
    if word[0] == "a":
        return Append(key, int(word[2:]))
    if word[0] == "w":
        return Store(key, int(word[2:]))
    if word[2:].startswith("="):
        return Load(key, int(word[3:]) if word[3:] else NOTHING)
    return Read(key, None if word[2:] == "?" else tuple(int(digit) for digit in word[2:]))
