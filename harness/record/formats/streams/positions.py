"""Positions of foreign streams as exact 64-bit integers.

Rounded positions, or those of another kind, are refused: they have lost their order.

Kinds: *integers* (also as text), *decimals* such as a hybrid clock's `1700000000000000000.0000000002`, which are a
wall time and a counter, *log positions* such as PostgreSQL's `16/B374D848`, and positions of several parts (`Place`).
One stream has positions of one kind. What does not fit into 62 bits becomes its rank in the file: decimals with a
counter, great integers, and positions of several parts.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, compress, count, islice
from operator import le, ne
from typing import Final, NamedTuple, cast

import numpy as np
import pyarrow as pa

from harness.core.columns import Bools, Int64s
from harness.core.record import Json
from harness.record.formats.streams.line import Place, Places
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
# How the kinds of positions with special notations begin, and the noun for such a position in sentences.
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


class _Alike(NamedTuple):
    """Positions of one kind: `first` is the first of them if it is a `Place`."""

    kind: str
    keys: list[Key] | Int64s
    first: Place | None = None


def _alike(values: Sequence[Json | Place]) -> _Alike | None:
    """The positions in comparable form, if they are of one common kind and none is out of range; else None."""
    if isinstance(values, Places):
        return _Alike(values.kind, values.parts, values[0])
    match list(set(map(type, values))):
        case [one] if one is int:
            keys: list[Key] = [(value, 0) for value in cast("Sequence[int]", values)]
            kind = "integers"
        case [one] if one is str:
            found = list(map(_DECIMAL.fullmatch, cast("Sequence[str]", values)))
            if None in found:
                return None
            parts = [each.groups() for each in found if each is not None]
            keys = [(int(wall), int(counter.ljust(_COUNTER_DIGITS, "0"))) for wall, counter in parts]
            kind = "decimals"
        case [one] if one is Place:
            return _alike_places(cast("Sequence[Place]", values))
        case _:
            return None
    return _Alike(kind, keys) if min(keys)[0] >= -_MOST and max(keys)[0] <= _MOST else None


def _alike_places(places: Sequence[Place]) -> _Alike | None:
    kinds, keys, _, are_snapshots, are_of_changes = zip(*places, strict=True)
    is_one = len({*kinds}) == len({*are_of_changes}) == 1 and not any(are_snapshots)
    if not is_one or None in [key[0] for key in keys]:
        return None
    return _Alike(kinds[0], list(keys), places[0])


class Positions:
    """All positions of a file. First all are collected, then each gets a number, in the same order."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._seen = ""  # The kind of the first position, also if that can be compared with any.
        self._first = ""
        self._shown: Callable[[Key], str] | None = None
        self._is_plain = True
        self._are_of_changes = False
        self._lacks_first_parts = False
        self._taken: list[list[Key] | Int64s] = []  # All positions, in parts as they were added.
        self._count = 0
        self._ascending: list[Key] | Int64s = []
        self._texts: Callable[[Int64s], pa.Array] | None = None

    def __len__(self) -> int:
        """The number of positions that were added."""
        return self._count

    def take_all(self, values: Sequence[Json | Place], place: Callable[[int], str]) -> list[Key] | Int64s:
        """Add positions; returns them in comparable form, or as (n, parts).

        `place`: the place in the file of the one of that number. Raises ValueError if one of them cannot be compared
        with earlier ones.
        """
        alike = _alike(values)
        if alike is None or self.kind not in (None, alike.kind):
            return [self.take(value, place(number)) for number, value in enumerate(values)]
        kind, keys, first = alike
        if self.kind is None:
            self.kind, self._first = kind, place(0)
        self._seen = self._seen or kind
        if first is not None:
            self._shown = self._shown or first.shown
            self._is_plain = False
            self._are_of_changes |= first.is_of_change
        elif self._is_plain and kind == "decimals":
            self._is_plain = not any(key[1] for key in keys)
        if isinstance(values, Places):
            self._texts = values.texts
        self._taken.append(keys)
        self._count += len(keys)
        return keys

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
            self._lacks_first_parts |= None in value.parts
            self._are_of_changes |= value.is_of_change
            is_free = value.is_snapshot
        elif abs(parts[0]) > _MOST:  # As Kinesis and DynamoDB number their records.
            self._is_plain = False
        if self.kind != kind and not is_free:
            if self.kind is not None:
                problem = f"its position is one of {kind}, and that of {self._first} one of {self.kind}"
                raise ValueError(f"{problem}: they cannot be compared")
            self.kind, self._first = kind, place
        if parts[1:] != _NO_COUNTER and kind == "decimals":
            self._is_plain = False
        self._taken.append([parts])
        self._count += 1
        return parts

    def numbers(self) -> Int64s:
        """The numbers of all positions, in the order in which they were added."""
        arrays = [each for each in self._taken if isinstance(each, np.ndarray)]
        if arrays and len(arrays) == len(self._taken):
            numbers, self._ascending = _ranked(np.concatenate(arrays))
            return numbers
        keys = list(chain.from_iterable(map(keys_of, self._taken)))
        if not self.are_ranks:
            part = -1 if self._is_partial else 0
            return np.array([key[part] for key in keys], np.int64)
        if all(map(le, keys, islice(keys, 1, None))):  # As most files are.
            is_new = np.fromiter(chain([True], map(ne, keys, islice(keys, 1, None))), np.bool_)[: len(keys)]
            self._ascending = list(compress(keys, is_new))
            return FIRST_RANK - 1 + np.cumsum(is_new)
        self._ascending = sorted({*keys})
        ranks = dict(zip(self._ascending, count(FIRST_RANK), strict=False))
        return np.array([ranks[key] for key in keys], np.int64)

    @cached_property
    def _is_partial(self) -> bool:
        """True if the last parts alone are the positions, once all are added: first parts lack, or begin anew.

        PostgreSQL's connector names the commit that it sent last, and none before its first one: up to there, LSNs are
        below all commits. Above a commit, another snapshot made it forget the commits that it had sent.
        """
        if self._lacks_first_parts or self.kind != "LSNs":
            return self._lacks_first_parts
        highest, commits = _UNREPORTED, list[int]()
        for keys in self._taken:
            if isinstance(keys, np.ndarray):  # All with a commit.
                commits.append(int(keys[:, 0].min()))
            else:
                highest = max(highest, max((lsn for commit, lsn in keys if commit == _UNREPORTED), default=highest))
                commits += [commit for commit, _ in keys if commit != _UNREPORTED]
        return bool(commits) and min(commits) < highest

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

    def texts(self) -> tuple[Int64s, Sequence[str] | pa.Array]:
        """The numbers and the texts of the positions that are shown otherwise than their numbers, which they have."""
        numbers = FIRST_RANK + np.arange(len(self._ascending))
        if self._texts is not None and isinstance(self._ascending, np.ndarray):
            return numbers, self._texts(self._ascending)
        shown = self._shown or (_integer if self.kind == "integers" else _decimal)
        return numbers, list(map(shown, keys_of(self._ascending)))


def keys_of(positions: list[Key] | Int64s) -> list[Key]:
    """Those positions in comparable form."""
    return list(map(tuple, positions.tolist())) if isinstance(positions, np.ndarray) else positions


def _ranked(parts: Int64s) -> tuple[Int64s, Int64s]:
    """The ranks of positions with these parts (n, parts), and the parts of the distinct positions in order."""
    order = np.lexsort(parts.T[::-1]) if _falls(parts) else np.arange(len(parts))
    inside = parts[order]
    is_new = np.append(True, np.any(inside[1:] != inside[:-1], axis=1))
    numbers = np.empty(len(parts), np.int64)
    numbers[order] = FIRST_RANK - 1 + np.cumsum(is_new)
    return numbers, inside[is_new]


def _falls(parts: Int64s) -> bool:
    """True if a position is below the one before it."""
    falls: Bools = np.zeros(len(parts) - 1, np.bool_)
    for part in reversed(parts.T):
        falls = (part[1:] < part[:-1]) | ((part[1:] == part[:-1]) & falls)
    return bool(falls.any())


def _integer(key: Key) -> str:
    return str(key[0])


def _decimal(key: Key) -> str:
    return f"{key[0]}.{key[1]:0{_COUNTER_DIGITS}}"
