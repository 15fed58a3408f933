"""The dictionary of keys and values: JSON to int64 and back, as `harness.core.columns` defines the ids."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from harness.core.columns import NAMED, Int64s
from harness.core.record import Json
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.tables import read_table

NESTING_MAX: Final = 64
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_INTEGERS: Final = range(-(1 << 63), 1 << 64)  # The range that msgpack, and so the history's hash, can hold.


def json_text(value: Json) -> bytes:
    """The value as JSON, with the names of objects sorted: the same bytes for the same value.

    Raises ValueError for values that JSON or a journal cannot express, and for nesting deeper than NESTING_MAX.
    """
    if not isinstance(value, str):
        _check(value, NESTING_MAX)
    return _ENCODER.encode(value)


def json_value(text: str | bytes) -> Json:
    """The value of that JSON. Raises ValueError if the text is not JSON, and as `json_text` does."""
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
            raise ValueError(f"a value is not JSON: {repr(value)[:60]}")


def plain_ids(values: list[Json]) -> Int64s | None:
    """The values as numbers if all are integers that are their own ids, else None. Costs a tenth of computing ids."""
    try:
        found = pa.array(values)  # Without a given type, so that booleans and fractions are not converted to integers.
    except (pa.ArrowException, OverflowError):
        return None
    if found.type != pa.int64() or found.null_count:
        return None if len(found) else np.empty(0, np.int64)
    numbers: Int64s = found.to_numpy()
    return numbers if numbers.min() >= 0 and numbers.max() < NAMED else None


class Names:
    """Assigns ids. An integer in [0, NAMED) is its own; everything else gets the next one above, by its JSON."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}

    def id(self, value: Json) -> int:
        """The id of that value. Values are the same if their JSON is: 1 is not "1", nor 1.0, nor true.

        Raises ValueError if a history cannot hold the value.
        """
        if type(value) is int and 0 <= value < NAMED:
            return value
        return self._ids.setdefault(json_text(value), NAMED + len(self._ids))

    def ids(self, values: list[Json]) -> Int64s:
        """The ids of those values."""
        plain = plain_ids(values)
        return np.array(list(map(self.id, values)), np.int64) if plain is None else plain

    def ids_of_texts(self, texts: Sequence[bytes]) -> list[int]:
        """The ids of values that need names, by their `json_text`."""
        ids = self._ids
        return [ids.setdefault(text, NAMED + len(ids)) for text in texts]

    def has(self, value: Json) -> bool:
        """True if that value, which needs a name, has one."""
        return json_text(value) in self._ids

    def values(self) -> dict[int, Json]:
        """All named values, by their ids."""
        return {number: json_value(text) for text, number in self._ids.items()}

    def rows(self) -> tuple[list[int], list[str]]:
        """The ids and JSON texts of all named values, in order of id."""
        return list(self._ids.values()), [text.decode() for text in self._ids]

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """The ids and JSON of all named values, in order of id, in tables of at most so many rows."""
        left = iter(self._ids)
        begin = NAMED
        while some := list(islice(left, rows)):
            numbers = pa.array(np.arange(begin, begin + len(some)))
            yield pa.table({"id": numbers, "json": pa.array(some, pa.string())}, schema=SCHEMAS["names"])
            begin += len(some)


class NamedValues:
    """The values that belong to ids, for one history's folder."""

    def __init__(self, folder: Path) -> None:
        table = read_table(folder, "names")
        self._texts: Mapping[int, str] = dict(zip(table["id"].to_pylist(), table["json"].to_pylist(), strict=True))

    def value(self, number: int) -> Json:
        """The value of that id. Raises KeyError if the dictionary lacks it."""
        if number < NAMED:
            return number
        return json_value(self._texts[number])


def named_values(folder: Path) -> NamedValues:
    """The current dictionary of that history: a history may be rewritten under the same name."""
    return NamedValues(folder)
