"""Positions of foreign streams as exact 64-bit integers.

Rounded positions, or those of another kind, are refused: they have lost their order.

Kinds: *integers* (also as text), *decimals* such as a hybrid clock's `1700000000000000000.0000000002`, which are a
wall time and a counter, *log positions* such as PostgreSQL's `16/B374D848`, and positions of several parts (`Place`).
One stream has positions of one kind. What does not fit into 64 bits becomes its rank in the file: decimals with a
counter, and positions of several parts.
"""

import re
from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from harness.core.columns import Int64s
from harness.core.record import Json
from harness.record.formats.streams.line import Place
from harness.record.formats.streams.notations import place_of

Key = tuple[int, ...]
FIRST_RANK: Final = 1
_UNREPORTED: Final = -1
_MOST: Final = (1 << 62) - 1  # The greatest position, far below the number for a missing one.
_INTEGER: Final = re.compile(r"-?\d{1,100}")
_DECIMAL: Final = re.compile(r"(\d{1,100})\.(\d{1,10})")
_LOG_POSITION: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_COUNTER_DIGITS: Final = 10
_NO_COUNTER: Final = (0,)
# How the kinds of positions with notations of their own begin, and what sentences call such a position.
_NOUNS: Final = (
    ("LSNs", "LSN {}"),
    ("commit and change LSNs", "LSN {}"),
    ("log positions", "LSN {}"),
    ("SCNs", "SCN {}"),
    ("binary log", "binary log position {}"),
    ("GTIDs", "GTID {}"),
    ("cluster times", "cluster time {}"),
    ("resume tokens", "resume token {}"),
    ("ids of a Redis stream", "id {}"),
)


class Position(NamedTuple):
    """A position that can be compared with others of its kind, part by part."""

    kind: str
    parts: Key


def position_of(value: Json | Place) -> Position:
    """The position that a value denotes. Raises ValueError if there is none."""
    match value:
        case Place():
            return Position(value.kind, tuple([_UNREPORTED if part is None else part for part in value.parts]))
        case bool() | None:
            pass
        case int():
            return Position("integers", (value, 0))
        case float():
            raise ValueError(f"its position {value!r} is a number with a fraction, which is rounded: write it as text")
        case str() if found := _DECIMAL.fullmatch(value):
            return Position("decimals", (int(found[1]), int(found[2].ljust(_COUNTER_DIGITS, "0"))))
        case str() if _INTEGER.fullmatch(value):
            return Position("integers", (int(value), 0))
        case str() if found := _LOG_POSITION.fullmatch(value):
            return Position("log positions", ((int(found[1], 16) << 32) | int(found[2], 16), 0))
        case _:
            pass
    raise ValueError(
        "its position is neither an integer nor a text such as 17, 17.0000000002 or 16/B374D848; nor is it a GTID, "
        "a place in a binary log, or a timestamp or resume token of MongoDB"
    )


def _spot(value: Json | Place) -> Json | Place:
    """The value, or the place that it denotes in a notation of its own. No text is in two notations."""
    if isinstance(value, Place) or type(value) is int or (type(value) is str and _DECIMAL.fullmatch(value)):
        return value
    return place_of(value) or value


class Positions:
    """All positions of a file. First all are collected, then each gets a number, in the same order."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._seen = ""  # The kind of the first position, also if that can be compared with any.
        self._first = ""
        self._shown: Callable[[Key], str] | None = None
        self._is_plain = True
        self._are_of_changes = False
        self._is_partial = False  # Some first parts were not reported, so the last part alone is the position.
        self._known: dict[Key, int] = {}  # By position, its place in the order of their first appearances.
        self._numbers = array("q")
        self._ascending: list[Key] = []

    def take(self, value: Json | Place, place: str) -> Key:
        """Add a position; returns it in comparable form.

        Raises ValueError if it cannot be compared with earlier ones.
        """
        value = _spot(value)
        kind, parts = position_of(value)
        self._seen = self._seen or kind
        is_free = False
        if isinstance(value, Place):
            self._shown = self._shown or value.shown
            self._is_plain = False
            self._is_partial |= None in value.parts
            self._are_of_changes |= value.is_of_change
            is_free = value.is_snapshot
        elif abs(parts[0]) > _MOST:
            raise ValueError("its position is beyond 62 bits")
        if self.kind != kind and not is_free:
            if self.kind is not None:
                problem = f"its position is one of {kind}, and that of {self._first} one of {self.kind}"
                raise ValueError(f"{problem}: they cannot be compared")
            self.kind, self._first = kind, place
        if parts[1:] != _NO_COUNTER and kind == "decimals":
            self._is_plain = False
        self._known.setdefault(parts, len(self._known))
        return parts

    def index(self, key: Key) -> int:
        """The place of a position that was added before, in the order of their first appearances."""
        return self._known[key]

    def numbers(self) -> Int64s:
        """The numbers of all positions, in the order of their first appearances."""
        if len(self._numbers) != len(self._known):
            part = -1 if self._is_partial else 0
            self._numbers = array("q", [0 if self.are_ranks else key[part] for key in self._known])
            self._ascending = sorted(self._known) if self.are_ranks else []
            for rank, key in enumerate(self._ascending, FIRST_RANK):
                self._numbers[self._known[key]] = rank
        return np.frombuffer(self._numbers, np.int64)

    @property
    def are_ranks(self) -> bool:
        """True if the numbers are ranks, not the positions themselves."""
        return not self._is_plain and not self._is_partial

    @property
    def kind_is_of_changes(self) -> bool:
        """True if no two changes of a key have one position."""
        return self._are_of_changes

    @property
    def orders_units(self) -> bool:
        """True if positions are those of whole transactions, in the order in which the source committed them."""
        return self._shown is not None and not self._is_partial

    @property
    def noun(self) -> str | None:
        """What sentences call a position, with a {} for it; None if the stream's contract decides that."""
        return next((noun for begin, noun in _NOUNS if self._seen.startswith(begin)), None)

    def number(self, key: Key) -> int:
        """The number of a position that was added before."""
        return int(self.numbers()[self._known[key]])

    def texts(self) -> Iterator[tuple[int, str]]:
        """The number and the text of each position that is shown otherwise than its number."""
        if len(self.numbers()) and self.are_ranks:
            shown = self._shown or (lambda key: f"{key[0]}.{key[1]:0{_COUNTER_DIGITS}}")
            yield from ((FIRST_RANK + place, shown(key)) for place, key in enumerate(self._ascending))
