"""Where the events of a foreign stream come from: their lines, and the texts of positions and units.

They stand beside the history's tables, for sentences only: no check depends on them.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.origins import LINE, ORIGINS, POSITION, UNIT, UNTIMED
from harness.core.record import Json

_SCHEMA: Final = pa.schema([("kind", pa.int64()), ("id", pa.int64()), ("text", pa.string())])
_ROWS: Final = 250_000


def write_origins(
    history: Path,
    lines: pa.Array,
    positions: Iterable[tuple[int, str]],
    units: Mapping[Json, int],
    *,
    has_times: bool,
) -> None:
    """Write the lines (n,) of the events as texts, and the texts of positions and units, by number."""
    rows = (
        (POSITION, positions),
        (UNIT, ((number, str(name)) for name, number in units.items())),
        (UNTIMED, [] if has_times else [(0, "the file has no times")]),
    )
    with pq.ParquetWriter(history / ORIGINS, _SCHEMA, compression="zstd") as writer:
        for begin in range(0, len(lines), _ROWS):
            part = lines[begin : begin + _ROWS]
            columns = [np.full(len(part), LINE), np.arange(begin, begin + len(part)), part]
            writer.write_table(pa.table(columns, schema=_SCHEMA))
        for kind, texts in rows:
            left = iter(texts)
            while some := list(islice(left, _ROWS)):
                numbers, shown = zip(*some, strict=True)
                writer.write_table(pa.table([[kind] * len(some), numbers, shown], schema=_SCHEMA))
