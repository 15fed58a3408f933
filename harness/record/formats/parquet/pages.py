"""The pages of a Parquet file as their headers describe them, before any page is decoded.

A file's footer summarizes its column chunks, but a reader allocates what each page's own header says: so limits are
checked against the headers. Source: parquet-format, parquet.thrift (PageHeader), and Thrift's compact protocol, as
known on 2026-11-23.
"""

from collections.abc import Iterator
from mmap import mmap
from typing import Final, NamedTuple

import pyarrow.parquet as pq

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
PLAIN_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 2, 6, 7, 8
_DETAILS: Final = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}  # By kind of page, the header field with the count.
_ENCODING: Final = {DATA: 2, DICTIONARY: 2, DATA_V2: 4}
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEPTH_MAX: Final = 8

Fields = dict[int, "int | Fields"]


class Page(NamedTuple):
    """One page. `size` is in bytes, uncompressed and still encoded; `values` counts nulls and elements of lists."""

    kind: int
    size: int
    values: int
    encoding: int

    @property
    def is_coded(self) -> bool:
        """True if the page holds indexes into the dictionary page."""
        return self.kind != DICTIONARY and self.encoding in {PLAIN_DICTIONARY, RLE_DICTIONARY}


def pages_of(content: mmap, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """The pages of a column chunk that a reader would read, in order.

    Raises ValueError if a header is invalid: then no reader can read the chunk.
    """
    first, dictionary = int(chunk.data_page_offset), chunk.dictionary_page_offset
    at = min(first, int(dictionary)) if dictionary else first
    end = min(at + int(chunk.total_compressed_size), len(content))
    left = int(chunk.num_values)
    while left > 0 and at < end:
        page, following = _page(content, at)
        if page is not None:
            yield page
            left -= 0 if page.kind == DICTIONARY else page.values
        at = following


def _page(content: mmap, at: int) -> tuple[Page | None, int]:
    """The page whose header begins there (None for a kind that readers skip), and the start of the next page."""
    try:
        header, body = _struct(content, at, 0)
        kind, size, stored = (_number(header, field) for field in (1, 2, 3))
        if min(size, stored) < 0:
            raise ValueError("a page of less than no bytes")
        if kind not in _DETAILS:
            return None, body + stored
        details = header[_DETAILS[kind]]
        if isinstance(details, int):
            raise ValueError("a page header without its number of values")
        values = _number(details, 1)
        if values < 0:
            raise ValueError("a page of less than no values")
        return Page(kind, size, values, _number(details, _ENCODING[kind])), body + stored
    except (IndexError, KeyError):
        raise ValueError(f"no page header at byte {at}") from None


def _number(fields: Fields, field: int) -> int:
    value = fields[field]
    if not isinstance(value, int):
        raise ValueError("a page header with a part at the wrong place")
    return value


def _struct(content: mmap, at: int, depth: int) -> tuple[Fields, int]:
    """The fields of a struct by their numbers, without texts; and its end."""
    if depth > _DEPTH_MAX:
        raise ValueError("a page header that is nested too deep")
    fields: Fields = {}
    field = 0
    while byte := content[at]:
        at += 1
        kind, step = byte & 15, byte >> 4
        if step:
            field += step
        else:
            field, at = _signed(content, at)
        if kind in {_TRUE, _FALSE}:
            fields[field] = int(kind == _TRUE)
        elif kind in {_I16, _I32, _I64}:
            fields[field], at = _signed(content, at)
        elif kind == _STRUCT:
            fields[field], at = _struct(content, at, depth + 1)
        else:
            at = _after(content, at, kind)
    return fields, at + 1


def _after(content: mmap, at: int, kind: int) -> int:
    """The end of a value of another kind. No known page header has lists or maps."""
    match kind:
        case 3:
            return at + 1
        case 7:
            return at + 8
        case 8:
            size, at = _varint(content, at)
            return at + size
        case _:
            raise ValueError("a page header with a part of an unknown kind")


def _varint(content: mmap, at: int) -> tuple[int, int]:
    number = shift = 0
    while (byte := content[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise ValueError("a page header with a number of more than 64 bits")
    return number | byte << shift, at + 1


def _signed(content: mmap, at: int) -> tuple[int, int]:
    number, at = _varint(content, at)
    return number >> 1 ^ -(number & 1), at
