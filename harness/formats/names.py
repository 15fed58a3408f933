"""The dictionary of keys and values: JSON to int64 and back, as `harness.core.columns` defines the ids."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from harness.core.columns import NAMED
from harness.core.record import Json

NAMES_FILE = "names.parquet"
_ENCODER = msgspec.json.Encoder(order="sorted")


class Names:
    """Gives ids. An integer in [0, NAMED) is its own; everything else gets the next one above, by its JSON."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}

    def id(self, value: Json) -> int:
        """The id of that value. Values are the same if their JSON is: 1 is not "1", nor 1.0, nor true."""
        if type(value) is int and 0 <= value < NAMED:
            return value
        return self._ids.setdefault(_ENCODER.encode(value), NAMED + len(self._ids))

    def rows(self) -> tuple[list[int], list[str]]:
        """The ids and JSON texts of all that had to be named, in order."""
        return list(self._ids.values()), [text.decode() for text in self._ids]


class NamedValues:
    """The way back, for one history's folder."""

    def __init__(self, folder: Path) -> None:
        table = pq.read_table(folder / NAMES_FILE, page_checksum_verification=True)
        self._texts: Mapping[int, str] = dict(zip(table["id"].to_pylist(), table["json"].to_pylist(), strict=True))

    def value(self, number: int) -> Json:
        """The value of that id. Raises KeyError if the dictionary lacks it."""
        if number < NAMED:
            return number
        result: Json = msgspec.json.decode(self._texts[number])
        return result

    def text(self, number: int) -> str:
        """What a report shows for that id: a string without its quotes, else JSON."""
        value = self.value(number) if number < NAMED or number in self._texts else f"?{number}"
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@lru_cache(maxsize=4)
def named_values(folder: Path) -> NamedValues:
    """The dictionary of that history, read once."""
    return NamedValues(folder)
