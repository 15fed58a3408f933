"""Where the events of a foreign stream come from: their lines, and the texts of positions and units.

They stand beside the history's tables, for sentences only: no check depends on them.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.origins import LINE, ORIGINS, POSITION, UNIT, UNTIMED
from harness.core.record import Json

_SCHEMA: Final = pa.schema([("kind", pa.int64()), ("id", pa.int64()), ("text", pa.string())])
_ROWS: Final = 250_000


def write_origins(
    history: Path,
    lines: Iterable[str],
    positions: Iterable[tuple[int, str]],
    units: Mapping[Json, int],
    *,
    has_times: bool,
) -> None:
    """Write the line of each event, by its place in the history, and the texts of positions and units, by number."""
    rows = (
        *((LINE, enumerate(lines)), (POSITION, positions)),
        (UNIT, ((number, str(name)) for name, number in units.items())),
        (UNTIMED, [] if has_times else [(0, "the file has no times")]),
    )
    with pq.ParquetWriter(history / ORIGINS, _SCHEMA, compression="zstd") as writer:
        for kind, pairs in rows:
            left = iter(pairs)
            while some := tuple(islice(left, _ROWS)):
                numbers, texts = zip(*some, strict=True)
                writer.write_table(pa.table([[kind] * len(some), numbers, texts], schema=_SCHEMA))
