"""The before-images of a foreign stream, in a file beside the history's tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.columns import Int64s

_SCHEMA: Final = pa.schema([("event", pa.int64()), ("image", pa.string())])
_ROWS: Final = 100_000


def write_images(path: Path, events: Int64s, images: Sequence[bytes]) -> None:
    """Write before-images as JSON, with the places of their events in the history, which ascend."""
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for begin in range(0, len(images), _ROWS):
            texts = pa.array(images[begin : begin + _ROWS], pa.string())
            writer.write_table(pa.table([pa.array(events[begin : begin + _ROWS]), texts], schema=_SCHEMA))
