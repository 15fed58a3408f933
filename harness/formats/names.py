"""The dictionary of keys and values: JSON to int64 and back, as `harness.core.columns` defines the ids."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from harness.core.columns import NAMED
from harness.core.record import Json
from harness.formats.tables import read_table

NESTING_MAX: Final = 64
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_INTEGERS: Final = range(-(1 << 63), 1 << 64)  # What msgpack, and so the history's hash, can hold.


def json_text(value: Json) -> bytes:
    """The value as JSON, with the names of objects sorted: the same bytes for the same value.

    Raises ValueError for what JSON, or a journal, has no words for, and for what is nested deeper than NESTING_MAX.
    """
    if not isinstance(value, str):
        _check(value, NESTING_MAX)
    return _ENCODER.encode(value)


def json_value(text: str | bytes) -> Json:
    """The value of that JSON. Raises ValueError if it is none, and like `json_text`."""
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"no JSON that can be read: {error}") from None
    _check(value, NESTING_MAX)
    return value


def _check(value: Json, depth: int) -> None:
    match value:
        case None | bool() | str():
            return
        case int() if value in _INTEGERS:
            return
        case float() if math.isfinite(value):
            return
        case list() | dict() if depth == 0:
            raise ValueError(f"a value is nested deeper than {NESTING_MAX}, the limit")
        case list():
            for each in value:
                _check(each, depth - 1)
        case dict() if all(isinstance(name, str) for name in value):
            for each in value.values():
                _check(each, depth - 1)
        case _:
            raise ValueError(f"a value is no JSON: {repr(value)[:60]}")


def are_plain(values: list[Json]) -> bool:
    """Is each of them an integer that is its own id? Costs a tenth of asking for the ids."""
    if not values:
        return True
    if set(map(type, values)) != {int}:  # A boolean is no integer here.
        return False
    numbers = cast("list[int]", values)
    return min(numbers) >= 0 and max(numbers) < NAMED


class Names:
    """Gives ids. An integer in [0, NAMED) is its own; everything else gets the next one above, by its JSON."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}

    def id(self, value: Json) -> int:
        """The id of that value. Values are the same if their JSON is: 1 is not "1", nor 1.0, nor true.

        Raises ValueError if it is no value for a history.
        """
        if type(value) is int and 0 <= value < NAMED:
            return value
        return self._ids.setdefault(json_text(value), NAMED + len(self._ids))

    def ids(self, values: list[Json]) -> list[int]:
        """The ids of those values. Where all of them are plain integers, that is the list itself."""
        if are_plain(values):
            return cast("list[int]", values)
        identify = self.id
        return [identify(value) for value in values]

    def id_of_text(self, text: str) -> int:
        """The id of a value that has to be named, by its `json_text`."""
        return self._ids.setdefault(text.encode(), NAMED + len(self._ids))

    def rows(self) -> tuple[list[int], list[str]]:
        """The ids and JSON texts of all that had to be named, in order."""
        return list(self._ids.values()), [text.decode() for text in self._ids]


class NamedValues:
    """The way back, for one history's folder."""

    def __init__(self, folder: Path) -> None:
        table = read_table(folder, "names")
        self._texts: Mapping[int, str] = dict(zip(table["id"].to_pylist(), table["json"].to_pylist(), strict=True))

    def value(self, number: int) -> Json:
        """The value of that id. Raises KeyError if the dictionary lacks it."""
        if number < NAMED:
            return number
        return json_value(self._texts[number])


def named_values(folder: Path) -> NamedValues:
    """The dictionary of that history, as it is now: a history may be written anew under its old name."""
    return NamedValues(folder)
