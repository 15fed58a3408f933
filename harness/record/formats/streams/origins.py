"""What is kept of a foreign stream in files beside the history's tables.

Where its events come from: their lines, and the texts of positions and units, for sentences only, as no check depends
on them. And its before-images.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.columns.files import passing_writer
from checkers.columns.origins import LINE, ORIGINS, POSITION, UNIT, UNTIMED
from harness.core.columns import NEVER, Int64s
from harness.core.record import Json

_SCHEMA: Final = pa.schema([("kind", pa.int64()), ("id", pa.int64()), ("text", pa.string())])
_ROWS: Final = 250_000
_IMAGES: Final = pa.schema([("event", pa.int64()), ("value", pa.int64()), ("image", pa.large_string())])
_IMAGES_AT_ONCE: Final = 100_000


def lines_of(columns: Mapping[str, Int64s], paths: Sequence[Path]) -> pa.Array:
    """The texts of the events' lines, with the names of their files if there are several."""
    lines = pa.array(columns["line"]).cast(pa.string())
    if len(paths) == 1:
        return lines
    files = pa.array([path.name for path in paths]).take(pa.array(columns["file"]))
    return pc.binary_join_element_wise(lines, files, " of ")


def write_origins(
    history: Path,
    lines: pa.Array,
    positions: tuple[Int64s, Sequence[str] | pa.Array],
    units: Mapping[Json, int],
    *,
    has_times: bool,
) -> None:
    """Write the lines (n,) of the events as texts, and the texts of positions and units, with their numbers."""
    names = list(map(str, units))
    rows: tuple[tuple[int, Int64s, Sequence[str] | pa.Array], ...] = (
        (LINE, np.arange(len(lines)), lines),
        (POSITION, *positions),
        (UNIT, np.fromiter(units.values(), np.int64, len(names)), names),
        (UNTIMED, *((np.empty(0, np.int64), []) if has_times else (np.zeros(1, np.int64), ["the file has no times"]))),
    )
    with passing_writer(history / ORIGINS, _SCHEMA, distinct="text") as writer:
        for kind, numbers, texts in rows:
            for begin in range(0, len(numbers), _ROWS):
                some = slice(begin, begin + _ROWS)
                part = [np.full(len(numbers[some]), kind), numbers[some], texts[some]]
                writer.write_table(pa.table(part, schema=_SCHEMA))


def write_images(path: Path, events: Int64s, values: Int64s, images: pa.Array) -> None:
    """Write before-images with the places of their events in the history, which ascend.

    An image is the value of that id; NEVER stands for one that no row of the history has. Of these, `images` are JSON.
    """
    is_text = values == NEVER
    ends = np.cumsum(is_text)
    with passing_writer(path, _IMAGES) as writer:
        for begin in range(0, len(events), _IMAGES_AT_ONCE):
            some = slice(begin, begin + _IMAGES_AT_ONCE)
            place = pa.array(ends[some] - 1, mask=~is_text[some])
            columns = [
                pa.array(events[some]),
                pa.array(values[some], mask=is_text[some]),
                images.take(place),
            ]
            writer.write_table(pa.table(columns, schema=_IMAGES))
