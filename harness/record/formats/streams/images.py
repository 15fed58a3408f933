"""The before-images of a foreign stream, in a file beside the history's tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

_SCHEMA: Final = pa.schema([("event", pa.int64()), ("image", pa.string())])
_ROWS: Final = 100_000


def write_images(path: Path, images: Sequence[tuple[int, bytes]]) -> None:
    """Write before-images as JSON, each with the place of its event in the history, ascending."""
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for begin in range(0, len(images), _ROWS):
            events, texts = zip(*images[begin : begin + _ROWS], strict=True)
            writer.write_table(pa.table([pa.array(events), pa.array(texts, pa.string())], schema=_SCHEMA))
