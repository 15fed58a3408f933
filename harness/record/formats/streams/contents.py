"""The contents of many lines by columns: so they are read, and required to make sense."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from harness.core.columns import KINDS, NEVER, Int64s
from harness.record.formats.streams.line import Content, Fields

UNIT, BEGUN = len(KINDS), len(KINDS) + 1  # Ends and begins of units, which histories leave out.
CODES: Final = {name: code for code, name in enumerate((*KINDS, "unit", "begun"))}
_DEFAULTS: Final = Content._field_defaults
_UNIT_MAX: Final = 10_000_000  # The most rows of a unit: rows that it announces and lacks are tracked in memory.


class Contents(NamedTuple):
    """Contents by columns. Each comes from the `word` ("line", "element", "row") of its number.

    A field without a column has its default in all contents; `kind` always has a column.
    """

    word: str
    numbers: Sequence[int]
    fields: Fields

    def place(self, row: int) -> str:
        """The place in the file of that row of the columns."""
        return f"{self.word} {self.numbers[row]}"

    def column(self, name: str) -> Sequence[Any]:
        """The column of that field."""
        found = self.fields.get(name)
        return [_DEFAULTS[name]] * len(self.numbers) if found is None else found

    def pairs(self, one: str, other: str) -> Sequence[tuple[Any, Any]]:
        """The columns of two fields, row by row."""
        if self.fields.keys().isdisjoint((one, other)):
            return [(_DEFAULTS[one], _DEFAULTS[other])] * len(self.numbers)
        return list(zip(self.column(one), self.column(other), strict=True))

    def integers(self, name: str) -> Int64s:
        """The column of a field of integers; NEVER for None. Raises OverflowError."""
        found = self.fields.get(name)
        if found is None:
            return np.full(len(self.numbers), NEVER)
        return np.array([NEVER if each is None else each for each in found] if None in found else found, np.int64)

    def one(self, row: int) -> "Contents":
        """That row alone."""
        some = slice(row, row + 1)
        return Contents(self.word, self.numbers[some], {name: column[some] for name, column in self.fields.items()})


def by_columns(places: Sequence[str], contents: Sequence[Content]) -> Contents:
    """The same contents by columns, with their places in the file."""
    columns = zip(Content._fields, zip(*contents, strict=True), strict=True)
    fields: Fields = {
        name: column for name, column in columns if name not in _DEFAULTS or column.count(_DEFAULTS[name]) < len(column)
    }
    return Contents(places[0].partition(" ")[0], [int(place.rpartition(" ")[2]) for place in places], fields)


def require_sense(contents: Contents) -> None:
    """Raise ValueError for values that no event can have."""
    positions = contents.column("position")
    if None in positions:
        for kind, position in zip(contents.column("kind"), positions, strict=True):
            if position is None and kind in {"row", "watermark"}:
                raise ValueError(f"a {kind} without a position")
    if not {list, dict}.isdisjoint(map(type, contents.fields.get("unit", ()))):
        raise ValueError("its unit, or transaction, is neither a text nor a number")
    sizes = [count for each in contents.fields.get("sizes", ()) for _, count in each]
    sizes += [count for count in contents.fields.get("unit_rows", ()) if count is not None]
    if sizes and (max(sizes) > _UNIT_MAX or min(sizes) < 0):
        raise ValueError(f"a unit of so many rows: the limit is {_UNIT_MAX:,}")
