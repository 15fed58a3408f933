"""The before-images of a foreign stream, in a file beside the history's tables."""

from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from harness.record.formats.streams.line import Before

_SCHEMA: Final = pa.schema([("event", pa.int64()), ("image", pa.string())])
_ROWS: Final = 100_000
_ENCODER: Final = msgspec.json.Encoder(order="sorted")  # As names of values are written, so that most texts are equal.


class ImageWriter:
    """A writer of before-images, in the order of their events. A context manager."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, _SCHEMA, compression="zstd")
        self._events: list[int] = []
        self._texts: list[str] = []

    def __enter__(self) -> "ImageWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._flush()
        self._writer.close()

    def add(self, event: int, before: Before) -> None:
        """Add what that event, by its place in the history, tells of the row that it replaced."""
        self._events.append(event)
        self._texts.append(_ENCODER.encode(before.image).decode())
        if len(self._events) == _ROWS:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.table([self._events, self._texts], schema=_SCHEMA))
        self._events, self._texts = [], []
