"""Positions of foreign streams as exact 64-bit integers.

Rounded positions, or those of another kind, are refused: they have lost their order.

Kinds: *integers* (also as text), *decimals* such as a hybrid clock's `1700000000000000000.0000000002`, which are a
wall time and a counter, and *log positions* such as PostgreSQL's `16/B374D848`. One stream has positions of one kind.
If decimals have a counter, which does not fit into 64 bits together with the time, each becomes its rank in the file.
"""

import re
from bisect import bisect_left
from typing import Final, Literal, NamedTuple

from harness.core.record import Json

Kind = Literal["integers", "decimals", "log positions"]
FIRST_RANK: Final = 1
_MOST: Final = (1 << 62) - 1  # The greatest position, far below the number for a missing one.
_INTEGER: Final = re.compile(r"-?\d{1,100}")
_DECIMAL: Final = re.compile(r"(\d{1,100})\.(\d{1,10})")
_LOG_POSITION: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_COUNTER_DIGITS: Final = 10


class Position(NamedTuple):
    """A position that can be compared with others of its kind."""

    kind: Kind
    wall: int
    counter: int


def position_of(value: Json) -> Position:
    """The position that a value denotes. Raises ValueError if there is none."""
    match value:
        case bool() | None:
            pass
        case int():
            return Position("integers", value, 0)
        case float():
            raise ValueError(f"its position {value!r} is a number with a fraction, which is rounded: write it as text")
        case str() if _INTEGER.fullmatch(value):
            return Position("integers", int(value), 0)
        case str() if found := _DECIMAL.fullmatch(value):
            return Position("decimals", int(found[1]), int(found[2].ljust(_COUNTER_DIGITS, "0")))
        case str() if found := _LOG_POSITION.fullmatch(value):
            return Position("log positions", (int(found[1], 16) << 32) | int(found[2], 16), 0)
        case _:
            pass
    raise ValueError("its position is neither an integer nor a text such as 17, 17.0000000002 or 16/B374D848")


class Positions:
    """All positions of a file. First all are collected, then each gets a number, in the same order."""

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._first = ""
        self._plain = True
        self._known: set[tuple[int, int]] = set()
        self._ranks: list[tuple[int, int]] = []

    def take(self, value: Json, place: str) -> tuple[int, int]:
        """Add a position; returns it in comparable form.

        Raises ValueError if it cannot be compared with earlier ones.
        """
        found = position_of(value)
        if self._kind is None:
            self._kind, self._first = found.kind, place
        if found.kind != self._kind:
            problem = f"its position is one of {found.kind}, and that of {self._first} one of {self._kind}"
            raise ValueError(f"{problem}: they cannot be compared")
        if abs(found.wall) > _MOST:
            raise ValueError("its position is beyond 62 bits")
        key = (found.wall, found.counter)
        if found.kind == "decimals":
            self._known.add(key)
            self._plain = self._plain and found.counter == 0
        return key

    @property
    def are_ranks(self) -> bool:
        """True if the numbers are ranks, not the positions themselves."""
        return not self._plain

    def number(self, key: tuple[int, int]) -> int:
        """The number of a position that was added before."""
        if self._plain:
            return key[0]
        if len(self._ranks) != len(self._known):
            self._ranks = sorted(self._known)
        return FIRST_RANK + bisect_left(self._ranks, key)
