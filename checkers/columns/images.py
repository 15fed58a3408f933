"""The before-images of a foreign stream's rows: for each event, the row that it replaced, or a part of it.

A file of the history has them as JSON, by the places of their events.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from checkers.columns.files import read_columns
from harness.core.columns import Bools, Int64s

IMAGES: Final = "before.parquet"
THERE: Final = "null"  # The image of a row that was there, and of which nothing more is known.
DELETED: Final = '"(deleted)"'  # The value of a row that reports its key as deleted.
# Debezium's word for a value that the log of PostgreSQL lacks: as text, and as bytes in base 64 and in hex.
_UNKNOWN: Final = (
    "__debezium_unavailable_value",
    "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ",
    "5f5f646562657a69756d5f756e617661696c61626c655f76616c7565",
)


class Images:
    """The before-images of a history, as JSON in their order; and the values of its rows."""

    def __init__(self, history: Path) -> None:
        images = read_columns(history / IMAGES, ("event", "image"))
        self._events = images["event"].to_numpy()
        self._texts: list[str] = images["image"].to_pylist()
        names = history / "names.parquet"
        columns = read_columns(names, ("id", "json")).to_pydict() if names.is_file() else {"id": (), "json": ()}
        self._values: dict[int, str] = dict(zip(columns["id"], columns["json"], strict=True))

    @property
    def deleted(self) -> int | None:
        """The id of the value that reports a deletion; None if there is none."""
        return next((identity for identity, text in self._values.items() if text == DELETED), None)

    def have(self, events: Int64s) -> Bools:
        """True for events with an image."""
        return np.isin(events, self._events)

    def contradict(self, event: int, value: int) -> bool:
        """True if the image of that event cannot be the row with that value."""
        image = self._texts[int(np.searchsorted(self._events, event))]
        known = self._values.get(value, str(value))
        return image != known and differ(image, known)


def differ(image: str, known: str) -> bool:
    """True if a before-image cannot be of that row; both are JSON.

    An image may show some columns alone. Columns that only one of them has tell nothing, and neither does one whose
    type has changed: the table was altered. Nor does a value that the connector could not know.
    """
    if known == DELETED or image == THERE:
        return known == DELETED
    one, other = (msgspec.json.decode(text) for text in (image, known))
    if not isinstance(one, dict) or not isinstance(other, dict):
        return _differ(one, other)
    return any(_differ(one[name], other[name]) for name in one.keys() & other.keys())


def _differ(one: Any, other: Any) -> bool:
    if one == other or (one is not None and other is not None and _type(one) is not _type(other)):
        return False
    return not any(word in msgspec.json.encode([one, other]).decode() for word in _UNKNOWN)


def _type(value: Any) -> type:
    return float if type(value) is int else type(value)
