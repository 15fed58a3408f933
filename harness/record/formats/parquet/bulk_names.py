"""Ids of keys and values by their JSON, as `Names` gives them, for all values of a history at once.

A text is the JSON of a value and a line end, which JSON has nowhere else: texts are joined and split as they are.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from harness.core.columns import NAMED, NEVER, Int64s
from harness.record.formats.parquet.schema import SCHEMAS

_PENDING_MAX: Final = 256 << 20  # Bytes of texts that wait for their ids; many may be of one value.
_TABLE_BYTES: Final = 1 << 30  # Below the limit of a column of texts in Arrow.
_END: Final = ord("\n")


class BulkNames:
    """Assigns ids to values that need names, in the order in which they are added. No value is an object here."""

    def __init__(self) -> None:
        self._known = texts_of(b"")  # All different texts, in order of their ids.
        self._pending: list[bytes] = []
        self._ends: list[Int64s] = []  # Where pending texts end, in each part.
        self._pending_size = 0
        self._ids: list[Int64s] = []  # Of all values that are not pending.

    def add(self, texts: bytes, ends: Int64s) -> None:
        """Add values, whose texts end there (`ends_of`)."""
        self._pending.append(texts)
        self._ends.append(ends)
        self._pending_size += len(texts)
        # Each time all known texts are looked at again, so that as many new ones have to come first.
        if self._pending_size > max(_PENDING_MAX, self._known.nbytes):
            self._settle()

    def ids(self) -> Int64s:
        """The ids of all values that were added, in order."""
        return self.ids_beside(b"")[0]

    def ids_beside(self, texts: bytes) -> tuple[Int64s, Int64s]:
        """The ids of all values that were added, in order; and the ids of other texts. A text without id has NEVER."""
        others = self._settle(texts)
        self._ids = [np.concatenate([np.empty(0, np.int64), *self._ids])]
        return self._ids[0], others

    def values(self, ids: Int64s) -> list[Any]:
        """The values of those ids; objects may be structs (`alike`). Call `ids` first."""
        from harness.record.formats.alike import decoded_lines  # noqa: PLC0415  Only streams need it.

        texts = self._known.take(pa.array(ids - NAMED))
        return decoded_lines(_content(texts), msgspec.json.decode(texts[0].as_py())) if len(texts) else []

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """The ids and JSON of all named values, in order of id, in tables of at most so many rows."""
        texts = without_ends(self._known)
        ends = _offsets(texts)[1:]
        begin = 0
        while begin < len(texts):
            most = (int(ends[begin - 1]) if begin else 0) + _TABLE_BYTES
            end = max(begin + 1, min(begin + rows, int(np.searchsorted(ends, most, "right"))))
            some = texts.slice(begin, end - begin).cast(pa.string())
            yield pa.table({"id": pa.array(np.arange(NAMED + begin, NAMED + end)), "json": some}, SCHEMAS["names"])
            begin = end

    def _settle(self, texts: bytes = b"") -> Int64s:
        """Find the ids of the pending values. Returns the ids of other texts. A text without id has NEVER."""
        before, their_ends = len(self._known), ends_of(texts)
        places = np.empty(0, np.int64)
        if self._pending or len(their_ends):
            parts: list[bytes | memoryview] = [_content(self._known), *self._pending, texts]
            begins = np.cumsum([0, *map(len, parts[:-1])]).tolist()
            ends = [some + begin for some, begin in zip((*self._ends, their_ends), begins[1:], strict=True)]
            whole = _array(np.concatenate([_offsets(self._known), *ends]), b"".join(parts)).dictionary_encode()
            self._pending, self._ends, self._pending_size = [], [], 0
            named, places = np.split(whole.indices.to_numpy().astype(np.int64), [len(whole) - len(their_ends)])
            self._known = whole.dictionary[: int(named.max(initial=-1)) + 1]  # Texts come in order of appearance.
            self._ids.append(NAMED + named[before:])
        return np.where(places < len(self._known), NAMED + places, NEVER)


def texts_of(content: bytes) -> pa.LargeStringArray:
    """The texts in that content."""
    return _array(np.append(0, ends_of(content)), content)


def without_ends(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """The same texts without their line ends."""
    content = bytes(_content(texts)).replace(b"\n", b"")
    return _array(_offsets(texts) - np.arange(len(texts) + 1), content)


def ends_of(content: bytes) -> Int64s:
    """The place after the line end of each text."""
    return np.flatnonzero(np.frombuffer(content, np.uint8) == _END) + 1


def _array(offsets: Int64s, content: bytes) -> pa.LargeStringArray:
    buffers: Sequence[pa.Buffer | None] = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def _offsets(texts: pa.LargeStringArray) -> Int64s:
    """Where the texts of a whole array begin, and where the last one ends."""
    found: Int64s = np.frombuffer(texts.buffers()[1], np.int64)[: len(texts) + 1]
    return found


def _content(texts: pa.LargeStringArray) -> memoryview:
    """The texts of a whole array, joined."""
    return memoryview(texts.buffers()[2])[: int(_offsets(texts)[-1])] if len(texts) else memoryview(b"")
