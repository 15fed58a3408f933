"""Arrow columns as NumPy arrays, without pandas.

Arrow's own `to_numpy` and `array` import pandas first: half a second in each process of an engine.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.columns.runs import expand
from harness.core.columns import Bools, Int64s


def integers(column: pa.Array | pa.ChunkedArray, missing: int = 0) -> Int64s:
    """A column of integers of any width as int64, with `missing` for null."""
    whole = _one(column)
    values = _raw(whole)
    if whole.null_count:
        return np.where(validity(whole), values, missing).astype(np.int64)
    return values.astype(np.int64, copy=False)


def flags(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A column of booleans; null is false."""
    whole = _one(column)
    bits = _bits(whole.buffers()[1], whole.offset, len(whole))
    return bits & validity(whole) if whole.null_count else bits


def validity(column: pa.Array | pa.ChunkedArray) -> Bools:
    """True for rows that are not null."""
    whole = _one(column)
    if not whole.null_count:
        return np.ones(len(whole), np.bool_)
    return _bits(whole.buffers()[0], whole.offset, len(whole))


def lists(column: pa.Array | pa.ChunkedArray) -> tuple[Int64s, Int64s, Bools]:
    """Offsets of the rows' elements, shape (n + 1,); all elements; and True for rows that are not null.

    Row i has elements[offsets[i]:offsets[i + 1]]; a null row has none.
    """
    whole = _one(column)
    is_known = validity(whole)
    if whole.null_count == len(whole):
        return np.zeros(len(whole) + 1, np.int64), np.empty(0, np.int64), is_known
    offsets = np.frombuffer(whole.buffers()[1], np.int32, len(whole) + 1, 4 * whole.offset).astype(np.int64)
    length = np.where(is_known, np.diff(offsets), 0)
    starts = np.concatenate(([0], np.cumsum(length)))
    elements = integers(whole.values)
    if starts[-1] == offsets[-1] - offsets[0]:
        return starts, elements[offsets[0] : offsets[-1]], is_known
    return starts, elements[expand(offsets[:-1], length)], is_known  # Arrow may store elements for a null row.


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _raw(whole: pa.Array) -> NDArray[np.signedinteger]:
    """The values; those of null rows are undefined."""
    width = whole.type.bit_width // 8
    data = whole.buffers()[1]
    if data is None or not len(whole):
        return np.empty(0, np.int64)
    return np.frombuffer(data, f"i{width}", len(whole), width * whole.offset)


def _bits(bitmap: pa.Buffer | None, offset: int, count: int) -> Bools:
    if bitmap is None:
        return np.zeros(count, np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=offset + count, bitorder="little")
    return bits[offset:].view(np.bool_)
