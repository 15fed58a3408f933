"""The before-images of a foreign stream's rows: for each event, the row that it replaced, or a part of it.

A file of the history has them by the places of their events: as the id of a value of the history, if the image is one,
and else as JSON.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.columns.files import read_columns
from checkers.columns.index import Places
from harness.core.columns import NEVER, Bools, Int64s

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
    """The before-images of a history in the order of their events; and the values of its rows."""

    def __init__(self, history: Path) -> None:
        images = read_columns(history / IMAGES, ("event", "value", "image"))
        self._places, self._texts = Places(images["event"].to_numpy()), images["image"]
        self._values = images["value"].fill_null(NEVER).to_numpy()
        self._names = history / "names.parquet"

    @cached_property
    def deleted(self) -> int | None:
        """The id of the value that reports a deletion; None if there is none."""
        if not self._names.is_file():
            return None
        found = read_columns(self._names, ("id",), json=[DELETED])["id"]
        return found[0].as_py() if len(found) else None

    def have(self, events: Int64s) -> Bools:
        """True for events with an image."""
        result: Bools = self._places.of(events) >= 0
        return result

    def contradict(self, events: Int64s, values: Int64s) -> Bools:
        """True for events whose image cannot be the row with that value. Each event has an image."""
        row = self._places.of(events)
        result: Bools = np.zeros(len(events), np.bool_)
        shown = self._values[row]
        other = np.flatnonzero((shown != values) | (shown == NEVER))
        if not len(other):
            return result
        row, shown = row[other], shown[other]
        is_value = pa.chunked_array([pa.array(shown != NEVER)])
        texts = self._json(np.concatenate((shown, values[other])))
        images = pc.if_else(is_value, texts.slice(0, len(other)), self._texts.take(pa.array(row)))
        known = texts.slice(len(other))
        unlike = np.flatnonzero(pc.not_equal(images, known).to_numpy())
        both = (each.take(pa.array(unlike)).to_pylist() for each in (images, known))
        result[other[unlike]] = [differ(image, text) for image, text in zip(*both, strict=True)]
        return result

    def _json(self, values: Int64s) -> pa.ChunkedArray:
        """The JSON of those values."""
        numbers = pa.chunked_array([pa.array(values).cast(pa.large_string())])
        if not self._names.is_file():  # Each value is an integer.
            return numbers
        named = read_columns(self._names, ("id", "json"), id=np.unique(values))
        ids, names = named["id"].to_numpy(), named["json"].cast(pa.large_string())
        if not len(ids):
            return numbers
        place = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
        is_named = pa.chunked_array([pa.array(ids[place] == values)])
        return pc.if_else(is_named, names.take(pa.array(place)), numbers)


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
